//! Kinds and names: serde and CRD types and their validation, nothing that runs.

pub mod cluster;
pub mod control;
pub mod definitions;
pub mod labels;
pub mod ledger;
pub mod preview;
pub mod work;
