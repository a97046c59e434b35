//! Whole packages through the program: those recorded from kpt, and others side by side with the real one.

mod kpt {
    mod case;
    mod compare;
    mod random;
    mod real;
    mod recorded;
    mod world;
}
