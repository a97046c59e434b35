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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Counters,
    fleet::Fleet,
    path,
    space::{ReturnedState, Space},
    store::{event, says, status},
    write::{self, Unwritten},
};
use crate::{
    delivery::{BindingChange, Settled},
    placement::ObjectId,
    status::{
        aggregate::{Returned, Wanted, returned},
        combine::Row,
    },
};

/// How long after a start states are only written when all clusters have reported: what they said before is not known any more.
const GRACE: Duration = Duration::from_secs(60);
/// After how many kinds whose objects cannot be written the rest of a space waits.
const MAX_UNWRITABLE: usize = 2;
/// How many objects an error about the wrong number of clusters shows.
const MAX_EXAMPLES: usize = 4;
/// Kinds whose status is never that of another cluster.
const STATELESS: [&str; 2] = ["Namespace", "CustomResourceDefinition"];
/// The longest value of a label.
const MAX_LABEL: usize = 63;

impl Fleet {
    /// Writes what is to be said about policies, CustomTransforms, StatusCollectors and the states of objects.
    pub(super) async fn tell_states(&mut self, name: &Arc<str>) {
        let began = Instant::now();
        let is_due = |space: &&mut Space| space.is_loaded() && space.saying.is_over(began);
        let Some(space) = self.spaces.get_mut(name).filter(is_due) else { return };
        let bindings = std::mem::take(&mut space.bindings_judged);
        let is_said = self.tell_all_errors(name, bindings).await
            && self.tell_statuses(name).await
            && self.tell_objects(name).await;
        let Some(space) = self.spaces.get_mut(name) else { return };
        if is_said {
            space.saying.end();
        } else {
            space.saying.begin(began);
        }
    }

    /// Writes what is wrong with Bindings. Says whether all could be written.
    async fn tell_all_errors(&mut self, name: &Arc<str>, bindings: BTreeSet<Arc<str>>) -> bool {
        let mut is_said = true;
        for binding in bindings {
            let is_stored = self.spaces.get(name).is_some_and(|space| !space.pending.contains_key(&binding));
            let told = is_stored && is_said;
            if told && self.tell_errors(name, &binding).await != Err(Unwritten::NotNow) {
                continue;
            }
            is_said &= !told;
            if let Some(space) = self.spaces.get_mut(name) {
                space.bindings_judged.insert(binding);
            }
        }
        is_said
    }

    /// Writes what is to be said about policies, CustomTransforms and StatusCollectors. Says whether all could be written.
    async fn tell_statuses(&mut self, name: &Arc<str>) -> bool {
        let (stop, counters) = (self.stop.clone(), Arc::clone(&self.counters));
        let failed = || Counters::add(&counters.failed_writes, 1);
        let (now, errors) = ((self.config.clock)().to_string(), &self.errors);
        let Some(space) = self.spaces.get_mut(name) else { return true };
        let mut parts: Vec<(Judged, Value, Option<Value>)> = Vec::new();
        for policy in std::mem::take(&mut space.policies_judged) {
            if let Some(status) = policy_status(space, name, &policy, errors, &now) {
                let refusal = space.delivery.refusal(&policy).filter(|refusal| !is_told(space, &policy, refusal));
                let about = refusal.zip(space.policies.get(&policy));
                let told = about.map(|(refusal, written)| event(&path::policies(), &policy, written, &refusal, &now));
                parts.push((Judged::Policy(policy), status, told));
            }
        }
        for transform in std::mem::take(&mut space.judged) {
            let (Some(written), Some(verdict)) = (space.transforms.get(&transform), space.delivery.verdict(&transform))
            else {
                continue;
            };
            let status = status(written.generation, &[("errors", &verdict.errors), ("warnings", &verdict.warnings)]);
            if !says(&written.status, &status) {
                parts.push((Judged::Transform(transform), status, None));
            }
        }
        for collector in std::mem::take(&mut space.collectors_judged) {
            let Some(known) = space.collectors.get(&collector) else { continue };
            let errors = known.collector.as_ref().err().map(Vec::as_slice).unwrap_or_default();
            let status = status(known.written.generation, &[("errors", errors)]);
            if !says(&known.written.status, &status) {
                parts.push((Judged::Collector(collector), status, None));
            }
        }
        let mut is_said = true;
        for (judged, status, event) in parts {
            if is_said {
                let (path, part) = (format!("{}/status", judged.path()), json!({"status": status}));
                let written = write::persist("a status", &stop, failed, || write::merge(&space.client, &path, &part));
                is_said = written.await != Err(Unwritten::NotNow);
            }
            if !is_said {
                space.judge_again(judged);
                continue;
            }
            space.note_said(&judged, status);
            if let Some(event) = event {
                // Whoever missed it finds it in the status.
                let _missed = write::persist("an Event", &stop, failed, || write::report(&space.client, &event)).await;
            }
        }
        is_said && space.hold(&stop, &failed).await.is_ok()
    }

