//! A space with an inventory, and what clusters and the API server would have of what it tells.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use orrery_api::{control::BindingSpec, labels::Labels, ledger::WorkLedgerSpec};
use orrery_hub::{
    delivery::{
        BindingChange, Claims, Config, Delivery, Ledgers, PolicyFacts, Properties, Settled, WorkChange, joined,
    },
    pack::Limits,
    placement::{ObjectId, parts},
};
use orrery_works::{Bundle, ResourceId};
use serde_json::{Value, json};

pub(crate) const NO_LIMIT: Limits = Limits { bytes: 512_000, count: usize::MAX };
pub(crate) const ONE_EACH: Limits = Limits { bytes: 512_000, count: 1 };

pub(crate) struct Stage {
    pub(crate) delivery: Delivery,
    pub(crate) stored: Stored,
    pub(crate) works: Works,
    pub(crate) errors: BTreeMap<String, Vec<String>>,
    /// Works of which the transport was told since the program started.
    pub(crate) told: BTreeSet<ResourceId>,
    config: Config,
    space: String,
    claims: Claims,
}

/// What the API server has.
#[derive(Clone, Default)]
pub(crate) struct Stored {
    pub(crate) bindings: BTreeMap<String, BindingSpec>,
    /// Those that are named as their Bindings, and those that these name.
    pub(crate) ledgers: BTreeMap<String, WorkLedgerSpec>,
}

