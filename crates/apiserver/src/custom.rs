//! Custom resources: what makes a definition right, and what its schemas say of objects. Nothing here stores or waits.

pub(crate) mod columns;
pub(crate) mod definition;
pub(crate) mod numbers;
pub(crate) mod open_api;
mod structural;

pub(crate) use structural::{Refused, Scale, Structural, Verdict};
