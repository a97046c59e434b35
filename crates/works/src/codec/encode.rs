//! Messages to packets.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use super::{Dialect, EncodeError, Stamp, data::Payload, words};
use crate::{
    Message, Packet, ResyncCompleted, Spec, SpecResync, Status, StatusResync, Wish,
    event::{Meta, Scope},
    packet::MAX_PROPERTY_BYTES,
    topic::{TopicError, Topics},
};

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
    source: Cow<'a, str>,
    r#type: String,
    time: Timestamp,
    attributes: Vec<(&'static str, Value<'a>)>,
    payload: Option<Payload<'a>>,
}

enum Value<'a> {
    Text(Cow<'a, str>),
    Number(i64),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
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
        let id = uuid::Builder::from_random_bytes(stamp.id.to_be_bytes()).into_uuid().to_string();
        let r#type = words::name(dialect, message);
        let attributes = Vec::with_capacity(10);
        Self { dialect, id, source: source.into(), r#type, time: stamp.time, attributes, payload: None }
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
                self.put("resourceID", spec.id.as_str());
                self.attributes.push(("resourceVersion", Value::Number(spec.version.get())));
                delete.into_iter().for_each(|at| self.put("deletionTimestamp", at));
            }
            Dialect::Ocm => {
                self.put("clustername", spec.cluster.as_str());
                self.put("originalsource", "");
                self.put("resourceid", spec.id.as_str());
                self.put("resourceversion", spec.version.to_string());
                delete.into_iter().for_each(|at| self.put("deletiontimestamp", at));
                self.metadata(spec.meta.as_ref(), spec.cluster.as_str(), spec.id.as_str(), spec.version.get());
            }
        }
        if let Some(epoch) = &spec.epoch {
            self.put("epoch", epoch.as_str());
            if matches!(spec.wish, Wish::Unknown(_)) {
                self.put("resourceunknown", "true");
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
        self.put("logtracing", "{}");
        match meta {
            Meta::Json(json) => self.put("metadata", &**json),
            Meta::Named(name) => {
                let json = serde_json::to_string(&ObjectMeta { name, namespace, uid, generation });
                self.put("metadata", json.expect("text and numbers can be written as JSON"));
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
                self.put("specResourceID", status.id.as_str());
                self.attributes.push(("specResouceVersion", Value::Number(status.version.get())));
            }
            Dialect::Ocm => {
                self.put("clustername", status.cluster.as_str());
                self.put("originalsource", status.source.as_str());
                self.put("resourceid", status.id.as_str());
                self.put("resourceversion", status.version.to_string());
                sequence.into_iter().for_each(|sequence| self.put("sequenceid", sequence.get().to_string()));
                self.put("statushash", status.hash.to_string());
                self.metadata(status.meta.as_ref(), status.cluster.as_str(), status.id.as_str(), status.version.get());
            }
        }
    }

    fn spec_resync(&mut self, resync: &'a SpecResync) {
        self.payload = Some(Payload::Versions(&resync.versions));
        let listed = resync.scope.as_ref().and_then(|scope| scope.listed.as_ref());
        if self.dialect == Dialect::Ocm {
            self.put("clustername", resync.cluster.as_str());
        }
        if self.dialect == Dialect::Ocm || listed.is_some() {
            self.put("originalsource", listed.map_or("", |source| source.as_str()));
        }
        let Some(scope) = &resync.scope else { return };
        self.put("epoch", scope.epoch.as_ref().map_or("", |epoch| epoch.as_str()));
        if !scope.others.is_empty() {
            let others: Vec<_> = scope.others.iter().map(|source| source.as_str()).collect();
            self.put("othersources", others.join(","));
        }
        scope.after.iter().for_each(|id| self.put("listedafter", id.as_str()));
        scope.upto.iter().for_each(|id| self.put("listedupto", id.as_str()));
    }

    fn status_resync(&mut self, resync: &'a StatusResync) {
        self.payload = Some(Payload::Hashes(&resync.hashes));
        if self.dialect == Dialect::Ocm {
            self.put("clustername", resync.cluster.as_ref().map_or("", |cluster| cluster.as_str()));
            self.put("originalsource", "");
        }
    }

    fn completed(&mut self, completed: &'a ResyncCompleted) {
        self.payload = Some(Payload::Completed {
            epoch: &completed.epoch,
            works: completed.works,
            sequence_id: completed.newest.map(|sequence| sequence.get().to_string()),
        });
        if self.dialect == Dialect::Ocm {
            self.put("clustername", completed.cluster.as_str());
            self.put("originalsource", "");
        }
    }

    fn structured(self, topic: String) -> Result<Packet, EncodeError> {
        let mut json = Vec::with_capacity(512 + self.payload_bytes());
        json.extend_from_slice(b"{\"specversion\":\"1.0\"");
        let time = self.time.to_string();
        for (name, text) in [("id", &*self.id), ("source", &*self.source), ("type", &*self.r#type), ("time", &*time)] {
            write_member(&mut json, name, &Value::from(text))?;
        }
        if self.payload.is_some() {
            write_member(&mut json, "datacontenttype", &Value::from(JSON))?;
        }
        for (name, value) in &self.attributes {
            write_member(&mut json, name, value)?;
        }
        if let Some(payload) = &self.payload {
            json.extend_from_slice(b",\"data\":");
            payload.write(self.dialect, &mut json)?;
        }
        json.push(b'}');
        let content_type = Some(STRUCTURED.to_owned());
        Ok(Packet { topic, content_type, properties: Vec::new(), payload: Bytes::from(json) })
    }

    fn binary(self, topic: String) -> Result<Packet, EncodeError> {
        let mut payload = Vec::with_capacity(self.payload_bytes());
        let mut properties = Vec::with_capacity(5 + self.attributes.len());
        let mut put = |name: &str, value: String| properties.push((["ce-", name].concat(), value));
        put("id", self.id);
        put("source", self.source.into_owned());
        put("specversion", "1.0".to_owned());
        put("type", self.r#type);
        put("time", self.time.to_string());
        for (name, value) in self.attributes {
            let text = match value {
                Value::Text(text) => text.into_owned(),
                Value::Number(number) => number.to_string(),
            };
            if text.len() > MAX_PROPERTY_BYTES {
                return Err(EncodeError::AttributeTooLong(name));
            }
            put(name, text);
        }
        if let Some(data) = &self.payload {
            data.write(self.dialect, &mut payload)?;
        }
        let content_type = self.payload.is_some().then(|| JSON.to_owned());
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
        Value::Text(text) => serde_json::to_writer(json, text.as_ref()),
        Value::Number(number) => serde_json::to_writer(json, number),
    }
}
