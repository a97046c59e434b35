//! The Kubernetes HTTP API over a store, many spaces in one process.

pub mod field;
mod gotext;
mod json;
pub mod kinds;
mod names;
mod object;
mod page;
mod patch;
pub mod quantity;
pub mod registry;
pub mod request;
pub mod schema;
mod selector;
pub mod status;
