//! Kinds and names: serde and CRD types and their validation, nothing that runs.

pub mod control;
pub mod labels;
pub mod work;
