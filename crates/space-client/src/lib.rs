//! The space-aware client: a Kubernetes client for a space by its name.