/// One thing that is to be done.
enum Deed<'a> {
    Ledger(&'a str, &'a WorkLedgerSpec),
    /// What the first ledger of a Binding does not name any more.
    ForgetLedgers(&'a str),
    Binding(&'a str, &'a BindingChange),
    Work(&'a WorkChange),
}

fn ledger_deeds<'a>(binding: &'a str, ledgers: &'a Ledgers) -> impl Iterator<Item = Deed<'a>> {
    let further = ledgers.further.iter().map(|(name, ledger)| Deed::Ledger(name, ledger));
    further.chain([Deed::Ledger(binding, &ledgers.first), Deed::ForgetLedgers(binding)])
}

/// What the transport was told: by id where, and what.
pub(crate) type Works = BTreeMap<ResourceId, (Arc<str>, Arc<Bundle>)>;

pub(crate) fn labels(text: &str) -> Labels {
    text.split(',').filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}

/// `resource.group/namespace/name`; a resource without a dot is of the core group.
pub(crate) fn id(text: &str) -> ObjectId {
    let parts: Vec<&str> = text.split('/').collect();
    let (resource, group) = parts[0].split_once('.').unwrap_or((parts[0], ""));
    ObjectId::new(group, resource, parts[1], parts[2])
}

pub(crate) fn policy_facts(name: &str, second: i64) -> PolicyFacts {
    let created = Timestamp::from_second(second).expect("a time");
    PolicyFacts { uid: format!("uid-of-{name}").into(), created }
}

impl Stage {
    pub(crate) fn new(limits: Limits) -> Self {
        Self::in_space("wds", limits)
    }

    pub(crate) fn in_space(space: &str, limits: Limits) -> Self {
        Self::with_config(space, Config { limits, ..Config::default() })
    }

    pub(crate) fn with_config(space: &str, config: Config) -> Self {
        let delivery = Delivery::new(space, config);
        let (stored, works, errors, told) = Default::default();
        Self { delivery, stored, works, errors, told, config, space: space.into(), claims: Claims::default() }
    }

    /// A space with clusters `east` and `west`, namespaces `prod` (with a label) and `test`, and a policy `all` over everything.
    pub(crate) fn usual(limits: Limits) -> Self {
        Self::usual_with(Config { limits, ..Config::default() })
    }

    pub(crate) fn usual_with(config: Config) -> Self {
        let mut stage = Self::with_config("wds", config);
        stage.cluster("east", "region=east");
        stage.cluster("west", "region=west");
        stage.delivery.set_namespace("prod", labels("stage=prod"));
        stage.delivery.set_namespace("test", labels(""));
        stage.policy("all", 1, r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#);
        stage
    }

    pub(crate) fn policy(&mut self, name: &str, second: i64, spec: &str) {
        self.delivery.set_policy(name, policy_facts(name, second), serde_json::from_str(spec).expect("a policy"));
    }

    pub(crate) fn cluster(&mut self, name: &str, text: &str) {
        self.delivery.set_cluster(name, labels(text), BTreeMap::new());
    }

    pub(crate) fn properties(&mut self, cluster: &str, text: &str) {
        let properties = Properties { data: labels(text), binary_data: BTreeMap::new() };
        self.delivery.set_properties(cluster, Some(properties));
    }

    /// An object with this text in it.
    pub(crate) fn literal(&mut self, object: &str, text: &str) {
        self.set(object, text, json!({}));
    }

    /// An object with this template in it.
    pub(crate) fn template(&mut self, object: &str, text: &str) {
        self.set(object, text, json!({"control.kubestellar.io/expand-templates": "true"}));
    }

    pub(crate) fn set(&mut self, object: &str, text: &str, annotations: Value) {
        let id = id(object);
        let group = if id.resource.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", id.resource.group) };
        let json = json!({
            "apiVersion": group, "kind": "Thing",
            "metadata": {"name": &*id.name, "namespace": &*id.namespace, "annotations": annotations},
            "spec": {"text": text, "other": "x"},
        });
        self.delivery.set_object(id, "v1", Labels::new(), json);
    }

    pub(crate) fn transform(&mut self, name: &str, group: &str, resource: &str, remove: &[&str]) {
        let spec = json!({"apiGroup": group, "resource": resource, "remove": remove});
        self.delivery.set_transform(name, Some(serde_json::from_value(spec).expect("a transform")));
    }

    /// Settles alone.
    pub(crate) fn settle(&mut self) -> Settled {
        let mut claims = std::mem::take(&mut self.claims);
        let settled = self.settle_among(&mut claims);
        self.claims = claims;
        settled
    }

    /// Settles, and does what is to be done.
    pub(crate) fn settle_among(&mut self, claims: &mut Claims) -> Settled {
        let settled = self.delivery.settle(claims);
        self.carry_out(&settled, usize::MAX);
        settled
    }

    /// Settles, and ends after so many of the things that are to be done.
    pub(crate) fn settle_and_crash(&mut self, after: usize) {
        let settled = self.delivery.settle(&mut std::mem::take(&mut self.claims));
        self.carry_out(&settled, after);
    }

    /// Does what is to be done in the order in which the controller does it, up to a number of things.
    fn carry_out(&mut self, settled: &Settled, most: usize) {
        let mut deeds: Vec<Deed<'_>> = Vec::new();
        let is_known = |name: &str| self.stored.bindings.contains_key(name);
        for (name, ledgers) in settled.ledgers.iter().filter(|(name, _)| is_known(name)) {
            deeds.extend(ledger_deeds(name, ledgers));
        }
        deeds.extend(settled.bindings.iter().map(|(name, change)| Deed::Binding(name, change)));
        for (name, ledgers) in settled.ledgers.iter().filter(|(name, _)| !is_known(name)) {
            deeds.extend(ledger_deeds(name, ledgers));
        }
        deeds.extend(settled.works.iter().map(Deed::Work));
        for deed in deeds.into_iter().take(most) {
            self.do_one(deed);
        }
        self.errors.extend(settled.errors.iter().map(|(name, errors)| (name.to_string(), errors.clone())));
        for (name, _) in settled.bindings.iter().filter(|(_, change)| **change == BindingChange::Removed) {
            self.errors.remove(&**name);
        }
    }

    fn do_one(&mut self, deed: Deed<'_>) {
        match deed {
            Deed::Ledger(name, ledger) => drop(self.stored.ledgers.insert(name.to_owned(), ledger.clone())),
            Deed::ForgetLedgers(name) => {
                let named = self.stored.ledgers[name].further.clone();
                self.stored
                    .ledgers
                    .retain(|other, ledger| other == name || ledger.binding != *name || named.contains(other));
            }
            Deed::Binding(name, BindingChange::Spec { spec, .. }) => {
                drop(self.stored.bindings.insert(name.to_owned(), spec.clone()));
            }
            Deed::Binding(name, BindingChange::Removed) => {
                self.stored.bindings.remove(name);
                self.stored.ledgers.retain(|_, ledger| ledger.binding != *name);
            }
            Deed::Work(WorkChange::Put { id, cluster, bundle, .. }) => {
                assert_eq!(bundle.validate(), Ok(()));
                self.works.insert(id.clone(), (Arc::clone(cluster), Arc::clone(bundle.bundle())));
                self.told.insert(id.clone());
            }
            Deed::Work(WorkChange::Keep { id, .. }) => drop(self.told.insert(id.clone())),
            Deed::Work(WorkChange::Delete { id, .. }) => {
                assert!(self.works.remove(id).is_some() || self.told.contains(id), "{id} is not there");
            }
        }
    }

    /// Everything that is desired was told: works that are not among it go.
    pub(crate) fn complete(&mut self) {
        self.works.retain(|id, _| self.told.contains(id));
    }

    /// Another program in the place of this one, which knows what was stored, and nothing else yet.
    pub(crate) fn restarted(&self, policies: &[(&str, i64)]) -> Self {
        let mut next = Self::with_config(&self.space, self.config);
        next.stored = self.stored.clone();
        next.works = self.works.clone();
        for (policy, second) in policies {
            for (part, name) in (1..20).map(|part| (part, parts::name(policy, part))) {
                let spec = self.stored.bindings.get(&name).cloned();
                if spec.is_some() {
                    let ledgers = &self.stored.ledgers;
                    let ledger = ledgers.get(&name).map(|first| joined(first, |name| ledgers.get(name)));
                    next.delivery.restore(policy, part, &policy_facts(policy, *second), spec, ledger.as_ref());
                }
            }
        }
        next
    }

    /// What clusters would have, as `cluster object text`.
    pub(crate) fn sent(&self) -> BTreeSet<String> {
        let mut sent = BTreeSet::new();
        for (cluster, bundle) in self.works.values() {
            for manifest in &bundle.manifests {
                let value = manifest.to_value().expect("JSON");
                let name = value["metadata"]["name"].as_str().expect("a name");
                sent.insert(format!("{cluster} {name} {}", value["spec"]["text"].as_str().unwrap_or("-")));
            }
        }
        sent
    }
}

pub(crate) fn texts(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// How many works were told as wanted and as unwanted.
pub(crate) fn told(settled: &Settled) -> (usize, usize) {
    let puts = settled.works.iter().filter(|change| matches!(change, WorkChange::Put { .. })).count();
    let deletes = settled.works.iter().filter(|change| matches!(change, WorkChange::Delete { .. })).count();
    (puts, deletes)
}