    /// Writes the states of objects and their tables. Says whether to go on soon.
    ///
    /// What cannot be written now is left for later, with all of its kind: what fails for one fails for others. After a few
    /// kinds the rest waits, too, and then has its turn first.
    async fn tell_objects(&mut self, name: &Arc<str>) -> bool {
        let (stop, counters) = (self.stop.clone(), Arc::clone(&self.counters));
        let failed = || Counters::add(&counters.failed_writes, 1);
        let (now, settling) = (Instant::now(), self.began.elapsed() < GRACE);
        let Some(space) = self.spaces.get_mut(name) else { return true };
        let mut rest = std::mem::take(&mut space.unreported);
        let first = space.unsaid_from.take().map(|start| rest.split_off(&start)).unwrap_or_default();
        let (mut is_postponed, mut failures) = (false, 0);
        for id in first.into_iter().chain(rest) {
            let is_known = space.returned.get(&id).is_some_and(|known| known.status.is_some());
            if settling && !space.all_reported(&id) && !is_known {
                is_postponed = true;
                space.unreported.insert(id);
            } else if failures == MAX_UNWRITABLE {
                space.unsaid_from.get_or_insert_with(|| id.clone());
                space.unreported.insert(id);
            } else if space.unwritable.get(&id.resource).is_some_and(|pause| !pause.is_over(now)) {
                space.unreported.insert(id);
            } else if tell_object(space, &id, &stop, &failed).await == Err(Unwritten::NotNow) {
                failures += 1;
                space.unwritable.entry(id.resource.clone()).or_default().begin(now);
                space.unreported.insert(id);
            } else {
                space.unwritable.remove(&id.resource);
            }
        }
        let let_go = if failures < MAX_UNWRITABLE { space.let_go(&stop, &failed).await } else { Ok(false) };
        if let_go == Ok(true) {
            self.soon();
        }
        if is_postponed {
            self.later(self.config.reports_pause);
        }
        failures < MAX_UNWRITABLE && let_go.is_ok()
    }
}

/// Writes the state of an object and its tables.
async fn tell_object(
    space: &mut Space,
    id: &ObjectId,
    stop: &CancellationToken,
    failed: &impl Fn(),
) -> Result<(), Unwritten> {
    if tell_state(space, id, stop, failed).await == Err(Unwritten::NotNow) {
        return Err(Unwritten::NotNow);
    }
    tell_tables(space, id, stop, failed).await
}

/// What something is said about.
enum Judged {
    Policy(Arc<str>),
    Transform(String),
    Collector(String),
}

impl Judged {
    fn path(&self) -> String {
        match self {
            Self::Policy(name) => path::object(&path::policies(), "", name),
            Self::Transform(name) => path::object(&path::transforms(), "", name),
            Self::Collector(name) => path::object(&path::collectors(), "", name),
        }
    }
}

impl Space {
    fn note_said(&mut self, judged: &Judged, status: Value) {
        if let Judged::Policy(name) = judged
            && let Some(written) = self.policies.get_mut(name)
        {
            written.status = status;
        }
    }

    fn judge_again(&mut self, judged: Judged) {
        match judged {
            Judged::Policy(name) => drop(self.policies_judged.insert(name)),
            Judged::Transform(name) => drop(self.judged.insert(name)),
            Judged::Collector(name) => drop(self.collectors_judged.insert(name)),
        }
    }

