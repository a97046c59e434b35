//! What policies would send, without sending it: the state and the steps of delivery, asked page by page.
//!
//! Flow: a question is [`Prepared`] once beside what is known, with what is supposed; then pages of rows are made of it, each as far as
//! it is asked for. A page costs what its rows cost.
//!
//! Guarantees: pages that follow one another are made of the same state, or whoever asks is told that it moved on and can go on
//! with what there is now. Rows are what delivery would send: the same manifests, limits and conflicts.

mod given;
mod place;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orrery_api::{
    control::{BindingPolicySpec, Modulation},
    preview::{BindingPreviewSpec, BindingPreviewStatus, PreviewChange, PreviewRow},
    work::Manifest as Json,
};
use serde_json::Value;

pub(crate) use self::given::properties;
pub use self::given::{Sendable, Surroundings};
use self::place::{Place, question};
use crate::{
    delivery::{Claims, Delivery, Holder, Sender, Supposed, Supposition},
    placement::{Answer, ObjectId},
    transform::Manifest,
};

/// How many rows an answer has when the question does not say.
const DEFAULT_LIMIT: usize = 500;
/// How many rows an answer has at most: while it is made nothing is decided.
const MAX_LIMIT: usize = 1000;
/// How many bytes of manifests an answer has, but for its last row.
const MAX_BYTES: usize = 4 << 20;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuestion {
    /// There is no such policy.
    #[error("there is no BindingPolicy {0:?}")]
    NoPolicy(String),
    /// What was given cannot be supposed.
    #[error("spec.given[{at}]: {why}")]
    Given {
        /// Its index.
        at: usize,
        /// What is wrong.
        why: String,
    },
    /// The place to continue at was not made by an answer to this question.
    #[error("continue key is not valid: {0}")]
    Continue(String),
    /// What the answer before was made of has changed.
    #[error("what the answer before was made of has changed")]
    MovedOn {
        /// Goes on with what there is now.
        continues: String,
    },
}

/// A question that was understood, with what is the same for all its pages.
#[derive(Debug)]
pub struct Prepared {
    question: String,
    /// What it was prepared beside.
    mark: String,
    /// The policies that are asked about; with answers of their own where those are not the known ones.
    policies: BTreeMap<Arc<str>, Option<Supposedly>>,
    supposed: Option<Supposed>,
    /// Only these clusters, if any are named.
    only: BTreeSet<String>,
}

/// The answer to a policy, if what is supposed were so.
#[derive(Debug)]
struct Supposedly {
    objects: BTreeMap<ObjectId, Modulation>,
    destinations: BTreeSet<Arc<str>>,
}

/// Says what the given policies are, so that what they select can be known before the question is answered.
pub fn given_policies(asked: &BindingPreviewSpec) -> impl Iterator<Item = BindingPolicySpec> {
    let policies = asked.given.iter().filter(|given| given["kind"] == "BindingPolicy");
    policies.filter_map(|given| serde::Deserialize::deserialize(given.get("spec")?).ok())
}

/// What tells a question from others, on whichever page.
pub fn key(asked: &BindingPreviewSpec) -> String {
    question(asked)
}

impl Prepared {
    /// Looks at a question beside what is known. `run` tells what is known from what another program knew.
    pub fn new(
        delivery: &Delivery,
        around: &dyn Surroundings,
        run: &str,
        asked: &BindingPreviewSpec,
    ) -> Result<Self, BadQuestion> {
        let mut supposition = Supposition::default();
        for (at, object) in asked.given.iter().enumerate() {
            let supposed = given::suppose(&mut supposition, object, around);
            supposed.map_err(|why| BadQuestion::Given { at, why })?;
        }
        let given = std::mem::take(&mut supposition.policies);
        let names = names(delivery, &given, asked)?;
        let supposed = (!asked.given.is_empty()).then(|| Supposed::new(delivery, supposition));
        let policies = names.into_iter().map(|name| {
            let answer = supposed.as_ref().and_then(|supposed| {
                let spec = given.get(&name).or_else(|| delivery.resolution().spec(&name))?;
                let (objects, destinations) = delivery.resolution().would_answer(spec.clone(), &supposed.facts);
                Some(Supposedly { objects, destinations })
            });
            (name, answer)
        });
        Ok(Self {
            question: question(asked),
            mark: mark(delivery, run),
            policies: policies.collect(),
            supposed,
            only: asked.clusters.iter().cloned().collect(),
        })
    }

    /// Whether it was prepared beside what is known now.
    pub fn is_current(&self, delivery: &Delivery, run: &str) -> bool {
        self.mark == mark(delivery, run)
    }

