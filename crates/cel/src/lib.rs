//! The Common Expression Language as Kubernetes speaks it.
