//! The ManifestWork conversation: CloudEvents codec, resync, MQTT and loopback transports.

pub mod agent;
mod bundle;
mod clock;
pub mod codec;
pub mod endpoint;
mod entropy;
pub mod event;
mod hash;
pub mod mqtt;
mod names;
mod outbox;
mod packet;
mod page;
mod sequence;
pub mod source;
pub mod topic;
pub mod transport;

pub use agent::Agent;
pub use bundle::{Bundle, BundleError, ContentHash};
pub use codec::{Codec, Dialect};
pub use entropy::Entropy;
pub use event::{
    Cause, HeldVersion, KnownStatus, Message, Order, ResyncCompleted, Spec, SpecResync, Status, StatusResync, Wish,
};
pub use hash::StatusHash;
pub use names::{ClusterName, Epoch, NameError, ResourceId, SourceId, Version};
pub use packet::Packet;
pub use sequence::Sequence;
pub use source::Source;
