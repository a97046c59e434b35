//! Applies works in a cluster and reports what happened.