    /// A page of the answer.
    pub fn page(
        &self,
        delivery: &Delivery,
        claims: &Claims,
        asked: &BindingPreviewSpec,
    ) -> Result<BindingPreviewStatus, BadQuestion> {
        let after = Place::of(asked)?;
        if let Some(after) = &after {
            after.check(&self.mark)?;
        }
        let mut page = Page {
            limit: asked.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
            bytes: 0,
            answer: BindingPreviewStatus::default(),
        };
        for (policy, supposedly) in &self.policies {
            if after.as_ref().is_some_and(|after| **policy < *after.policy) {
                continue;
            }
            let after = after.as_ref().filter(|after| **policy == *after.policy);
            let view = self.view(delivery, claims, policy, supposedly.as_ref());
            if after.is_none() && self.supposed.is_none() {
                page.answer.errors.extend(delivery.refusal(policy));
                page.answer.errors.extend(delivery.frozen(policy).map(|binding| held_back(binding)));
            }
            if !view.fill(&mut page, after) {
                page.answer.continues = page.after_last(&self.question, &self.mark);
                break;
            }
        }
        Ok(page.answer)
    }

    fn view<'a>(
        &'a self,
        delivery: &'a Delivery,
        claims: &'a Claims,
        policy: &'a str,
        supposedly: Option<&'a Supposedly>,
    ) -> View<'a> {
        View { asked: self, delivery, claims, policy, answer: self.answer(delivery, policy, supposedly) }
    }

    fn answer<'a>(
        &'a self,
        delivery: &'a Delivery,
        policy: &str,
        supposedly: Option<&'a Supposedly>,
    ) -> Option<Answer<'a>> {
        match supposedly {
            Some(Supposedly { objects, destinations }) => Some(Answer { objects, destinations }),
            None => delivery.resolution().answer(policy),
        }
    }
}

/// What was answered so far, and how much there may be.
struct Page {
    limit: usize,
    bytes: usize,
    answer: BindingPreviewStatus,
}

impl Page {
    fn is_full(&self) -> bool {
        self.answer.rows.len() >= self.limit || self.bytes >= MAX_BYTES
    }

    fn after_last(&self, question: &str, mark: &str) -> String {
        let last = self.answer.rows.last().map(|row| Place::after(row, question, mark));
        last.map(|place| place.to_text()).unwrap_or_default()
    }
}

/// One policy, seen by somebody who asks.
struct View<'a> {
    asked: &'a Prepared,
    delivery: &'a Delivery,
    claims: &'a Claims,
    policy: &'a str,
    answer: Option<Answer<'a>>,
}

/// An object on its way to clusters.
struct Travelling<'a> {
    id: &'a ObjectId,
    /// What is asked for it, if it is selected.
    modulation: Option<&'a Modulation>,
    manifest: Option<Arc<Manifest>>,
}

