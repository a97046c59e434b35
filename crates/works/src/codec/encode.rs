//! Messages to packets.

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use super::{Dialect, EncodeError, Stamp, data::Payload, words};
use crate::{
    Message, Packet, ResyncCompleted, Spec, SpecResync, Status, StatusResync, Wish,
    event::{Meta, Scope},
    packet::{MAX_PROPERTY_BYTES, Text},
    topic::{TopicError, Topics},
};

/// Every attribute has it as a user property.
const PREFIX: &str = "ce-";
const JSON: &str = "application/json";
const STRUCTURED: &str = "application/cloudevents+json";

pub(super) fn encode(
    topics: &Topics,
    dialect: Dialect,
    message: &Message,
    stamp: Stamp<'_>,
) -> Result<Packet, EncodeError> {
    let topic = topic(topics, message)?;
    let mut event = Event::new(dialect, message, stamp);
    match message {
        Message::Spec(spec) => event.spec(spec),
        Message::Status(status) => event.status(status),
        Message::SpecResync(resync) => event.spec_resync(resync),
        Message::StatusResync(resync) => event.status_resync(resync),
        Message::ResyncCompleted(completed) => event.completed(completed),
    }
    match dialect {
        Dialect::Seed => event.structured(topic),
        Dialect::Ocm => event.binary(topic),
    }
}

fn topic(topics: &Topics, message: &Message) -> Result<String, TopicError> {
    match message {
        Message::Spec(spec) => topics.source_events(&spec.source, &spec.cluster),
        Message::ResyncCompleted(completed) => topics.source_events(&completed.source, &completed.cluster),
        Message::Status(status) => topics.agent_events(&status.source, &status.cluster),
        Message::SpecResync(resync) => topics.agent_broadcast(&resync.cluster, resync.addressee.as_ref()),
        Message::StatusResync(resync) => match (&resync.cluster, topics) {
            (Some(cluster), Topics::Ocm(_)) => topics.source_events(&resync.source, cluster),
            // The document has one topic for status resyncs, and every cluster listens to it.
            _ => topics.source_broadcast(&resync.source),
        },
    }
}

/// An event on its way to the wire.
struct Event<'a> {
    dialect: Dialect,
    id: String,
    source: &'a str,
    r#type: &'static str,
    time: Timestamp,
    /// By their names as user properties: what a structured event calls them begins behind [`PREFIX`].
    attributes: Vec<(&'static str, Value<'a>)>,
    payload: Option<Payload<'a>>,
}

enum Value<'a> {
    /// Of the message.
    Text(&'a str),
    /// Fixed, or made for this event.
    Own(Text),
    Number(i64),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Own(Text::Owned(text))
    }
}

impl Value<'_> {
    /// A word that is always the same.
    fn fixed(word: &'static str) -> Self {
        Self::Own(Text::Borrowed(word))
    }

    fn into_text(self) -> Text {
        match self {
            Self::Text(text) => Text::Owned(text.to_owned()),
            Self::Own(text) => text,
            Self::Number(number) => Text::Owned(number.to_string()),
        }
    }
}

impl<'a> Event<'a> {
    fn new(dialect: Dialect, message: &'a Message, stamp: Stamp<'a>) -> Self {
        let source = match message {
            Message::Spec(Spec { source, .. })
            | Message::StatusResync(StatusResync { source, .. })
            | Message::ResyncCompleted(ResyncCompleted { source, .. }) => source.as_str(),
            // The document signs a spec resync with the id of the source it is about.
            Message::SpecResync(SpecResync { scope: Some(Scope { listed: Some(source), .. }), .. })
                if dialect == Dialect::Seed =>
            {
                source.as_str()
            }
            Message::Status(_) | Message::SpecResync(_) => stamp.agent,
        };
        let id = uuid::Builder::from_random_bytes(stamp.id.to_be_bytes()).into_uuid();
        let id = id.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()).to_owned();
        let r#type = words::name(dialect, message);
        let attributes = Vec::with_capacity(10);
        Self { dialect, id, source, r#type, time: stamp.time, attributes, payload: None }
    }

    fn put(&mut self, name: &'static str, value: impl Into<Value<'a>>) {
        self.attributes.push((name, value.into()));
    }

