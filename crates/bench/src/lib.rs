//! Benchmarks of the store, and load against any Kubernetes API.
