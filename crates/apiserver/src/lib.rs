//! The Kubernetes HTTP API over a store, many spaces in one process.

mod answer;
mod body;
mod controllers;
pub mod field;
mod gotext;
pub mod identity;
mod json;
pub mod kinds;
mod names;
mod object;
mod page;
mod patch;
mod paths;
pub mod quantity;
mod random;
pub mod registry;
pub mod request;
pub mod schema;
mod selector;
mod server;
mod spaces;
pub mod status;
mod table;
mod verbs;
mod versions;
mod yaml;

pub use body::Body;
pub use controllers::Controllers;
pub use server::{Config, Server, Service};
