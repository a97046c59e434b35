//! The Kubernetes HTTP API over a store, many spaces in one process.

mod answer;
mod answered;
mod apply;
mod aside;
mod body;
mod controllers;
mod custom;
mod definitions;
pub mod discovery;
pub mod field;
pub mod format;
mod gotext;
mod health;
pub mod identity;
mod json;
pub mod kinds;
#[cfg(test)]
mod never_panics;
mod object;
mod objects;
pub mod openapi;
mod page;
mod patch;
mod paths;
pub mod protobuf;
pub mod quantity;
mod random;
pub mod registry;
pub mod request;
pub mod schema;
mod selector;
mod server;
mod signer;
mod spaces;
pub mod status;
pub mod table;
mod verbs;
mod versions;
mod warned;
pub mod yaml;

pub use answered::{Answers, Asked, What};
pub use body::Body;
pub use controllers::Controllers;
pub use definitions::{Provided, ProvidedError};
pub use server::{About, Config, Server, Service};
pub use signer::{Credential, Signer, SigningRequest};