    fn spec(&mut self, spec: &'a Spec) {
        let delete = match &spec.wish {
            Wish::Apply(bundle) => {
                self.payload = Some(Payload::Bundle(bundle));
                None
            }
            Wish::Delete(at) | Wish::Unknown(at) => Some(at.to_string()),
        };
        match self.dialect {
            Dialect::Seed => {
                self.put("ce-resourceID", spec.id.as_str());
                self.attributes.push(("ce-resourceVersion", Value::Number(spec.version.get())));
                delete.into_iter().for_each(|at| self.put("ce-deletionTimestamp", at));
            }
            Dialect::Ocm => {
                self.put("ce-clustername", spec.cluster.as_str());
                self.put("ce-originalsource", Value::fixed(""));
                self.put("ce-resourceid", spec.id.as_str());
                self.put("ce-resourceversion", spec.version.to_string());
                delete.into_iter().for_each(|at| self.put("ce-deletiontimestamp", at));
                self.metadata(spec.meta.as_ref(), spec.cluster.as_str(), spec.id.as_str(), spec.version.get());
            }
        }
        if let Some(epoch) = &spec.epoch {
            self.put("ce-epoch", epoch.as_str());
            if matches!(spec.wish, Wish::Unknown(_)) {
                self.put("ce-resourceunknown", Value::fixed("true"));
            }
        }
    }

