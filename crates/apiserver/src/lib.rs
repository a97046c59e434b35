//! The Kubernetes HTTP API over a store, many spaces in one process.
