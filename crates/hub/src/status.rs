//! What comes back from clusters: the reported state of every object, and what is made of it.
//!
//! Flow: the transport tells what a cluster says about a work ([`Reports::hear`]). Of what is known about an object then, its own
//! status is made ([`aggregate::returned`]), and the tables of the StatusCollectors that its policies name ([`combine`]).
//!
//! Guarantees: the results depend on what is known, not on the order in which it was heard; rows and errors have one order.

pub mod aggregate;
pub mod combine;
mod reports;

pub use reports::{FEEDBACK_NAME, Report, Reports, feedback_rule};