    fn metadata(&mut self, meta: Option<&'a Meta>, namespace: &str, uid: &str, generation: i64) {
        #[derive(Serialize)]
        struct ObjectMeta<'a> {
            name: &'a str,
            namespace: &'a str,
            uid: &'a str,
            generation: i64,
        }
        let Some(meta) = meta else { return };
        // Go sends an empty map of trace annotations along with every metadata.
        self.put("ce-logtracing", Value::fixed("{}"));
        match meta {
            Meta::Json(json) => self.put("ce-metadata", &**json),
            Meta::Named(name) => {
                // As long as it nearly always is.
                let mut json = Vec::with_capacity(80 + name.len() + namespace.len() + uid.len());
                serde_json::to_writer(&mut json, &ObjectMeta { name, namespace, uid, generation })
                    .expect("text and numbers can be written as JSON");
                self.put("ce-metadata", String::from_utf8(json).expect("JSON is text"));
            }
        }
    }

    fn status(&mut self, status: &'a Status) {
        self.payload = Some(Payload::Status(&status.status));
        let sequence = status.sequence.sequence();
        match self.dialect {
            Dialect::Seed => {
                // Without sequence ids, the time is what orders two statuses.
                self.time = sequence.map_or(self.time, |sequence| sequence.time());
                self.put("ce-specResourceID", status.id.as_str());
                self.attributes.push(("ce-specResouceVersion", Value::Number(status.version.get())));
            }
            Dialect::Ocm => {
                self.put("ce-clustername", status.cluster.as_str());
                self.put("ce-originalsource", status.source.as_str());
                self.put("ce-resourceid", status.id.as_str());
                self.put("ce-resourceversion", status.version.to_string());
                sequence.into_iter().for_each(|sequence| self.put("ce-sequenceid", sequence.get().to_string()));
                self.put("ce-statushash", status.hash.to_string());
                self.metadata(status.meta.as_ref(), status.cluster.as_str(), status.id.as_str(), status.version.get());
            }
        }
    }

    fn spec_resync(&mut self, resync: &'a SpecResync) {
        self.payload = Some(Payload::Versions(&resync.versions));
        let listed = resync.scope.as_ref().and_then(|scope| scope.listed.as_ref());
        if self.dialect == Dialect::Ocm {
            self.put("ce-clustername", resync.cluster.as_str());
        }
        if self.dialect == Dialect::Ocm || listed.is_some() {
            self.put("ce-originalsource", listed.map_or("", |source| source.as_str()));
        }
        let Some(scope) = &resync.scope else { return };
        self.put("ce-epoch", scope.epoch.as_ref().map_or("", |epoch| epoch.as_str()));
        if !scope.others.is_empty() {
            let others: Vec<_> = scope.others.iter().map(|source| source.as_str()).collect();
            self.put("ce-othersources", others.join(","));
        }
        scope.after.iter().for_each(|id| self.put("ce-listedafter", id.as_str()));
        scope.upto.iter().for_each(|id| self.put("ce-listedupto", id.as_str()));
    }

    fn status_resync(&mut self, resync: &'a StatusResync) {
        self.payload = Some(Payload::Hashes(&resync.hashes));
        if self.dialect == Dialect::Ocm {
            self.put("ce-clustername", resync.cluster.as_ref().map_or("", |cluster| cluster.as_str()));
            self.put("ce-originalsource", Value::fixed(""));
        }
    }

    fn completed(&mut self, completed: &'a ResyncCompleted) {
        self.payload = Some(Payload::Completed {
            epoch: &completed.epoch,
            works: completed.works,
            sequence_id: completed.newest.map(|sequence| sequence.get().to_string()),
        });
        if self.dialect == Dialect::Ocm {
            self.put("ce-clustername", completed.cluster.as_str());
            self.put("ce-originalsource", Value::fixed(""));
        }
    }

    fn structured(self, topic: String) -> Result<Packet, EncodeError> {
        let mut json = Vec::with_capacity(512 + self.payload_bytes());
        json.extend_from_slice(b"{\"specversion\":\"1.0\"");
        let time = self.time.to_string();
        for (name, text) in [("id", &*self.id), ("source", self.source), ("type", self.r#type), ("time", &*time)] {
            write_member(&mut json, name, &Value::from(text))?;
        }
        if self.payload.is_some() {
            write_member(&mut json, "datacontenttype", &Value::from(JSON))?;
        }
        for (name, value) in &self.attributes {
            write_member(&mut json, &name[PREFIX.len()..], value)?;
        }
        if let Some(payload) = &self.payload {
            json.extend_from_slice(b",\"data\":");
            payload.write(self.dialect, &mut json)?;
        }
        json.push(b'}');
        let content_type = Some(Text::Borrowed(STRUCTURED));
        Ok(Packet { topic, content_type, properties: Vec::new(), payload: Bytes::from(json) })
    }

    fn binary(self, topic: String) -> Result<Packet, EncodeError> {
        let mut payload = Vec::with_capacity(self.payload_bytes());
        if let Some(data) = &self.payload {
            data.write(self.dialect, &mut payload)?;
        }
        let mut properties: Vec<(Text, Text)> = Vec::with_capacity(5 + self.attributes.len());
        let context = [
            ("ce-id", Value::from(self.id)),
            ("ce-source", Value::from(self.source)),
            ("ce-specversion", Value::fixed("1.0")),
            ("ce-type", Value::fixed(self.r#type)),
            ("ce-time", Value::from(self.time.to_string())),
        ];
        for (name, value) in context.into_iter().chain(self.attributes) {
            let text = value.into_text();
            if text.len() > MAX_PROPERTY_BYTES {
                return Err(EncodeError::AttributeTooLong(&name[PREFIX.len()..]));
            }
            properties.push((Text::Borrowed(name), text));
        }
        let content_type = self.payload.is_some().then_some(Text::Borrowed(JSON));
        Ok(Packet { topic, content_type, properties, payload: Bytes::from(payload) })
    }

    /// A guess, so that the buffer need not grow.
    fn payload_bytes(&self) -> usize {
        match &self.payload {
            Some(Payload::Bundle(bundle)) => bundle.manifest_bytes() + 64,
            Some(Payload::Versions(list)) => list.len() * 96,
            Some(Payload::Hashes(list)) => list.len() * 144,
            Some(Payload::Status(_) | Payload::Completed { .. }) => 256,
            None => 0,
        }
    }
}

fn write_member(json: &mut Vec<u8>, name: &str, value: &Value<'_>) -> serde_json::Result<()> {
    json.extend_from_slice(b",\"");
    json.extend_from_slice(name.as_bytes());
    json.extend_from_slice(b"\":");
    match value {
        Value::Text(text) => serde_json::to_writer(json, text),
        Value::Own(text) => serde_json::to_writer(json, text.as_ref()),
        Value::Number(number) => serde_json::to_writer(json, number),
    }
}
