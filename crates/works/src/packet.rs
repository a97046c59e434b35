//! What a transport carries: a topic, a few properties and bytes.

use std::borrow::Cow;

use bytes::Bytes;

/// Text that is often one of a few fixed words, which then cost nothing.
pub type Text = Cow<'static, str>;

/// One message as a broker sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Where it is published.
    pub topic: String,
    /// The type of the payload, if any was given.
    pub content_type: Option<Text>,
    /// User properties in their order.
    pub properties: Vec<(Text, Text)>,
    /// The payload.
    pub payload: Bytes,
}

impl Packet {
    /// An upper bound of the bytes this packet needs on the wire.
    pub fn wire_bytes(&self) -> usize {
        /// Fixed header, packet id, property length, and the length fields of topic and content type.
        const FRAME: usize = 24;
        /// One byte of type and two lengths of two bytes.
        const PROPERTY: usize = 5;
        let properties: usize = self.properties.iter().map(|(name, value)| PROPERTY + name.len() + value.len()).sum();
        let content_type = self.content_type.as_ref().map_or(0, |text| text.len());
        FRAME + self.topic.len() + content_type + properties + self.payload.len()
    }
}

/// The most bytes a user property's name or value can have in MQTT.
pub(crate) const MAX_PROPERTY_BYTES: usize = u16::MAX as usize;
