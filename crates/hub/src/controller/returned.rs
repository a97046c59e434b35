//! What is said about policies, CustomTransforms and StatusCollectors, and what comes back from clusters: states and tables.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use orrery_api::{
    control::{
        Modulation,
        collect::{NamedStatusCombination, REPORT_NAMESPACE, label},
    },
    work::Condition,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Counters,
    fleet::Fleet,
    path,
    space::{ReturnedState, Space},
    store::{policy_of, says, status},
    write,
};
use crate::{
    delivery::{BindingChange, Settled},
    placement::{Answer, ObjectId, parts},
    status::{
        aggregate::{Returned, Wanted, returned},
        combine::Row,
    },
};

/// How long after a start states are only written when all clusters have reported: what they said before is not known any more.
const GRACE: Duration = Duration::from_secs(60);
/// How many objects an error about the wrong number of clusters shows.
const MAX_EXAMPLES: usize = 4;
/// Kinds whose status is never that of another cluster.
const STATELESS: [&str; 2] = ["Namespace", "CustomResourceDefinition"];
/// The longest value of a label.
const MAX_LABEL: usize = 63;

impl Fleet {
    /// Writes what is to be said about policies, CustomTransforms, StatusCollectors and the states of objects.
    pub(super) async fn tell_states(&mut self, name: &Arc<str>) {
        let (stop, counters) = (self.stop.clone(), Arc::clone(&self.counters));
        let failed = || Counters::add(&counters.failed_writes, 1);
        let (now, settling) = ((self.config.clock)().to_string(), self.began.elapsed() < GRACE);
        let errors = &self.errors;
        let Some(space) = self.spaces.get_mut(name).filter(|space| space.is_loaded()) else { return };
        let mut parts: Vec<(String, Value)> = Vec::new();
        for policy in std::mem::take(&mut space.policies_judged) {
            if let Some(part) = policy_status(space, name, &policy, errors, &now) {
                parts.push((path::object(&path::policies(), "", &policy), part));
            }
        }
        for transform in std::mem::take(&mut space.judged) {
            let (Some(written), Some(verdict)) = (space.transforms.get(&transform), space.delivery.verdict(&transform))
            else {
                continue;
            };
            let status = status(written.generation, &[("errors", &verdict.errors), ("warnings", &verdict.warnings)]);
            if !says(&written.status, &status) {
                parts.push((path::object(&path::transforms(), "", &transform), status));
            }
        }
        for collector in std::mem::take(&mut space.collectors_judged) {
            let Some(known) = space.collectors.get(&collector) else { continue };
            let errors = known.collector.as_ref().err().map(Vec::as_slice).unwrap_or_default();
            let status = status(known.written.generation, &[("errors", errors)]);
            if !says(&known.written.status, &status) {
                parts.push((path::object(&path::collectors(), "", &collector), status));
            }
        }
        for (path, status) in parts {
            let (path, part) = (format!("{path}/status"), json!({"status": status}));
            write::persist("a status", &stop, failed, || write::merge(&space.client, &path, &part)).await;
        }
        let mut postponed = BTreeSet::new();
        for id in std::mem::take(&mut space.unreported) {
            let is_known = space.returned.get(&id).is_some_and(|known| known.status.is_some());
            if settling && !space.all_reported(&id) && !is_known {
                postponed.insert(id);
                continue;
            }
            tell_state(space, &id, &stop, &failed).await;
            tell_tables(space, &id, &stop, &failed).await;
        }
        if !postponed.is_empty() {
            space.unreported = postponed;
            self.later(self.config.reports_pause);
        }
    }
}

impl Space {
    /// What was settled may change what is said about the states of objects.
    pub(super) fn note_states(&mut self, settled: &Settled) {
        for (binding, change) in &settled.bindings {
            if let BindingChange::Spec { policy, spec } = change {
                self.policies_judged.insert(Arc::clone(policy));
                let objects = spec.workload.cluster_scope.iter().chain(&spec.workload.namespace_scope);
                let wanted = objects.filter(|object| wants_state(&object.modulation));
                self.unreported.extend(wanted.map(|bound| ObjectId::from(&bound.object)));
            } else if let Some(policy) = policy_of(self, binding) {
                self.policies_judged.insert(policy);
            }
        }
        if !settled.bindings.is_empty() {
            // Whoever had a state written and is not asked for any more.
            self.unreported.extend(self.returned.keys().cloned());
        }
    }

    /// Whether every cluster that should have an object has reported about it.
    fn all_reported(&self, id: &ObjectId) -> bool {
        let mut asked = self.delivery.asked(id).filter(|(_, modulation, _)| wants_state(modulation));
        asked.all(|(_, _, clusters)| clusters.iter().all(|cluster| self.reports.get(id, cluster).is_some()))
    }
}