    /// What was settled may change what is said about the states of objects.
    pub(super) fn note_states(&mut self, settled: &Settled) {
        self.policies_judged.extend(settled.judged.iter().cloned());
        for change in settled.bindings.values() {
            if let BindingChange::Spec { policy, .. } = change {
                self.policies_judged.insert(Arc::clone(policy));
            }
        }
        let is_said = |id: &&ObjectId| {
            let mut asked = self.delivery.asked(id);
            self.returned.contains_key(*id)
                || !self.combined.is_empty()
                || asked.any(|(_, modulation, _)| wants_state(modulation))
        };
        let said: Vec<ObjectId> = settled.members.iter().filter(is_said).cloned().collect();
        self.unreported.extend(said);
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
async fn tell_state(
    space: &mut Space,
    id: &ObjectId,
    stop: &CancellationToken,
    failed: &impl Fn(),
) -> Result<(), Unwritten> {
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
    let Some(resource) = watched.or(known.map(|known| &known.resource)).cloned() else { return Ok(()) };
    if STATELESS.contains(&resource.kind.as_str()) {
        return Ok(());
    }
    let states: Vec<Option<&Value>> =
        clusters.iter().map(|cluster| space.reports.get(id, cluster).map(|report| &*report.status)).collect();
    let written = known.and_then(|known| known.status.as_ref());
    let status = match returned(&resource.kind, wanted, &states) {
        Returned::Untouched if known.is_some() => json!({}),
        Returned::Untouched => return Ok(()),
        // Nothing was heard yet: nothing is taken away either.
        Returned::Status(_) if written.is_none() && states.iter().all(Option::is_none) => return Ok(()),
        Returned::Status(status) => status,
    };
    if written == Some(&status) {
        return Ok(());
    }
    let path = path::of(id, &resource.version);
    let attempt = || write::set_status(&space.client, &path, &status);
    write::persist("the status of an object", stop, failed, attempt).await?;
    if wanted == Wanted::default() {
        space.returned.remove(id);
    } else {
        space.returned.insert(id.clone(), ReturnedState { resource, status: Some(status) });
    }
    Ok(())
}

/// A policy, the StatusCollectors it names for an object, and the clusters it sends it to.
type Asked = (Arc<str>, Vec<String>, BTreeSet<Arc<str>>);

/// Writes the tables of the StatusCollectors that policies name for an object.
async fn tell_tables(
    space: &mut Space,
    id: &ObjectId,
    stop: &CancellationToken,
    failed: &impl Fn(),
) -> Result<(), Unwritten> {
    let Some((resource, uid)) = space.object(id) else { return Ok(()) };
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
            object = write::persist("a question", stop, failed, || write::get(&space.client, &path)).await?;
        }
        let Some(content) = &object else { return Ok(()) };
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
            write::persist("a namespace", stop, failed, attempt).await?;
        }
        let (fields, kind) = (json!({"results": results}), path::combined());
        let attempt = || write::ensure(&space.client, &kind, namespace, &name, &frame, &fields);
        write::persist("a CombinedStatus", stop, failed, attempt).await?;
        space.combined.insert((namespace.to_owned(), name));
    }
    let prefix = format!("{uid}.");
    let known = space.combined.range((namespace.to_owned(), prefix.clone())..);
    let of_it = known.take_while(|(within, name)| within == namespace && name.starts_with(&prefix));
    let unwanted: Vec<_> = of_it.filter(|(_, name)| !wanted.contains(name)).cloned().collect();
    for (namespace, name) in unwanted {
        let path = path::object(&path::combined(), &namespace, &name);
        write::persist("a CombinedStatus", stop, failed, || write::delete(&space.client, &path)).await?;
        space.combined.remove(&(namespace, name));
    }
    Ok(())
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

/// Whether the status of a policy says something already.
fn is_told(space: &Space, policy: &str, error: &str) -> bool {
    let errors = space.policies.get(policy).and_then(|written| written.status["errors"].as_array());
    errors.into_iter().flatten().any(|told| told == error)
}

fn policy_status(
    space: &Space,
    name: &Arc<str>,
    policy: &Arc<str>,
    errors: &std::collections::BTreeMap<(Arc<str>, Arc<str>), Vec<String>>,
    now: &str,
) -> Option<Value> {
    let mut found: Vec<String> = space.delivery.refusal(policy).into_iter().collect();
    found.extend(singleton_error(space, policy));
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for binding in space.delivery.bindings_of(policy) {
        let of_part = errors.get(&(Arc::clone(name), Arc::clone(binding.name)));
        found.extend(of_part.into_iter().flatten().cloned());
        named.extend(binding.collectors);
    }
    let written = space.policies.get(policy)?;
    let missing: Vec<&str> = named.into_iter().filter(|name| !space.collectors.contains_key(*name)).collect();
    let mut status = status(written.generation, &[("errors", &found)]);
    status["conditions"] = json!([condition(&missing, &written.status, now)]);
    (!says(&written.status, &status)).then_some(status)
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
    for binding in space.delivery.bindings_of(policy).filter(|binding| binding.destinations.len() != 1) {
        wrong.extend(binding.single.iter().take(MAX_EXAMPLES - wrong.len()).map(|id| {
            json!({"group": &*id.resource.group, "resource": &*id.resource.resource, "namespace": &*id.namespace, "name": &*id.name})
        }));
    }
    if wrong.is_empty() {
        return None;
    }
    Some(format!(
        "Singleton reported status return is requested but some objects have the wrong number of associated WECs, for example: {}",
        Value::Array(wrong)
    ))
}
