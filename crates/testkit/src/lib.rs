//! A whole control plane in one process for tests, and real peers started on free ports.