fn wants_state(modulation: &Modulation) -> bool {
    modulation.want_singleton_reported_state
        || modulation.want_multi_wec_reported_state
        || !modulation.status_collectors.is_empty()
}

/// Writes the status of an object, if somebody wants it.
async fn tell_state(space: &mut Space, id: &ObjectId, stop: &CancellationToken, failed: &impl Fn()) {
    let mut wanted = Wanted::default();
    let mut clusters: BTreeSet<Arc<str>> = BTreeSet::new();
    for (_, modulation, destinations) in space.delivery.asked(id) {
        let (one, all) = (modulation.want_singleton_reported_state, modulation.want_multi_wec_reported_state);
        wanted.singleton |= one;
        wanted.aggregated |= all;
        if one || all {
            clusters.extend(destinations.iter().cloned());
        }
    }
    space.reports.keep_only(id, |cluster| space.delivery.asked(id).any(|(_, _, to)| to.contains(cluster)));
    let known = space.returned.get(id);
    // A kind that no policy selects any more is not watched, but what was written to its objects is taken back.
    let watched = space.object(id).map(|(resource, _)| resource);
    let Some(resource) = watched.or(known.map(|known| &known.resource)).cloned() else { return };
    if STATELESS.contains(&resource.kind.as_str()) {
        return;
    }
    let states: Vec<Option<&Value>> =
        clusters.iter().map(|cluster| space.reports.get(id, cluster).map(|report| &*report.status)).collect();
    let written = known.and_then(|known| known.status.as_ref());
    let status = match returned(&resource.kind, wanted, &states) {
        Returned::Untouched if known.is_some() => json!({}),
        Returned::Untouched => return,
        // Nothing was heard yet: nothing is taken away either.
        Returned::Status(_) if written.is_none() && states.iter().all(Option::is_none) => return,
        Returned::Status(status) => status,
    };
    if written == Some(&status) {
        return;
    }
    let path = path::of(id, &resource.version);
    let attempt = || write::set_status(&space.client, &path, &status);
    if write::persist("the status of an object", stop, failed, attempt).await.is_some() {
        if wanted == Wanted::default() {
            space.returned.remove(id);
        } else {
            space.returned.insert(id.clone(), ReturnedState { resource, status: Some(status) });
        }
    }
}

/// A policy, the StatusCollectors it names for an object, and the clusters it sends it to.
type Asked = (Arc<str>, Vec<String>, BTreeSet<Arc<str>>);

/// Writes the tables of the StatusCollectors that policies name for an object.
async fn tell_tables(space: &mut Space, id: &ObjectId, stop: &CancellationToken, failed: &impl Fn()) {
    let Some((resource, uid)) = space.object(id) else { return };
    let (resource, uid) = (resource.clone(), Arc::clone(uid));
    let asked: Vec<Asked> = space
        .delivery
        .asked(id)
        .map(|(policy, modulation, to)| (Arc::clone(policy), modulation.status_collectors.clone(), to.clone()))
        .collect();
    let namespace = if id.namespace.is_empty() { REPORT_NAMESPACE } else { &*id.namespace };
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let mut object: Option<Value> = None;
    for (policy, collectors, clusters) in asked.into_iter().filter(|(_, collectors, _)| !collectors.is_empty()) {
        let Some(policy_uid) = space.policies.get(&policy).map(|policy| Arc::clone(&policy.uid)) else { continue };
        if object.is_none() {
            let path = path::of(id, &resource.version);
            let found = write::persist("a question", stop, failed, || write::get(&space.client, &path)).await;
            let Some(Some(found)) = found else { return };
            object = Some(found);
        }
        let Some(content) = &object else { return };
        let rows: Vec<Row<'_>> = clusters
            .iter()
            .filter_map(|cluster| {
                let report = space.reports.get(id, cluster)?;
                Some(Row { cluster, status: &report.status, updated: report.updated })
            })
            .collect();
        let ready = collectors.iter().filter_map(|name| {
            let collector = space.collectors.get(name)?.collector.as_ref().ok()?;
            Some(collector.run(name, content, &rows))
        });
        let results: Vec<NamedStatusCombination> = ready.collect();
        let name = format!("{uid}.{policy_uid}");
        wanted.insert(name.clone());
        let frame = json!({"metadata": {
            "labels": labels(id, &policy),
            "ownerReferences": [{"apiVersion": resource.api_version, "kind": resource.kind, "name": &*id.name, "uid": &*uid}],
        }});
        if namespace == REPORT_NAMESPACE {
            let (kind, frame) = (path::namespaces(), json!({}));
            let attempt = || write::ensure(&space.client, &kind, "", REPORT_NAMESPACE, &frame, &frame);
            write::persist("a namespace", stop, failed, attempt).await;
        }
        let (fields, kind) = (json!({"results": results}), path::combined());
        let attempt = || write::ensure(&space.client, &kind, namespace, &name, &frame, &fields);
        if write::persist("a CombinedStatus", stop, failed, attempt).await.is_some() {
            space.combined.insert((namespace.to_owned(), name));
        }
    }
    let prefix = format!("{uid}.");
    let known = space.combined.range((namespace.to_owned(), prefix.clone())..);
    let of_it = known.take_while(|(within, name)| within == namespace && name.starts_with(&prefix));
    let unwanted: Vec<_> = of_it.filter(|(_, name)| !wanted.contains(name)).cloned().collect();
    for (namespace, name) in unwanted {
        let path = path::object(&path::combined(), &namespace, &name);
        write::persist("a CombinedStatus", stop, failed, || write::delete(&space.client, &path)).await;
        space.combined.remove(&(namespace, name));
    }
}

