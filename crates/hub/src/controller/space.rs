//! One workload space: what is watched in it, what was seen, and what is still awaited.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::{
    Client, ResourceExt,
    core::{ApiResource, DynamicObject},
    discovery::{Discovery, Scope, verbs},
};
use orrery_api::{
    control::{BindingPolicySpec, BindingSpec, CustomTransformSpec, collect::StatusCollectorSpec},
    ledger::WorkLedgerSpec,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::{task::AbortHandle, time::Instant};

use super::{
    feed::{Sight, Topic},
    path,
    pause::Pause,
    pending::Pending,
    questions::Recent,
    write,
};
use crate::{
    delivery::{self, Delivery, PolicyFacts, joined},
    placement::{GroupResource, ObjectId, parts},
    preview::Sendable,
    status::{Reports, combine::Collector},
};

/// Groups whose objects mean nothing elsewhere, or that are our own.
const GROUPS_LEFT_OUT: [&str; 8] = [
    "apiregistration.k8s.io",
    "control.kubestellar.io",
    "control.orrery.io",
    "coordination.k8s.io",
    "core.orrery.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// Resources that say what goes on in one cluster.
const RESOURCES_LEFT_OUT: [&str; 6] =
    ["csinodes", "csistoragecapacities", "endpoints", "events", "nodes", "workstatuses"];

pub(super) struct Space {
    pub(super) name: Arc<str>,
    pub(super) client: Client,
    pub(super) delivery: Delivery,
    pub(super) reports: Reports,
    pub(super) policies: BTreeMap<Arc<str>, Written>,
    pub(super) transforms: BTreeMap<String, Written>,
    pub(super) collectors: BTreeMap<String, Collecting>,
    /// The Bindings that are stored.
    pub(super) bindings: BTreeMap<Arc<str>, Written>,
    /// The further ledgers that are stored of each of them.
    pub(super) further: BTreeMap<Arc<str>, Vec<String>>,
    /// CombinedStatuses that are stored, by namespace and name.
    pub(super) combined: BTreeSet<(String, String)>,
    pub(super) watched: BTreeMap<GroupResource, Watched>,
    /// Watches that have not listed all there is.
    pub(super) awaited: BTreeSet<Topic>,
    /// What kinds there are must be asked anew.
    pub(super) rediscover: bool,
    /// Objects about whose state something else may be said now.
    pub(super) unreported: BTreeSet<ObjectId>,
    /// CustomTransforms about which something else is to be said.
    pub(super) judged: BTreeSet<String>,
    /// StatusCollectors about which something else is to be said.
    pub(super) collectors_judged: BTreeSet<String>,
    /// Policies about which something else is to be said.
    pub(super) policies_judged: BTreeSet<Arc<str>>,
    /// Bindings about which something else is to be said.
    pub(super) bindings_judged: BTreeSet<Arc<str>>,
    /// What was decided of Bindings and is not stored yet.
    pub(super) pending: BTreeMap<Arc<str>, Pending>,
    /// After nothing could be stored.
    pub(super) storing: Pause,
    /// After something could not be said.
    pub(super) saying: Pause,
    /// Kinds whose objects cannot be written now.
    pub(super) unwritable: BTreeMap<GroupResource, Pause>,
    /// The object at which to go on saying what could not be said.
    pub(super) unsaid_from: Option<ObjectId>,
    /// There is no such space any more.
    pub(super) gone: bool,
    /// Watches that end with the space.
    pub(super) tasks: Vec<AbortHandle>,
    /// The number of the last start of a watch.
    pub(super) start: u64,
    /// Whether what was stored has been taken in.
    pub(super) restored: bool,
    /// Questions that were asked lately.
    pub(super) recent: BTreeMap<String, Recent>,
    /// The kinds that can be sent, by group and kind.
    pub(super) sendable: BTreeMap<(String, String), Sendable>,
    /// The states that were written to objects.
    pub(super) returned: BTreeMap<ObjectId, ReturnedState>,
    /// Policies that are being deleted and held until states are taken back.
    pub(super) leaving: BTreeMap<Arc<str>, BindingPolicySpec>,
    /// Policies that are to be held.
    pub(super) unheld: BTreeSet<Arc<str>>,
    /// Resources whose objects may have had states written to them by a program before this one.
    pub(super) left_over: BTreeSet<GroupResource>,
}

/// A state that was written to an object.
#[derive(Clone, Debug)]
pub(super) struct ReturnedState {
    pub(super) resource: ApiResource,
    /// Not known when a program before this one wrote it.
    pub(super) status: Option<Value>,
}

/// An object of which something was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    pub(super) uid: Arc<str>,
    pub(super) generation: i64,
    /// The status as it was last seen or written.
    pub(super) status: Value,
}

/// A StatusCollector.
pub(super) struct Collecting {
    pub(super) written: Written,
    pub(super) collector: Result<Collector, Vec<String>>,
}

/// A kind whose objects are watched.
pub(super) struct Watched {
    pub(super) resource: ApiResource,
    pub(super) task: AbortHandle,
    pub(super) start: u64,
    /// The objects that are there, with their uids.
    pub(super) objects: HashMap<ObjectId, Arc<str>>,
}

impl Written {
    pub(super) fn of(object: &DynamicObject) -> Self {
        Self {
            uid: object.metadata.uid.as_deref().unwrap_or_default().into(),
            generation: object.metadata.generation.unwrap_or_default(),
            status: object.data.get("status").cloned().unwrap_or_default(),
        }
    }

    pub(super) fn of_value(object: &Value) -> Self {
        Self {
            uid: object["metadata"]["uid"].as_str().unwrap_or_default().into(),
            generation: object["metadata"]["generation"].as_i64().unwrap_or_default(),
            status: object.get("status").cloned().unwrap_or_default(),
        }
    }
}

impl Space {
    pub(super) fn new(name: &Arc<str>, client: Client, config: delivery::Config) -> Self {
        Self {
            name: Arc::clone(name),
            client,
            delivery: Delivery::new(name, config),
            reports: Reports::default(),
            policies: BTreeMap::new(),
            transforms: BTreeMap::new(),
            collectors: BTreeMap::new(),
            bindings: BTreeMap::new(),
            further: BTreeMap::new(),
            combined: BTreeSet::new(),
            watched: BTreeMap::new(),
            awaited: BTreeSet::new(),
            rediscover: true,
            unreported: BTreeSet::new(),
            judged: BTreeSet::new(),
            collectors_judged: BTreeSet::new(),
            policies_judged: BTreeSet::new(),
            bindings_judged: BTreeSet::new(),
            pending: BTreeMap::new(),
            storing: Pause::default(),
            saying: Pause::default(),
            unwritable: BTreeMap::new(),
            unsaid_from: None,
            gone: false,
            tasks: Vec::new(),
            start: 0,
            restored: false,
            recent: BTreeMap::new(),
            sendable: BTreeMap::new(),
            returned: BTreeMap::new(),
            leaving: BTreeMap::new(),
            unheld: BTreeSet::new(),
            left_over: BTreeSet::new(),
        }
    }

    /// Whether all that matters has been listed.
    pub(super) fn is_loaded(&self) -> bool {
        self.awaited.is_empty() && !self.rediscover && self.restored
    }

    /// Whether something can be decided: anything once all is listed, and always what becomes of policies that are gone.
    pub(super) fn has_decisions(&self) -> bool {
        if self.is_loaded() { self.delivery.is_dirty() } else { self.delivery.has_removed() }
    }

    /// Whether anything is left to do here.
    pub(super) fn is_needed(&self) -> bool {
        let is_wanted = !self.policies.is_empty() || !self.leaving.is_empty() || !self.recent.is_empty();
        let is_unfinished = self.delivery.is_dirty() || !self.pending.is_empty() || !self.unreported.is_empty();
        !self.gone && (is_wanted || is_unfinished)
    }

    /// When to try again what failed.
    pub(super) fn next_try(&self, now: Instant) -> Option<Instant> {
        let refused = self.pending.values().map(|pending| pending.pause.until());
        let storing = (!self.pending.is_empty()).then(|| self.storing.until());
        let unwritable = self.unwritable.values().map(Pause::until);
        refused.chain(storing).chain(unwritable).chain([self.saying.until()]).flatten().filter(|next| *next > now).min()
    }

    /// Whether the space is gone, as far as can be told: something in it may be gone, too.
    async fn is_gone(&self, error: &kube::Error) -> bool {
        let is_absent = matches!(error, kube::Error::Api(status) if status.code == 404);
        is_absent && matches!(write::get(&self.client, "/api").await, Ok(None))
    }

    /// Ends what there was of a space that is gone: its policies want nothing any more.
    fn lose(&mut self) {
        tracing::info!(space = %self.name, "a space is gone, and what was sent from it goes");
        for policy in self.policies.keys().cloned().collect::<Vec<_>>() {
            self.remove_policy(&policy);
        }
        self.storing = Pause::default();
        self.gone = true;
    }

    /// Ends all watches.
    pub(super) fn end(&mut self) {
        self.tasks.drain(..).for_each(|task| task.abort());
        self.watched.values().for_each(|watched| watched.task.abort());
        self.watched.clear();
    }

    /// Ends the watch of a kind, and forgets its objects.
    pub(super) fn stop_watching(&mut self, resource: &GroupResource) {
        let Some(watched) = self.watched.remove(resource) else { return };
        watched.task.abort();
        self.awaited.remove(&Topic::Objects(resource.clone()));
        for id in watched.objects.keys() {
            self.delivery.remove_object(id);
        }
    }

    /// Takes in what a program before this one stored.
    pub(super) async fn restore(&mut self) -> Result<(), kube::Error> {
        let ledgers = self.ledgers().await?;
        for binding in list(&self.client, &path::bindings()).await? {
            let (Some(name), Some(Owner { policy, uid, part })) =
                (binding["metadata"]["name"].as_str(), owner(&binding))
            else {
                continue;
            };
            // One of a policy that is gone goes too, even if there is another policy of that name.
            if let Some(facts) = self.facts(&policy).filter(|facts| *facts.uid == uid) {
                self.bindings.insert(name.into(), Written::of_value(&binding));
                let spec = BindingSpec::deserialize(&binding["spec"]).ok();
                spec.iter().for_each(|spec| self.note_left_over(spec));
                self.delivery.restore(&policy, part, &facts, spec, ledgers.get(name));
            }
        }
        for found in list(&self.client, &path::combined()).await? {
            let text = |field: &str| found["metadata"][field].as_str().unwrap_or_default().to_owned();
            self.combined.insert((text("namespace"), text("name")));
        }
        Ok(())
    }

    /// What is stored of each Binding's works. What no first ledger names was not written to its end, or is not needed any more.
    async fn ledgers(&mut self) -> Result<BTreeMap<String, WorkLedgerSpec>, kube::Error> {
        let mut stored: BTreeMap<String, WorkLedgerSpec> = BTreeMap::new();
        for ledger in list(&self.client, &path::ledgers()).await? {
            let name = ledger["metadata"]["name"].as_str().unwrap_or_default();
            if let Ok(spec) = WorkLedgerSpec::deserialize(&ledger["spec"]) {
                stored.insert(name.to_owned(), spec);
            }
        }
        let first = stored.iter().filter(|(name, ledger)| **name == ledger.binding);
        let whole: BTreeMap<_, _> =
            first.map(|(name, ledger)| (name.clone(), joined(ledger, |name| stored.get(name)))).collect();
        let named: BTreeSet<&String> = whole.values().flat_map(|ledger| &ledger.further).collect();
        for name in stored.keys().filter(|name| !whole.contains_key(*name) && !named.contains(name)) {
            write::delete(&self.client, &path::object(&path::ledgers(), "", name)).await?;
        }
        let further = whole.iter().map(|(binding, ledger)| (binding.as_str().into(), ledger.further.clone()));
        self.further = further.collect();
        Ok(whole)
    }

    fn facts(&self, policy: &str) -> Option<PolicyFacts> {
        self.delivery.policy(policy).cloned()
    }

    /// Finds out which kinds can be sent, and says which of them a policy, or one that was asked about, may select. Of a space
    /// that is gone nothing can.
    pub(super) async fn discover(&mut self) -> Result<BTreeMap<GroupResource, ApiResource>, kube::Error> {
        let discovery = match Discovery::new(self.client.clone()).exclude(&GROUPS_LEFT_OUT).run().await {
            Ok(discovery) => discovery,
            Err(error) if self.is_gone(&error).await => {
                self.lose();
                return Ok(BTreeMap::new());
            }
            Err(error) => return Err(error),
        };
        let mut kinds = BTreeMap::new();
        self.sendable.clear();
        for group in discovery.groups() {
            for (resource, can) in group.recommended_resources() {
                let key = GroupResource { group: group.name().into(), resource: resource.plural.as_str().into() };
                let watchable = can.supports_operation(verbs::LIST) && can.supports_operation(verbs::WATCH);
                if !watchable || RESOURCES_LEFT_OUT.contains(&resource.plural.as_str()) {
                    continue;
                }
                let (version, namespaced) = (resource.version.as_str().into(), can.scope == Scope::Namespaced);
                let sendable = Sendable { resource: key.clone(), version, namespaced };
                self.sendable.insert((group.name().to_owned(), resource.kind.clone()), sendable);
                if self.delivery.concerns(&key) || self.is_asked_about(&key) || self.may_have_left_over(&key) {
                    kinds.insert(key, resource);
                }
            }
        }
        Ok(kinds)
    }

    /// A policy was seen.
    pub(super) fn set_policy(&mut self, object: &DynamicObject) {
        let name: Arc<str> = object.name_any().into();
        let spec = object.data.get("spec").map(BindingPolicySpec::deserialize).transpose();
        let written = Written::of(object);
        let is_new = self.policies.get(&name).is_none_or(|known| known.generation != written.generation);
        let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0).unwrap_or_default();
        let facts = PolicyFacts { uid: Arc::clone(&written.uid), created };
        if is_new {
            self.policies_judged.insert(Arc::clone(&name));
        }
        self.policies.insert(Arc::clone(&name), written);
        // What the schema lets pass can be read.
        let spec = spec.ok().flatten().unwrap_or_default();
        self.note_hold(object, &spec);
        self.delivery.set_policy(&name, facts, spec);
        self.rediscover |= is_new;
    }

    pub(super) fn remove_policy(&mut self, name: &str) {
        self.policies.remove(name);
        self.unheld.remove(name);
        self.leaving.remove(name);
        self.delivery.remove_policy(name);
        self.rediscover = true;
    }

    /// Something was seen in this space.
    pub(super) fn see(&mut self, topic: &Topic, sight: Sight) {
        match sight {
            Sight::Applied(object) => self.apply(topic, &object),
            Sight::Deleted(object) => {
                self.remove(topic, &object.namespace().unwrap_or_default(), &object.name_any());
            }
            Sight::Listed(all) => {
                let there: BTreeSet<(&str, &str)> =
                    all.iter().map(|(_, namespace, name)| (namespace.as_str(), name.as_str())).collect();
                for (namespace, name) in self.known(topic) {
                    if !there.contains(&(namespace.as_str(), name.as_str())) {
                        self.remove(topic, &namespace, &name);
                    }
                }
                self.awaited.remove(topic);
            }
            Sight::Failed { absent, error } => {
                tracing::debug!(space = %self.name, ?topic, error, "cannot watch");
                if absent {
                    for (namespace, name) in self.known(topic) {
                        self.remove(topic, &namespace, &name);
                    }
                    self.awaited.remove(topic);
                } else if self.awaited.contains(topic) {
                    tracing::warn!(space = %self.name, ?topic, error, "cannot list; nothing of the space is sent until it can be");
                }
            }
        }
    }

    fn apply(&mut self, topic: &Topic, object: &DynamicObject) {
        let name = object.name_any();
        let spec = object.data.get("spec").cloned().unwrap_or_default();
        match topic {
            Topic::Transforms => {
                let written = Written::of(object);
                if self.transforms.get(&name).is_none_or(|known| known.generation != written.generation) {
                    self.judged.insert(name.clone());
                    let judged = self.delivery.set_transform(&name, CustomTransformSpec::deserialize(spec).ok());
                    self.judged.extend(judged);
                }
                self.transforms.insert(name, written);
            }
            Topic::Collectors => {
                let written = Written::of(object);
                let known = self.collectors.get(&name);
                if known.is_none_or(|known| known.written.generation != written.generation) {
                    let collector = match StatusCollectorSpec::deserialize(spec) {
                        Ok(spec) => Collector::compile(&spec),
                        Err(error) => Err(vec![error.to_string()]),
                    };
                    self.collectors.insert(name.clone(), Collecting { written, collector });
                    self.collector_changed(&name);
                } else if let Some(known) = self.collectors.get_mut(&name) {
                    known.written = written;
                }
            }
            Topic::Bindings => {
                let written = Written::of(object);
                let is_ours = |known: &Written| known.uid == written.uid && known.generation >= written.generation;
                if self.bindings.get(&*name).is_some_and(|known| !is_ours(known)) {
                    self.bindings.insert(name.as_str().into(), written);
                    self.delivery.doubt_binding(&name);
                }
            }
            Topic::Namespaces => self.delivery.set_namespace(&name, object.labels().clone()),
            Topic::Definitions => self.rediscover = true,
            Topic::Objects(resource) => self.apply_object(resource, object),
            Topic::Ledgers | Topic::Policies | Topic::Clusters | Topic::Properties => {}
        }
    }

    fn apply_object(&mut self, resource: &GroupResource, object: &DynamicObject) {
        let Some(watched) = self.watched.get_mut(resource) else { return };
        let id = ObjectId {
            resource: resource.clone(),
            namespace: object.namespace().unwrap_or_default().into(),
            name: object.name_any().into(),
        };
        // What is on its way out is not to be made anywhere else.
        if object.metadata.deletion_timestamp.is_some() {
            watched.objects.remove(&id);
            self.delivery.remove_object(&id);
            return;
        }
        watched.objects.insert(id.clone(), object.metadata.uid.as_deref().unwrap_or_default().into());
        let is_ours = |entry: &ManagedFieldsEntry| {
            entry.manager.as_deref() == Some(write::MANAGER) && entry.subresource.as_deref() == Some("status")
        };
        if object.managed_fields().iter().any(is_ours) && !self.returned.contains_key(&id) {
            let returned = ReturnedState { resource: watched.resource.clone(), status: None };
            self.returned.insert(id.clone(), returned);
            self.unreported.insert(id.clone());
        }
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["apiVersion"] = watched.resource.api_version.as_str().into();
        value["kind"] = watched.resource.kind.as_str().into();
        self.delivery.set_object(id, &watched.resource.version, object.labels().clone(), value);
    }

    fn remove(&mut self, topic: &Topic, namespace: &str, name: &str) {
        match topic {
            Topic::Transforms => {
                self.transforms.remove(name);
                let judged = self.delivery.set_transform(name, None);
                self.judged.extend(judged);
            }
            Topic::Collectors => {
                self.collectors.remove(name);
                self.collector_changed(name);
            }
            Topic::Bindings => {
                if self.bindings.remove(name).is_some() {
                    self.delivery.doubt_binding(name);
                    // Its ledgers belong to it and go with it.
                    self.delivery.doubt_ledgers(name);
                }
            }
            Topic::Ledgers => {
                let has = |(binding, further): &(&Arc<str>, &Vec<String>)| {
                    ***binding == *name || further.iter().any(|further| further == name)
                };
                if let Some((binding, _)) = self.further.iter().find(has) {
                    self.delivery.doubt_ledgers(binding);
                }
            }
            Topic::Namespaces => self.delivery.remove_namespace(name),
            Topic::Definitions => self.rediscover = true,
            Topic::Objects(resource) => {
                let id = ObjectId { resource: resource.clone(), namespace: namespace.into(), name: name.into() };
                if let Some(watched) = self.watched.get_mut(resource) {
                    watched.objects.remove(&id);
                }
                self.delivery.remove_object(&id);
            }
            Topic::Policies | Topic::Clusters | Topic::Properties => {}
        }
    }

    fn known(&self, topic: &Topic) -> Vec<(String, String)> {
        let plain = |name: &String| (String::new(), name.clone());
        match topic {
            Topic::Bindings => self.bindings.keys().map(|name| plain(&name.to_string())).collect(),
            Topic::Ledgers => {
                let first = self.further.keys().map(|name| plain(&name.to_string()));
                first.chain(self.further.values().flatten().map(plain)).collect()
            }
            Topic::Transforms => self.transforms.keys().map(plain).collect(),
            Topic::Collectors => self.collectors.keys().map(plain).collect(),
            Topic::Namespaces => self.delivery.namespaces().map(|name| (String::new(), name.to_string())).collect(),
            Topic::Objects(resource) => {
                let watched = self.watched.get(resource);
                let ids = watched.into_iter().flat_map(|watched| watched.objects.keys());
                ids.map(|id| (id.namespace.to_string(), id.name.to_string())).collect()
            }
            Topic::Definitions | Topic::Policies | Topic::Clusters | Topic::Properties => Vec::new(),
        }
    }

    /// A StatusCollector came, changed or went: what it says, and whoever names it, is looked at anew.
    fn collector_changed(&mut self, name: &str) {
        self.collectors_judged.insert(name.to_owned());
        let objects = self.delivery.collected_by(name);
        self.unreported.extend(objects);
        self.policies_judged.extend(self.policies.keys().cloned());
    }

    /// The resource and uid of an object that is there.
    pub(super) fn object(&self, id: &ObjectId) -> Option<(&ApiResource, &Arc<str>)> {
        let watched = self.watched.get(&id.resource)?;
        Some((&watched.resource, watched.objects.get(id)?))
    }
}

/// The policy that a Binding belongs to, and which part of it the Binding is.
struct Owner {
    policy: String,
    uid: String,
    part: u32,
}

fn owner(binding: &Value) -> Option<Owner> {
    let owners = binding["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["kind"] == "BindingPolicy")?;
    let (policy, uid) = (owner["name"].as_str()?, owner["uid"].as_str()?);
    let name = binding["metadata"]["name"].as_str()?;
    let part = if name == policy { 1 } else { name.rsplit_once("--")?.1.parse().ok()? };
    (parts::name(policy, part) == name).then(|| Owner { policy: policy.to_owned(), uid: uid.to_owned(), part })
}

/// All objects of a kind, page by page. Nothing when there is no such kind.
async fn list(client: &Client, resource: &ApiResource) -> Result<Vec<Value>, kube::Error> {
    let mut found = Vec::new();
    let mut more = String::new();
    loop {
        let path = format!("{}?limit=500{more}", path::collection(resource, ""));
        let Some(mut page) = write::get(client, &path).await? else { return Ok(found) };
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            found.extend(items);
        }
        match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => more = format!("&continue={token}"),
            None => return Ok(found),
        }
    }
}
