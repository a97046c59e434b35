//! The program but for its `main`, so that tests can run all of it in their own process.

pub mod access;
pub mod authority;
pub mod cli;
pub mod client;
mod function;
pub mod kubeconfig;
mod logs;
mod metrics;
mod output;
mod preview;
mod settings;
mod space;
pub mod up;
mod version;
