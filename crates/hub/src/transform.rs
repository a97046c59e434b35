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
mod strip;

use std::sync::Arc;

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
    Shared(Arc<[u8]>),
    Customised(Expansion),
}

impl Manifest {
    /// Transforms an object as far as that does not depend on the cluster.
    pub fn new(mut object: Value, removals: &Removals) -> Self {
        strip::strip(&mut object);
        removals.apply(&mut object);
        let expansion = Expansion::new(&object, wants_expansion(&object));
        let content = match expansion.into_literal() {
            Ok(bytes) => Content::Shared(bytes.into()),
            Err(expansion) => Content::Customised(expansion),
        };
        Self { content }
    }

    /// Whether clusters may get different contents.
    pub fn is_customised(&self) -> bool {
        matches!(self.content, Content::Customised(_))
    }

    /// The JSON that all clusters get, when it is the same for all.
    pub fn shared_bytes(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Shared(bytes) => Some(bytes),
            Content::Customised(_) => None,
        }
    }

    /// The JSON of the object for one cluster, or everything that is wrong with it.
    pub fn for_cluster(&self, cluster: &str, properties: &Data) -> Result<Arc<[u8]>, Vec<String>> {
        match &self.content {
            Content::Shared(bytes) => Ok(Arc::clone(bytes)),
            Content::Customised(expansion) => expansion.expand(cluster, properties).map(Arc::from),
        }
    }

    /// The JSON for each cluster, in the order given. When some fail, the errors of the first of those.
    pub fn for_clusters<'a>(
        &self,
        clusters: impl IntoIterator<Item = (&'a str, &'a Data)>,
    ) -> Result<Vec<Arc<[u8]>>, Vec<String>> {
        clusters.into_iter().map(|(cluster, properties)| self.for_cluster(cluster, properties)).collect()
    }
}

/// The object without what only means something where it was written: the first step, which needs no configuration.
pub fn stripped(mut object: Value) -> Value {
    strip::strip(&mut object);
    object
}

/// Whether the object, as transformed so far, asks for expansion.
fn wants_expansion(object: &Value) -> bool {
    annotation(object, EXPAND_TEMPLATES) == Some("true")
}

fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}
