//! A space with an inventory, and what clusters and the API server would have of what it tells.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use orrery_api::{control::BindingSpec, labels::Labels, ledger::WorkLedgerSpec};
use orrery_hub::{
    delivery::{BindingChange, Claims, Config, Delivery, PolicyFacts, Properties, Settled, WorkChange},
    pack::Limits,
    placement::ObjectId,
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
    config: Config,
    space: String,
    claims: Claims,
}

/// What the API server has.
#[derive(Clone, Default)]
pub(crate) struct Stored {
    pub(crate) bindings: BTreeMap<String, BindingSpec>,
    pub(crate) ledgers: BTreeMap<String, WorkLedgerSpec>,
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
        let config = Config { limits, ..Config::default() };
        let delivery = Delivery::new(space, config);
        let (stored, works, errors) = Default::default();
        Self { delivery, stored, works, errors, config, space: space.into(), claims: Claims::default() }
    }

    /// A space with clusters `east` and `west`, namespaces `prod` (with a label) and `test`, and a policy `all` over everything.
    pub(crate) fn usual(limits: Limits) -> Self {
        let mut stage = Self::new(limits);
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
        for (name, change) in &settled.bindings {
            match change {
                BindingChange::Spec { spec, .. } => {
                    drop(self.stored.bindings.insert(name.to_string(), spec.clone()));
                }
                BindingChange::Removed => {
                    self.stored.bindings.remove(&**name);
                    self.stored.ledgers.remove(&**name);
                    self.errors.remove(&**name);
                }
            }
        }
        for (name, ledger) in &settled.ledgers {
            self.stored.ledgers.insert(name.to_string(), ledger.clone());
        }
        for change in &settled.works {
            match change {
                WorkChange::Put { id, cluster, bundle, .. } => {
                    assert_eq!(bundle.validate(), Ok(()));
                    self.works.insert(id.clone(), (Arc::clone(cluster), Arc::clone(bundle)));
                }
                WorkChange::Keep(_) => {}
                WorkChange::Delete(id) => assert!(self.works.remove(id).is_some(), "{id} is not there"),
            }
        }
        self.errors.extend(settled.errors.iter().map(|(name, errors)| (name.to_string(), errors.clone())));
        settled
    }

    /// Another program in the place of this one, which knows what was stored, and nothing else yet.
    pub(crate) fn restarted(&self, policies: &[(&str, i64)]) -> Self {
        let mut next = Self::in_space(&self.space, self.config.limits);
        next.stored = self.stored.clone();
        next.works = self.works.clone();
        for (policy, second) in policies {
            for (part, name) in [(1, (*policy).to_owned()), (2, format!("{policy}--2"))] {
                let spec = self.stored.bindings.get(&name).cloned();
                if spec.is_some() {
                    let ledger = self.stored.ledgers.get(&name);
                    next.delivery.restore(policy, part, &policy_facts(policy, *second), spec, ledger);
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
    let deletes = settled.works.iter().filter(|change| matches!(change, WorkChange::Delete(_))).count();
    (puts, deletes)
}
