//! The Kubernetes HTTP API over a store, many spaces in one process.

pub mod field;
pub mod kinds;
pub mod quantity;
pub mod registry;
pub mod schema;
