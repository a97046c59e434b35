//! The last state that each cluster reported of each object.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use orrery_api::work::{FeedbackRule, JsonPath, ManifestCondition, ManifestWorkStatus};
use serde_json::Value;

use crate::placement::ObjectId;

/// The name under which works ask for the whole status of an object.
pub const FEEDBACK_NAME: &str = "status";

/// What a work carries for an object whose state is wanted.
pub fn feedback_rule() -> FeedbackRule {
    let path = JsonPath { name: FEEDBACK_NAME.into(), version: String::new(), path: ".status".into() };
    FeedbackRule { r#type: "JSONPaths".into(), json_paths: vec![path] }
}

/// What a cluster reported of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The object's status there.
    pub status: Arc<Value>,
    /// When it last changed.
    pub updated: Timestamp,
}

/// The last reports, by object and cluster.
#[derive(Debug, Default)]
pub struct Reports {
    objects: BTreeMap<ObjectId, BTreeMap<Arc<str>, Report>>,
}

impl Reports {
    /// The reports about an object, by cluster.
    pub fn of(&self, object: &ObjectId) -> impl Iterator<Item = (&Arc<str>, &Report)> {
        self.objects.get(object).into_iter().flatten()
    }

    /// The report of one cluster about an object.
    pub fn get(&self, object: &ObjectId, cluster: &str) -> Option<&Report> {
        self.objects.get(object)?.get(cluster)
    }

    /// A cluster said something about a work with these objects. Answers which of them have another state now.
    ///
    /// An object that is not mentioned, or whose state cannot be read, keeps the one that is known: a work in a new version is
    /// reported before its objects are looked at. One that is mentioned without a state has none there any more.
    pub fn hear(
        &mut self,
        cluster: &Arc<str>,
        objects: &BTreeSet<ObjectId>,
        status: &ManifestWorkStatus,
        now: Timestamp,
    ) -> BTreeSet<ObjectId> {
        let mut changed = BTreeSet::new();
        for manifest in &status.resource_status.manifests {
            let meta = &manifest.resource_meta;
            let object = ObjectId::new(&meta.group, &meta.resource, &meta.namespace, &meta.name);
            // A cluster has a say in what it was sent, and in nothing else.
            if !objects.contains(&object) {
                continue;
            }
            let is_news = match state(manifest) {
                State::Unreadable => false,
                State::Absent => self.forget(&object, cluster),
                State::Is(state) => self.note(&object, cluster, state, now),
            };
            if is_news {
                changed.insert(object);
            }
        }
        changed
    }

    fn note(&mut self, object: &ObjectId, cluster: &Arc<str>, state: Value, now: Timestamp) -> bool {
        let known = self.objects.entry(object.clone()).or_default();
        if known.get(cluster).is_some_and(|report| *report.status == state) {
            return false;
        }
        known.insert(Arc::clone(cluster), Report { status: Arc::new(state), updated: now });
        true
    }

    fn forget(&mut self, object: &ObjectId, cluster: &Arc<str>) -> bool {
        let Some(known) = self.objects.get_mut(object) else { return false };
        let was_known = known.remove(cluster).is_some();
        if known.is_empty() {
            self.objects.remove(object);
        }
        was_known
    }

    /// Forgets what other clusters said about an object.
    pub fn keep_only(&mut self, object: &ObjectId, has_it: impl Fn(&Arc<str>) -> bool) {
        let Some(known) = self.objects.get_mut(object) else { return };
        known.retain(|cluster, _| has_it(cluster));
        if known.is_empty() {
            self.objects.remove(object);
        }
    }
}

/// What a manifest's feedback says about the whole status of an object.
enum State {
    Is(Value),
    Absent,
    Unreadable,
}

fn state(manifest: &ManifestCondition) -> State {
    let value = manifest.status_feedback.values.iter().find(|value| value.name == FEEDBACK_NAME);
    let Some(value) = value else { return State::Absent };
    let raw = value.field_value.json_raw.as_deref();
    raw.and_then(|raw| serde_json::from_str(raw).ok()).map_or(State::Unreadable, State::Is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(manifests: Value) -> ManifestWorkStatus {
        serde_json::from_value(serde_json::json!({"resourceStatus": {"manifests": manifests}})).expect("a status")
    }

    fn manifest(name: &str, raw: &str) -> Value {
        serde_json::json!({
            "resourceMeta": {"ordinal": 0, "group": "apps", "resource": "deployments", "namespace": "n", "name": name},
            "statusFeedback": {"values": [{"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": raw}}]},
            "conditions": [],
        })
    }

    #[test]
    fn only_what_changed_and_was_sent_there_counts() {
        let (a, b) = (ObjectId::new("apps", "deployments", "n", "a"), ObjectId::new("apps", "deployments", "n", "b"));
        let (sent, cluster) = (BTreeSet::from([a.clone()]), Arc::from("c1"));
        let mut reports = Reports::default();
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let heard = status(serde_json::json!([manifest("a", r#"{"replicas":1}"#), manifest("b", "{}")]));
        assert_eq!(reports.hear(&cluster, &sent, &heard, early), BTreeSet::from([a.clone()]));
        assert!(reports.hear(&cluster, &sent, &heard, late).is_empty(), "it is the same again");
        assert_eq!(reports.get(&a, "c1").map(|report| report.updated), Some(early));
        assert!(reports.get(&b, "c1").is_none(), "the cluster was not sent it");
        let garbage =
            status(serde_json::json!([manifest("a", "{"), {"resourceMeta": {"ordinal": 0}, "conditions": []}]));
        assert!(reports.hear(&cluster, &sent, &garbage, late).is_empty());
        let mut vanished = manifest("a", "");
        vanished["statusFeedback"] = serde_json::json!({});
        let vanished = status(serde_json::json!([vanished]));
        assert!(reports.hear(&Arc::from("c2"), &sent, &vanished, late).is_empty(), "it said nothing before");
        assert_eq!(reports.hear(&cluster, &sent, &vanished, late), BTreeSet::from([a.clone()]));
        assert!(reports.get(&a, "c1").is_none(), "it has none any more");
        assert_eq!(reports.hear(&cluster, &sent, &heard, late), BTreeSet::from([a.clone()]));
        reports.keep_only(&a, |cluster| **cluster == *"c1");
        assert_eq!(reports.of(&a).count(), 1);
        reports.keep_only(&a, |_| false);
        assert_eq!(reports.of(&a).count(), 0);
    }
}
