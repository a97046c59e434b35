//! What a request asks for: its address, its options and the form of answer it accepts.

mod accept;
mod address;
mod media;
mod options;
mod query;

pub use accept::{AVAILABLE, AVAILABLE_LIST, Accepted, Discovery, Encoding, Form, Forms, PROTOBUF, Shape};
pub use address::{Address, ROOT, ResourcePath, SpaceScope, Target, parse};
pub(crate) use media::media_type;
pub use options::{DeleteOptions, FieldValidation, ListOptions, Propagation, VersionMatch, WriteOptions};
pub(crate) use options::{FIELD_MANAGER_MAX, field_manager_cause};
pub use query::Query;
pub(crate) use query::unescape;
