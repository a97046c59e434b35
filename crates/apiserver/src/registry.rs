//! Every built-in kind as data: loaded once, shared by all spaces.

mod behaviour;
mod bootstrap;
mod load;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

pub use behaviour::{Behaviour, DeleteAnswer, FieldLabels};
pub(crate) use load::unpacked;

use crate::{
    definitions::Custom,
    schema::{Schemas, StructRef},
};

/// The kinds a server knows.
pub struct Registry {
    groups: Vec<Group>,
    resources: HashMap<ResourceName, Arc<Resource>>,
    kinds: HashMap<ResourceName, Arc<Resource>>,
    schemas: Arc<Schemas>,
}

/// Group, version and either plural or kind.
type ResourceName = (Box<str>, Box<str>, Box<str>);

/// An API group with its versions, the preferred one first.
#[derive(Debug, Clone)]
pub struct Group {
    /// Empty for the core group.
    pub name: String,
    /// In order of preference.
    pub versions: Vec<Version>,
}

/// A version of a group with its resources in the order discovery lists them.
#[derive(Debug, Clone)]
pub struct Version {
    /// For example `v1`.
    pub name: String,
    /// Its resources by plural name.
    pub resources: Vec<Arc<Resource>>,
}

/// A kind as one version of its group serves it.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// The name in paths.
    pub plural: String,
    /// The name of one.
    pub singular: String,
    /// The kind of its objects.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Short forms for the command line.
    pub short_names: Vec<String>,
    /// Groupings for the command line, such as `all`.
    pub categories: Vec<String>,
    /// What can be done, in the order of discovery.
    pub verbs: Vec<String>,
    /// What lies below an object.
    pub subresources: Vec<Subresource>,
    /// Where its objects are kept.
    pub storage: Storage,
    /// The type of its objects.
    pub schema: StructRef,
    /// All types, to look references up in.
    pub schemas: Arc<Schemas>,
    /// The columns of its tables; empty for what is never printed.
    pub columns: Vec<Column>,
    /// What verbs do with it beyond what discovery says.
    pub behaviour: Behaviour,
    /// What only a custom resource has; none for built-in kinds.
    pub(crate) custom: Option<Custom>,
}

/// Something below an object with a body and verbs of its own.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// The last part of the path.
    pub name: String,
    /// The kind of its body.
    pub kind: String,
    /// The group of that kind.
    pub kind_group: String,
    /// The version of that kind.
    pub kind_version: String,
    /// Whether group and version differ from the resource's, so that discovery names them.
    pub foreign_kind: bool,
    /// What can be done.
    pub verbs: Vec<String>,
    /// The type of its body; none where the body is free text or a stream.
    pub schema: Option<StructRef>,
}

/// Where objects are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In the store, under key parts that all versions of the kind share.
    Stored {
        /// The group in the key.
        group: String,
        /// The resource in the key.
        resource: String,
        /// The version whose form is stored.
        version: String,
    },
    /// Answered by a component, never stored.
    Virtual,
}

/// A column of a resource's tables.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The type of its cells: string, integer, date …
    #[serde(rename = "type")]
    pub kind: String,
    /// `name` for the column that holds the name.
    pub format: String,
    /// Shown by default when 0, otherwise only in wide output.
    pub priority: i64,
}

impl Registry {
    /// The built-in kinds of the supported Kubernetes version.
    pub fn kubernetes() -> Arc<Registry> {
        static SHARED: OnceLock<Arc<Registry>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| Arc::new(load::registry())))
    }

    /// The resource a path names.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.into(), version.into(), plural.into()))
    }

    /// The resource of a kind, as an owner reference names it.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.kinds.get(&(group.into(), version.into(), kind.into()))
    }

    /// The groups, core first, as discovery lists them.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// A group by its name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// All types.
    pub fn schemas(&self) -> &Arc<Schemas> {
        &self.schemas
    }

    /// The objects a fresh space starts with, each as JSON text.
    pub fn bootstrap(&self) -> Vec<Box<str>> {
        bootstrap::objects()
    }
}

impl Group {
    /// A version by its name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }
}

impl Resource {
    /// `v1`, `apps/v1`: what stands in `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// A subresource by its name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether a verb is served on the resource itself.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }
}