impl View<'_> {
    /// Adds rows after a place until the page is full. Says whether these were all.
    fn fill(&self, page: &mut Page, after: Option<&Place>) -> bool {
        let nothing = ObjectId::new("", "", "", "");
        let start = after.map_or(nothing, Place::object);
        for id in self.objects(&start) {
            let modulation = self.answer.as_ref().and_then(|answer| answer.objects.get(id));
            let mut object = Travelling { id, modulation, manifest: None };
            let after = after.filter(|_| *id == start).map_or("", |after| after.cluster.as_str());
            for cluster in self.clusters(&object).into_iter().filter(|cluster| ***cluster > *after) {
                if page.is_full() {
                    return false;
                }
                let (row, bytes) = self.row(&mut object, cluster);
                page.bytes += bytes;
                page.answer.rows.push(row);
            }
        }
        true
    }

    /// The objects that are selected or were sent, in order, from one on.
    fn objects<'a>(&'a self, start: &'a ObjectId) -> impl Iterator<Item = &'a ObjectId> {
        let selected =
            self.answer.iter().flat_map(move |answer| answer.objects.range::<ObjectId, _>(start..).map(|(id, _)| id));
        let sent = self.delivery.sent_from(self.policy, start);
        let mut lists: Vec<_> = sent.into_iter().map(Iterator::peekable).collect();
        let mut selected = selected.peekable();
        std::iter::from_fn(move || {
            let heads = lists.iter_mut().filter_map(|list| list.peek().copied());
            let next = heads.chain(selected.peek().copied()).min()?;
            selected.next_if(|id| *id == next);
            for list in &mut lists {
                list.next_if(|id| *id == next);
            }
            Some(next)
        })
    }

    /// The clusters that should have an object, and those that were sent it.
    fn clusters<'a>(&'a self, object: &Travelling<'a>) -> BTreeSet<&'a Arc<str>> {
        let mut clusters: BTreeSet<&Arc<str>> = self.delivery.sent_to(self.policy, object.id).collect();
        if let Some(answer) = self.answer.as_ref().filter(|_| object.modulation.is_some()) {
            clusters.extend(answer.destinations);
        }
        if !self.asked.only.is_empty() {
            clusters.retain(|cluster| self.asked.only.contains(&***cluster));
        }
        clusters
    }

    /// What a cluster would get of an object, and how many bytes that takes.
    fn row(&self, object: &mut Travelling<'_>, cluster: &Arc<str>) -> (PreviewRow, usize) {
        let id = object.id;
        let sent = self.delivery.sent(self.policy, id, cluster);
        let is_wanted = self.answer.as_ref().is_some_and(|answer| answer.destinations.contains(cluster));
        let modulation = object.modulation.filter(|_| is_wanted);
        let rendered = modulation.map(|modulation| self.render(object, modulation, cluster));
        let (change, manifest, errors) = match &rendered {
            None => (PreviewChange::Removed, None, Vec::new()),
            Some(Err(errors)) => (PreviewChange::Failed, None, errors.clone()),
            Some(Ok(json)) => {
                let change = match sent {
                    None => PreviewChange::Added,
                    Some(sent) if sent == json.as_json() => PreviewChange::Unchanged,
                    Some(_) => PreviewChange::Changed,
                };
                (change, Some(json.as_json()), Vec::new())
            }
        };
        let sent = sent.filter(|_| !matches!(change, PreviewChange::Unchanged | PreviewChange::Added));
        let bytes = manifest.map_or(0, str::len) + sent.map_or(0, str::len);
        let value = |json: &str| serde_json::from_str::<Value>(json).ok();
        let facts = match &self.asked.supposed {
            Some(supposed) => supposed.object(self.delivery, id),
            None => self.delivery.resolution().object(id),
        };
        let row = PreviewRow {
            policy: self.policy.to_owned(),
            cluster: cluster.to_string(),
            object: id.reference(facts),
            change,
            manifest: manifest.and_then(value),
            sent: sent.and_then(value),
            errors,
            withheld: false,
        };
        (row, bytes)
    }

    fn render(
        &self,
        object: &mut Travelling<'_>,
        modulation: &Modulation,
        cluster: &Arc<str>,
    ) -> Result<Json, Vec<String>> {
        let id = object.id;
        let gone = || vec![format!("{id} or cluster {cluster} is gone")];
        if object.manifest.is_none() {
            object.manifest = match &self.asked.supposed {
                Some(supposed) => supposed.manifest(self.delivery, id),
                None => self.delivery.manifest(id).cloned(),
            };
        }
        let manifest = object.manifest.as_ref().ok_or_else(gone)?;
        let data = match &self.asked.supposed {
            Some(supposed) => supposed.data(self.delivery, cluster),
            None => self.delivery.data(cluster),
        };
        let data = data.ok_or_else(gone)?;
        let json = manifest.for_cluster(cluster, data)?;
        let most = self.delivery.limits().bytes;
        let bytes = json.as_json().len();
        if bytes > most {
            return Err(vec![format!("{id} has {bytes} bytes, more than the {most} that fit in one work")]);
        }
        let older = match &self.asked.supposed {
            None => self.delivery.left_to(self.claims, self.policy, id, cluster).cloned(),
            Some(_) => {
                let sender = Sender { policy: self.policy, modulation };
                let senders = self.senders(id, cluster);
                let (content, cluster) = ((id, manifest), (&**cluster, &**data));
                Supposed::left_to(self.delivery, self.claims, &sender, senders, content, cluster)
            }
        };
        match older {
            None => Ok(json),
            Some(older) => Err(vec![self.conflict(id, cluster, &older)]),
        }
    }

    /// The policies of the space that would send an object to a cluster.
    fn senders<'a>(&'a self, id: &'a ObjectId, cluster: &'a str) -> impl Iterator<Item = Sender<'a>> {
        let asked = &self.asked.policies;
        let stored = self.delivery.resolution().policies().filter(|policy| !asked.contains_key(*policy));
        let all = stored.map(|policy| (policy, None)).chain(asked.iter().map(|(policy, own)| (policy, own.as_ref())));
        all.filter_map(move |(policy, own)| {
            let answer = self.asked.answer(self.delivery, policy, own)?;
            let sends = answer.destinations.contains(cluster);
            answer.objects.get(id).filter(|_| sends).map(|modulation| Sender { policy, modulation })
        })
    }

    fn conflict(&self, id: &ObjectId, cluster: &str, older: &Holder) -> String {
        let who = older.named_in(self.delivery.space());
        format!("conflict over {id} in cluster {cluster}: other content is sent by {who}, which is older and keeps it")
    }
}

fn held_back(binding: &str) -> String {
    format!("Binding {binding} sends no change until everything in it can be rendered; clusters keep what they have")
}

/// What is known, in a word.
fn mark(delivery: &Delivery, run: &str) -> String {
    format!("{run}.{}", delivery.changes())
}

/// The policies that are asked about.
fn names(
    delivery: &Delivery,
    given: &BTreeMap<Arc<str>, BindingPolicySpec>,
    asked: &BindingPreviewSpec,
) -> Result<BTreeSet<Arc<str>>, BadQuestion> {
    let stored: BTreeSet<Arc<str>> = delivery.resolution().policies().cloned().collect();
    if asked.policies.is_empty() {
        return Ok(if given.is_empty() { stored } else { given.keys().cloned().collect() });
    }
    let known = |name: &String| {
        let found = stored.get(name.as_str()).or_else(|| given.get_key_value(name.as_str()).map(|(name, _)| name));
        found.cloned().ok_or_else(|| BadQuestion::NoPolicy(name.clone()))
    };
    asked.policies.iter().map(known).collect()
}
