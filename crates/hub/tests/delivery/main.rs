//! What a space sends where, change by change.

mod changes;
mod conflicts;
mod divergences;
mod errors;
mod ledgers;
mod parts;
mod preview;
mod restart;
mod stage;
