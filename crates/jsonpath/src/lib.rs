//! The JSONPath dialects of Kubernetes and KubeStellar.
