//! The three kinds of patches that change an object without server-side apply.

mod json;
mod merge;
mod strategic;

pub use json::{JsonPatch, JsonPatchError};
pub use merge::merge;
pub use strategic::{StrategicError, strategic};
