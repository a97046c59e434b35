//! What a space sends where, change by change.

mod changes;
mod conflicts;
mod errors;
mod preview;
mod restart;
mod stage;
