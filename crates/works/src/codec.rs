//! The two dialects on the wire: messages to packets and back.

mod attributes;
mod data;
mod decode;
mod encode;
mod words;

use jiff::Timestamp;

pub(crate) use self::decode::shown;
use crate::{
    Message, NameError, Packet,
    topic::{Channel, OcmTopics, TopicError, Topics},
};

/// How a conversation is spelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// As the design document spells it: topics with a leading slash, structured CloudEvents.
    Seed,
    /// As the OCM implementation speaks today: `ce-` user properties, snowflake sequence ids.
    Ocm,
}

impl Dialect {
    /// The dialect of a topic: only the document's topics begin with a slash.
    pub fn of_topic(topic: &str) -> Self {
        if topic.starts_with('/') { Self::Seed } else { Self::Ocm }
    }
}

/// Writes and reads one dialect.
#[derive(Clone, Debug)]
pub struct Codec {
    topics: Topics,
}

/// What makes an event unique: passed in, so that encoding is a function of its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// 128 random bits, the event's id.
    pub id: u128,
    /// When the event is sent.
    pub time: Timestamp,
    /// Who sends it, when an agent does; a source signs with its own id.
    pub agent: &'a str,
}

/// Why a message cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// It has no topic.
    #[error("cannot address the event")]
    Topic(#[from] TopicError),
    /// It is too much for a user property.
    #[error("attribute {0} is longer than a user property can be")]
    AttributeTooLong(&'static str),
    /// It cannot be written as JSON.
    #[error("cannot write the event as JSON")]
    Json(#[from] serde_json::Error),
}

/// Why a packet cannot be read. Whatever the reason, the packet is dropped and nothing else happens.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The topic is none of the conversation.
    #[error("topic {0:?} is not part of the conversation")]
    Topic(String),
    /// It is neither a binary nor a structured CloudEvent.
    #[error("not a CloudEvent: neither ce- properties nor a structured event")]
    NoEvent,
    /// Only CloudEvents 1.0 are read.
    #[error("specversion is {0:?}, not 1.0")]
    SpecVersion(String),
    /// The payload is not what it should be.
    #[error("cannot read the payload")]
    Json(#[from] serde_json::Error),
    /// An attribute that is needed is not there.
    #[error("attribute {0} is missing")]
    Missing(&'static str),
    /// An attribute is given twice with different values.
    #[error("attribute {0} is given twice")]
    Repeated(String),
    /// An attribute has an impossible value.
    #[error("attribute {name} is {value:?}")]
    Attribute {
        /// Its name.
        name: &'static str,
        /// The beginning of its value.
        value: String,
    },
    /// A name cannot be one.
    #[error("impossible name")]
    Name(#[from] NameError),
    /// The type is not known.
    #[error("type {0:?} is not known")]
    Type(String),
    /// The type is known, but not on this topic.
    #[error("type {kind:?} does not belong on {channel:?}")]
    Misplaced {
        /// The type.
        kind: String,
        /// Where it was found.
        channel: Channel,
    },
    /// The event says something else than its topic, and only topics are guarded.
    #[error("attribute {name} is {value:?}, which its topic does not allow")]
    Forged {
        /// The attribute.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The event has no payload and needs one.
    #[error("the event has no payload")]
    NoData,
}

impl DecodeError {
    /// One word for a metric's label.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Topic(_) => "topic",
            Self::NoEvent | Self::SpecVersion(_) => "not_an_event",
            Self::Json(_) | Self::NoData => "payload",
            Self::Missing(_) | Self::Repeated(_) | Self::Attribute { .. } | Self::Name(_) => "attribute",
            Self::Type(_) | Self::Misplaced { .. } => "type",
            Self::Forged { .. } => "forged",
        }
    }
}

impl Codec {
    /// The document's dialect.
    pub fn seed() -> Self {
        Self { topics: Topics::Seed }
    }

    /// OCM's dialect, on these topics.
    pub fn ocm(topics: OcmTopics) -> Self {
        Self { topics: Topics::Ocm(Box::new(topics)) }
    }

    /// A dialect on its usual topics.
    pub fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Seed => Self::seed(),
            Dialect::Ocm => Self::ocm(OcmTopics::conventional()),
        }
    }

    /// Which dialect this is.
    pub fn dialect(&self) -> Dialect {
        match self.topics {
            Topics::Seed => Dialect::Seed,
            Topics::Ocm(_) => Dialect::Ocm,
        }
    }

    /// The topics it uses.
    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Writes a message.
    pub fn encode(&self, message: &Message, stamp: Stamp<'_>) -> Result<Packet, EncodeError> {
        encode::encode(&self.topics, self.dialect(), message, stamp)
    }

    /// Reads a packet.
    pub fn decode(&self, packet: &Packet) -> Result<Message, DecodeError> {
        decode::decode(&self.topics, self.dialect(), packet)
    }
}

/// What must hold for any packet at all: it is refused, or it is read, written and read again with the same meaning.
/// For fuzzing; panics when it does not hold.
pub fn check_round_trip(codec: &Codec, packet: &Packet) {
    let Ok(message) = codec.decode(packet) else { return };
    let stamp = Stamp { id: 1, time: Timestamp::UNIX_EPOCH, agent: "agent" };
    // What came in larger pieces than a user property can be sent on by nobody.
    let Ok(written) = codec.encode(&message, stamp) else { return };
    let again = codec.decode(&written).expect("what we write can be read");
    assert_eq!(essence(&message), essence(&again));
}

/// What a message is about, and at which version.
fn essence(message: &Message) -> (std::mem::Discriminant<Message>, Option<crate::ResourceId>, Option<crate::Version>) {
    let (id, version) = match message {
        Message::Spec(spec) => (Some(spec.id.clone()), Some(spec.version)),
        Message::Status(status) => (Some(status.id.clone()), Some(status.version)),
        Message::SpecResync(resync) => {
            let last = resync.versions.last();
            (last.map(|held| held.id.clone()), last.map(|held| held.version))
        }
        Message::StatusResync(resync) => (resync.hashes.last().map(|known| known.id.clone()), None),
        Message::ResyncCompleted(_) => (None, None),
    };
    (std::mem::discriminant(message), id, version)
}