/// What a CombinedStatus is about. What no label can hold is left out.
fn labels(id: &ObjectId, policy: &str) -> Map<String, Value> {
    let all = [
        (label::API_GROUP, &*id.resource.group),
        (label::RESOURCE, &*id.resource.resource),
        (label::NAMESPACE, &*id.namespace),
        (label::NAME, &*id.name),
        (label::BINDING_POLICY, policy),
    ];
    let fits = |text: &str| {
        let ends = |text: &str| {
            let ends = [text.chars().next(), text.chars().last()];
            ends.iter().flatten().all(char::is_ascii_alphanumeric)
        };
        let inner = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        text.len() <= MAX_LABEL && ends(text) && text.chars().all(inner)
    };
    all.into_iter().filter(|(_, value)| fits(value)).map(|(name, value)| (name.to_owned(), value.into())).collect()
}

fn policy_status(
    space: &mut Space,
    name: &Arc<str>,
    policy: &Arc<str>,
    errors: &std::collections::BTreeMap<(Arc<str>, Arc<str>), Vec<String>>,
    now: &str,
) -> Option<Value> {
    let mut found = singleton_error(space, policy).into_iter().collect::<Vec<_>>();
    let mut named: BTreeSet<String> = BTreeSet::new();
    for part in 1.. {
        let Some(Answer { objects, .. }) = space.delivery.binding(policy, part) else { break };
        named.extend(objects.values().flat_map(|modulation| modulation.status_collectors.iter().cloned()));
        let of_part = errors.get(&(Arc::clone(name), parts::name(policy, part).into()));
        found.extend(of_part.into_iter().flatten().cloned());
    }
    let written = space.policies.get_mut(policy)?;
    let missing: Vec<&str> =
        named.iter().filter(|name| !space.collectors.contains_key(*name)).map(String::as_str).collect();
    let mut status = status(written.generation, &[("errors", &found)]);
    status["conditions"] = json!([condition(&missing, &written.status, now)]);
    if says(&written.status, &status) {
        return None;
    }
    written.status = status.clone();
    Some(status)
}

fn condition(missing: &[&str], known: &Value, now: &str) -> Value {
    let (truth, reason, message) = if missing.is_empty() {
        ("True", "ReconcileSuccess", "All StatusCollector(s) are available".to_owned())
    } else {
        ("False", "ReconcileError", format!("Missing StatusCollector(s) [{}]", missing.join(" ")))
    };
    let name = "StatusCollectorsAvailable";
    let before = known["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == name);
    let since =
        before.filter(|before| before["status"] == truth).and_then(|before| before["lastTransitionTime"].as_str());
    let condition = Condition {
        r#type: name.into(),
        status: truth.into(),
        observed_generation: 0,
        last_transition_time: Some(since.unwrap_or(now).to_owned()),
        reason: reason.into(),
        message,
    };
    serde_json::to_value(condition).unwrap_or_default()
}

/// Objects whose one state is wanted although they have no cluster or several.
fn singleton_error(space: &Space, policy: &str) -> Option<String> {
    let mut wrong = Vec::new();
    for part in 1.. {
        let Some(Answer { objects, destinations: clusters }) = space.delivery.binding(policy, part) else { break };
        let alone = |modulation: &&Modulation| {
            modulation.want_singleton_reported_state && !modulation.want_multi_wec_reported_state && clusters.len() != 1
        };
        let of_part = objects.iter().filter(|(_, modulation)| alone(modulation)).map(|(id, _)| id);
        wrong.extend(of_part.take(MAX_EXAMPLES - wrong.len()).map(|id| {
            json!({"group": &*id.resource.group, "resource": &*id.resource.resource, "namespace": &*id.namespace, "name": &*id.name})
        }));
        if wrong.len() == MAX_EXAMPLES {
            break;
        }
    }
    if wrong.is_empty() {
        return None;
    }
    Some(format!(
        "Singleton reported status return is requested but some objects have the wrong number of associated WECs, for example: {}",
        Value::Array(wrong)
    ))
}
