//! What happens to a workload object between its space and the clusters it goes to.
//!
//! Flow, in this order:
//!
//! 1. What only means something where the object was written is removed from every object, and more from
//!    Services and Jobs.
//! 2. What CustomTransforms for the object's kind name is removed ([`custom`]).
//! 3. When the annotation [`EXPAND_TEMPLATES`] still says `"true"`, every string in the object that holds an action is
//!    expanded as a Go template with the cluster's properties ([`properties`]); keys never are.
//!
//! The first two steps and the parsing of templates are done once ([`Manifest::new`]); only the expansion is done again for
//! each cluster ([`Manifest::for_cluster`]).
//!
//! Guarantees: the result depends on the arguments alone. Equal results are equal bytes: JSON with sorted keys. An object with
//! an error yields no manifest, so that nobody can deliver half of it.

pub mod custom;
mod expand;
mod job;
pub mod properties;
mod service;
mod sorted;
mod strip;

use orrery_api::work;
use orrery_gotemplate::Data;
use serde_json::Value;

use custom::Removals;
use expand::Expansion;

/// The annotation that asks for template expansion when it is `"true"`. It travels to the cluster like any other.
pub const EXPAND_TEMPLATES: &str = "control.kubestellar.io/expand-templates";

/// A workload object as clusters get it, ready to be customised for each of them.
#[derive(Debug)]
pub struct Manifest {
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// The same for all clusters.
    Shared(work::Manifest),
    Customised(Expansion),
}

impl Manifest {
    /// Transforms an object as far as that does not depend on the cluster.
    pub fn new(mut object: Value, removals: &Removals) -> Self {
        strip::strip(&mut object);
        Self::transformed(object, removals)
    }

    fn transformed(mut object: Value, removals: &Removals) -> Self {
        removals.apply(&mut object);
        let content = if wants_expansion(&object) {
            match Expansion::new(&object) {
                expansion if expansion.is_literal() => Content::Shared(sorted::written(&object)),
                expansion => Content::Customised(expansion),
            }
        } else {
            Content::Shared(sorted::written(&object))
        };
        Self { content }
    }

    /// Whether clusters may get different contents.
    pub fn is_customised(&self) -> bool {
        matches!(self.content, Content::Customised(_))
    }

    /// The JSON that all clusters get, when it is the same for all.
    pub fn shared(&self) -> Option<&work::Manifest> {
        match &self.content {
            Content::Shared(json) => Some(json),
            Content::Customised(_) => None,
        }
    }

    /// The JSON of the object for one cluster, or everything that is wrong with it.
    pub fn for_cluster(&self, cluster: &str, properties: &Data) -> Result<work::Manifest, Vec<String>> {
        match &self.content {
            Content::Shared(json) => Ok(json.clone()),
            Content::Customised(expansion) => expansion.expand(cluster, properties),
        }
    }

    /// The JSON for each cluster, in the order given. When some fail, the errors of the first of those.
    pub fn for_clusters<'a>(
        &self,
        clusters: impl IntoIterator<Item = (&'a str, &'a Data)>,
    ) -> Result<Vec<work::Manifest>, Vec<String>> {
        clusters.into_iter().map(|(cluster, properties)| self.for_cluster(cluster, properties)).collect()
    }
}

/// An object without what only means something where it was written: the first step, which needs no configuration. It is
/// held as JSON, which is all that most objects ever need.
#[derive(Debug)]
pub struct Stripped {
    json: work::Manifest,
    wants_expansion: bool,
}

impl Stripped {
    /// Takes the first step.
    pub fn new(mut object: Value) -> Self {
        strip::strip(&mut object);
        Self { json: sorted::written(&object), wants_expansion: wants_expansion(&object) }
    }

    /// Takes the others. Where there is nothing more to be done, the JSON is shared.
    pub fn manifest(&self, removals: &Removals) -> Manifest {
        if removals.is_empty() && !self.wants_expansion {
            return Manifest { content: Content::Shared(self.json.clone()) };
        }
        let object = self.json.to_value().expect("it was written by ourselves");
        Manifest::transformed(object, removals)
    }
}

impl PartialEq for Stripped {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

/// Whether the object, as transformed so far, asks for expansion.
fn wants_expansion(object: &Value) -> bool {
    annotation(object, EXPAND_TEMPLATES) == Some("true")
}

fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}
