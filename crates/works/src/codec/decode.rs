//! Packets to messages. Nothing in a packet is believed that its topic does not allow.

use std::{borrow::Cow, sync::Arc};

use jiff::Timestamp;

use super::{
    DecodeError, Dialect,
    attributes::{Attributes, Structured},
    data::{Data, parse_version},
    words::{self, Kind},
};
use crate::{
    Cause, ClusterName, Epoch, Message, NameError, Order, Packet, ResourceId, ResyncCompleted, Sequence, SourceId,
    Spec, SpecResync, Status, StatusHash, StatusResync, Version, Wish,
    event::{Meta, Scope},
    topic::{Channel, Place, Topics},
};

/// How much of a stranger's text an error repeats.
const SHOWN_BYTES: usize = 64;

pub(super) fn decode(topics: &Topics, dialect: Dialect, packet: &Packet) -> Result<Message, DecodeError> {
    let place = topics.place(&packet.topic).ok_or_else(|| DecodeError::Topic(shown(&packet.topic)))?;
    let (attributes, data) = event(dialect, packet)?;
    match attributes.specversion.as_deref() {
        Some("1.0") => {}
        other => return Err(DecodeError::SpecVersion(shown(other.unwrap_or_default()))),
    }
    let r#type = attributes.r#type.as_deref().ok_or(DecodeError::Missing("type"))?;
    let kind = words::parse(dialect, r#type).ok_or_else(|| DecodeError::Type(shown(r#type)))?;
    agrees("clustername", attributes.cluster.as_deref(), place.cluster.as_ref().map(ClusterName::as_str))?;
    let event = Event { dialect, place, attributes, data };
    match (kind, event.place.channel) {
        (Kind::Spec(cause), Channel::SourceEvents) => event.spec(cause),
        (Kind::Status(cause), Channel::AgentEvents) => event.status(cause),
        (Kind::SpecResync, Channel::AgentBroadcast | Channel::AgentEvents) => event.spec_resync(),
        (Kind::StatusResync, Channel::SourceBroadcast | Channel::SourceEvents) => event.status_resync(),
        (Kind::ResyncCompleted, Channel::SourceEvents) => event.completed(),
        (_, channel) => {
            let kind = shown(event.attributes.r#type.as_deref().unwrap_or_default());
            Err(DecodeError::Misplaced { kind, channel })
        }
    }
}

/// Reads attributes and payload in whichever mode the event came.
fn event(dialect: Dialect, packet: &Packet) -> Result<(Attributes<'_>, Option<Data>), DecodeError> {
    let content_type = packet.content_type.as_deref().unwrap_or_default();
    let binary = packet.properties.iter().any(|(name, _)| name.eq_ignore_ascii_case("ce-specversion"));
    if binary {
        let attributes = Attributes::from_properties(&packet.properties)?;
        let data = match packet.payload.len() {
            0 => None,
            _ => Some(serde_json::from_slice(&packet.payload)?),
        };
        return Ok((attributes, data));
    }
    // The document's events are structured even when nobody says so.
    if content_type.starts_with("application/cloudevents") || dialect == Dialect::Seed {
        let event: Structured<'_> = serde_json::from_slice(&packet.payload)?;
        return Ok((event.attributes, event.data));
    }
    Err(DecodeError::NoEvent)
}

struct Event<'a> {
    dialect: Dialect,
    place: Place,
    attributes: Attributes<'a>,
    data: Option<Data>,
}

impl Event<'_> {
    fn spec(self, cause: Cause) -> Result<Message, DecodeError> {
        let source = self.sending_source()?;
        let epoch = self.epoch()?;
        let sent = self.time()?;
        let deleted = match self.attributes.deletion_timestamp.as_deref() {
            Some(text) => Some(parse_time("deletiontimestamp", text)?),
            None => None,
        };
        let id = self.resource_id()?;
        let version = self.version()?;
        let cluster = self.place.cluster.clone().ok_or(DecodeError::Missing("clustername"))?;
        let meta = self.meta();
        let unknown = epoch.is_some() && self.attributes.unknown.is_some();
        let wish = match deleted {
            Some(at) if unknown => Wish::Unknown(at),
            Some(at) => Wish::Delete(at),
            None => Wish::Apply(Arc::new(self.data.ok_or(DecodeError::NoData)?.into_bundle())),
        };
        Ok(Message::Spec(Spec { source, cluster, id, version, wish, cause, meta, epoch, sent }))
    }

    fn status(self, cause: Cause) -> Result<Message, DecodeError> {
        let source = self.place.source.clone().ok_or(DecodeError::Missing("originalsource"))?;
        agrees("originalsource", self.attributes.original_source.as_deref(), Some(source.as_str()))?;
        let cluster = self.place.cluster.clone().ok_or(DecodeError::Missing("clustername"))?;
        let id = self.resource_id()?;
        let version = self.version()?;
        let sequence = self.order()?;
        let sent_hash = self.attributes.status_hash.as_deref().and_then(StatusHash::from_hex);
        let meta = self.meta();
        let status = self.data.ok_or(DecodeError::NoData)?.into_status();
        let hash = sent_hash.unwrap_or_else(|| StatusHash::of(&status));
        let status = Arc::new(status);
        Ok(Message::Status(Status { source, cluster, id, version, sequence, status, hash, cause, meta }))
    }

    fn spec_resync(self) -> Result<Message, DecodeError> {
        let cluster = self.place.cluster.clone().ok_or(DecodeError::Missing("clustername"))?;
        let listed = non_empty(&self.attributes.original_source).map(SourceId::new).transpose()?;
        if self.place.source.is_some() {
            agrees(
                "originalsource",
                self.attributes.original_source.as_deref(),
                self.place.source.as_ref().map(SourceId::as_str),
            )?;
        }
        let scope = match &self.attributes.epoch {
            None => None,
            Some(_) => Some(Scope {
                listed,
                epoch: self.epoch()?,
                others: self.others()?,
                after: self.attributes.after.as_deref().map(ResourceId::new).transpose()?,
                upto: self.attributes.upto.as_deref().map(ResourceId::new).transpose()?,
            }),
        };
        let addressee = self.place.source.clone();
        let versions = match self.data {
            Some(data) => data.resource_versions.unwrap_or_default().into_iter().map(Into::into).collect(),
            // An empty payload means "everything" in the document, and is an error in the Go code.
            None if self.dialect == Dialect::Seed => Vec::new(),
            None => return Err(DecodeError::NoData),
        };
        Ok(Message::SpecResync(SpecResync { cluster, addressee, scope, versions }))
    }

    fn status_resync(self) -> Result<Message, DecodeError> {
        let source = self.sending_source()?;
        let cluster = self.place.cluster.clone();
        let hashes = match self.data {
            Some(data) => data.status_hashes.unwrap_or_default().into_iter().map(Into::into).collect(),
            None if self.dialect == Dialect::Seed => Vec::new(),
            None => return Err(DecodeError::NoData),
        };
        Ok(Message::StatusResync(StatusResync { source, cluster, hashes }))
    }

    fn completed(self) -> Result<Message, DecodeError> {
        let source = self.sending_source()?;
        let cluster = self.place.cluster.clone().ok_or(DecodeError::Missing("clustername"))?;
        let data = self.data.ok_or(DecodeError::NoData)?;
        let newest = data.sequence_id.as_deref().map(parse_sequence).transpose()?;
        Ok(Message::ResyncCompleted(ResyncCompleted {
            source,
            cluster,
            epoch: data.epoch.ok_or(DecodeError::Missing("epoch"))?,
            works: data.works.ok_or(DecodeError::Missing("works"))?,
            newest,
        }))
    }

    /// The source an event comes from. Its topic says it; the event must not say otherwise.
    fn sending_source(&self) -> Result<SourceId, DecodeError> {
        let source = self.place.source.clone().ok_or(DecodeError::Missing("source"))?;
        agrees("source", self.attributes.source.as_deref(), Some(source.as_str()))?;
        Ok(source)
    }

    fn resource_id(&self) -> Result<ResourceId, DecodeError> {
        let text = self.attributes.resource_id.as_deref().ok_or(DecodeError::Missing("resourceid"))?;
        Ok(ResourceId::new(text)?)
    }

    fn version(&self) -> Result<Version, DecodeError> {
        let text = self.attributes.resource_version.as_deref().ok_or(DecodeError::Missing("resourceversion"))?;
        parse_version(text)
            .filter(|version| self.dialect == Dialect::Seed || *version <= Version::MAX)
            .ok_or_else(|| impossible("resourceversion", text))
    }

    fn epoch(&self) -> Result<Option<Epoch>, DecodeError> {
        Ok(non_empty(&self.attributes.epoch).map(Epoch::new).transpose()?)
    }

    fn others(&self) -> Result<Vec<SourceId>, NameError> {
        let list = non_empty(&self.attributes.others);
        list.into_iter().flat_map(|list| list.split(',')).map(SourceId::new).collect()
    }

    fn time(&self) -> Result<Option<Timestamp>, DecodeError> {
        non_empty(&self.attributes.time).map(|text| parse_time("time", text)).transpose()
    }

    fn order(&self) -> Result<Order, DecodeError> {
        if let Some(text) = self.attributes.sequence.as_deref() {
            return parse_sequence(text).map(Order::Exact);
        }
        Ok(self.time()?.map_or(Order::Unknown, |time| Order::Time(Sequence::from_time(time))))
    }

    fn meta(&self) -> Option<Meta> {
        non_empty(&self.attributes.metadata).map(|json| Meta::Json(Arc::from(json)))
    }
}

fn non_empty<'a>(attribute: &'a Option<Cow<'_, str>>) -> Option<&'a str> {
    attribute.as_deref().filter(|text| !text.is_empty())
}

/// What an event says must be what its topic says, or nothing.
fn agrees(name: &'static str, said: Option<&str>, known: Option<&str>) -> Result<(), DecodeError> {
    match (said.filter(|text| !text.is_empty()), known) {
        (Some(said), Some(known)) if said != known => Err(DecodeError::Forged { name, value: shown(said) }),
        _ => Ok(()),
    }
}

fn parse_time(name: &'static str, text: &str) -> Result<Timestamp, DecodeError> {
    text.parse().map_err(|_| impossible(name, text))
}

fn parse_sequence(text: &str) -> Result<Sequence, DecodeError> {
    text.parse().ok().and_then(Sequence::new).ok_or_else(|| impossible("sequenceid", text))
}

fn impossible(name: &'static str, value: &str) -> DecodeError {
    DecodeError::Attribute { name, value: shown(value) }
}

/// The beginning of a stranger's text, for people to read.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN_BYTES).collect()
}
