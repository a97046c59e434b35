//! What policies would send, without sending it: the state and the steps of delivery, asked page by page.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orrery_api::{
    control::{BindingPolicySpec, Modulation},
    preview::{BindingPreviewSpec, BindingPreviewStatus, ObjectReference, PreviewChange, PreviewRow},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    delivery::{Claims, Delivery},
    placement::ObjectId,
};

/// How many rows an answer has when the question does not say.
const DEFAULT_LIMIT: usize = 500;
/// How many rows an answer has at most: its manifests must fit in one answer of an API server.
const MAX_LIMIT: usize = 5000;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuestion {
    /// There is no such policy.
    #[error("there is no BindingPolicy {0:?}")]
    NoPolicy(String),
    /// What was given is no policy.
    #[error("spec.given[{at}] is no BindingPolicy: {why}")]
    NotAPolicy {
        /// Its index.
        at: usize,
        /// What is wrong.
        why: String,
    },
    /// The place to continue at was not made by an answer.
    #[error("spec.continue does not come from an answer to this question")]
    Continue,
}

type Answered = (BTreeMap<ObjectId, Modulation>, BTreeSet<Arc<str>>);

/// Answers a question about a space.
pub fn preview(
    delivery: &Delivery,
    claims: &Claims,
    asked: &BindingPreviewSpec,
) -> Result<BindingPreviewStatus, BadQuestion> {
    let policies = policies(delivery, asked)?;
    let limit = asked.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let after = Place::parse(&asked.continues)?;
    let only: BTreeSet<&str> = asked.clusters.iter().map(String::as_str).collect();
    let mut answer = BindingPreviewStatus::default();
    for (policy, given) in policies {
        if after.as_ref().is_some_and(|after| *policy < *after.policy) {
            continue;
        }
        let (objects, destinations) = answered(delivery, &policy, given);
        let sent = delivery.sent_everywhere(&policy);
        let page = Page { delivery, claims, policy: &policy, objects: &objects, destinations: &destinations };
        for id in objects.keys().chain(sent.iter().map(|(id, _)| id)).collect::<BTreeSet<_>>() {
            if after.as_ref().is_some_and(|after| *policy == *after.policy && *id < after.object) {
                continue;
            }
            for cluster in page.clusters(id, &sent) {
                let is_before =
                    |after: &Place| *policy == *after.policy && *id == after.object && **cluster <= *after.cluster;
                if after.as_ref().is_some_and(is_before) || !(only.is_empty() || only.contains(&**cluster)) {
                    continue;
                }
                if answer.rows.len() == limit {
                    answer.continues = answer.rows.last().map(Place::after).unwrap_or_default();
                    return Ok(answer);
                }
                answer.rows.push(page.row(id, cluster));
            }
        }
    }
    Ok(answer)
}

struct Page<'a> {
    delivery: &'a Delivery,
    claims: &'a Claims,
    policy: &'a str,
    objects: &'a BTreeMap<ObjectId, Modulation>,
    destinations: &'a BTreeSet<Arc<str>>,
}

