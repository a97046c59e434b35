//! The Kubernetes HTTP API over a store, many spaces in one process.

pub mod discovery;
pub mod field;
pub mod format;
pub mod kinds;
pub mod openapi;
pub mod quantity;
pub mod registry;
pub mod schema;
pub mod table;
