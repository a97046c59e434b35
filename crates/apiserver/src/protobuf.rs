//! Objects in protobuf, the second form of the built-in kinds: read into what JSON would have given, written from the JSON that is stored.
//!
//! Nothing here is per kind. The schemas say which number a field has, and so a message is walked like the JSON is.

mod decode;
mod encode;
mod envelope;
mod kinds;
mod message;
mod tape;
mod wire;

pub use decode::decode;
pub use encode::Encoder;
pub(crate) use envelope::List;
pub use envelope::{Envelope, EnvelopeError, encode, write_event};
pub(crate) use kinds::{delete_options, has_form};
pub(crate) use message::Messages;
pub use wire::Damage;