impl Page<'_> {
    /// The clusters that should have an object, and those that were sent it.
    fn clusters<'a>(&'a self, id: &ObjectId, sent: &'a BTreeSet<(ObjectId, Arc<str>)>) -> BTreeSet<&'a Arc<str>> {
        let from = sent.range((id.clone(), Arc::from(""))..).take_while(|(sent, _)| sent == id);
        let mut clusters: BTreeSet<&Arc<str>> = from.map(|(_, cluster)| cluster).collect();
        if self.objects.contains_key(id) {
            clusters.extend(self.destinations);
        }
        clusters
    }

    fn row(&self, id: &ObjectId, cluster: &Arc<str>) -> PreviewRow {
        let sent = self.delivery.sent(self.policy, id, cluster);
        let wanted = self.objects.contains_key(id) && self.destinations.contains(cluster);
        let rendered = if wanted { Some(self.render(id, cluster)) } else { None };
        let value = |json: &[u8]| serde_json::from_slice::<Value>(json).ok();
        let (change, manifest, errors) = match &rendered {
            None => (PreviewChange::Removed, None, Vec::new()),
            Some(Err(errors)) => (PreviewChange::Failed, None, errors.clone()),
            Some(Ok(json)) => {
                let change = match sent {
                    None => PreviewChange::Added,
                    Some(sent) if sent.as_bytes() == &**json => PreviewChange::Unchanged,
                    Some(_) => PreviewChange::Changed,
                };
                (change, value(json), Vec::new())
            }
        };
        let differs = !matches!(change, PreviewChange::Unchanged | PreviewChange::Added);
        PreviewRow {
            policy: self.policy.to_owned(),
            cluster: cluster.to_string(),
            object: self.reference(id),
            change,
            manifest,
            sent: sent.filter(|_| differs).and_then(|json| value(json.as_bytes())),
            errors,
        }
    }

    fn render(&self, id: &ObjectId, cluster: &Arc<str>) -> Result<Arc<[u8]>, Vec<String>> {
        let gone = || vec![format!("{id} or cluster {cluster} is gone")];
        let manifest = self.delivery.manifest(id).ok_or_else(gone)?;
        let json = manifest.for_cluster(cluster, self.delivery.data(cluster).ok_or_else(gone)?)?;
        let most = self.delivery.limits().bytes;
        if json.len() > most {
            return Err(vec![format!("{id} has {} bytes, more than the {most} that fit in one work", json.len())]);
        }
        if self.delivery.is_left_out(self.claims, self.policy, id, cluster) {
            return Err(vec![format!(
                "an older Binding sends {id} to cluster {cluster} with other content and keeps it"
            )]);
        }
        Ok(json)
    }

    fn reference(&self, id: &ObjectId) -> ObjectReference {
        let facts = self.delivery.resolution().object(id);
        ObjectReference {
            group: id.resource.group.to_string(),
            version: facts.map(|facts| facts.version.to_string()).unwrap_or_default(),
            resource: id.resource.resource.to_string(),
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
        }
    }
}

fn answered(delivery: &Delivery, policy: &str, given: Option<BindingPolicySpec>) -> Answered {
    match given {
        Some(spec) => delivery.resolution().would_answer(spec),
        None => {
            let answer = delivery.resolution().answer(policy);
            answer.map(|answer| (answer.objects.clone(), answer.destinations.clone())).unwrap_or_default()
        }
    }
}

/// The policies that are asked about, with the specs that were given for them.
fn policies(
    delivery: &Delivery,
    asked: &BindingPreviewSpec,
) -> Result<BTreeMap<Arc<str>, Option<BindingPolicySpec>>, BadQuestion> {
    let stored: BTreeSet<&Arc<str>> = delivery.resolution().policies().collect();
    let mut policies = BTreeMap::new();
    for name in &asked.policies {
        let name = stored.get(&Arc::from(name.as_str())).ok_or_else(|| BadQuestion::NoPolicy(name.clone()))?;
        policies.insert(Arc::clone(name), None);
    }
    if asked.policies.is_empty() && asked.given.is_empty() {
        policies.extend(stored.into_iter().map(|name| (Arc::clone(name), None)));
    }
    for (at, given) in asked.given.iter().enumerate() {
        let (name, spec) = given_policy(given).map_err(|why| BadQuestion::NotAPolicy { at, why })?;
        policies.insert(name, Some(spec));
    }
    Ok(policies)
}

fn given_policy(given: &Value) -> Result<(Arc<str>, BindingPolicySpec), String> {
    if given["kind"] != "BindingPolicy" {
        return Err("its kind is not BindingPolicy".to_owned());
    }
    let name = given["metadata"]["name"].as_str().ok_or("it has no metadata.name")?;
    let spec = given.get("spec").filter(|spec| !spec.is_null());
    let spec = spec.map(BindingPolicySpec::deserialize).transpose().map_err(|error| error.to_string())?;
    Ok((name.into(), spec.unwrap_or_default()))
}

/// Where an answer ended: the last row of it.
struct Place {
    policy: String,
    object: ObjectId,
    cluster: String,
}

impl Place {
    fn parse(text: &str) -> Result<Option<Self>, BadQuestion> {
        if text.is_empty() {
            return Ok(None);
        }
        let parts: [String; 6] = serde_json::from_str(text).map_err(|_| BadQuestion::Continue)?;
        let [policy, group, resource, namespace, name, cluster] = parts;
        Ok(Some(Self { policy, object: ObjectId::new(&group, &resource, &namespace, &name), cluster }))
    }

    fn after(row: &PreviewRow) -> String {
        let object = &row.object;
        let parts = [&row.policy, &object.group, &object.resource, &object.namespace, &object.name, &row.cluster];
        serde_json::to_string(&parts).expect("texts can be written")
    }
}
