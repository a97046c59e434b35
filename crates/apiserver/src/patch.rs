//! The three kinds of patches that change an object without server-side apply.

mod document;
mod json;
mod merge;
mod strategic;

pub(crate) use document::Document;
pub(crate) use json::{JsonPatch, JsonPatchError};
pub(crate) use merge::merge;
pub(crate) use strategic::{StrategicError, strategic};
