//! What placement knows of an object.

use std::{cmp::Ordering, fmt, sync::Arc};

use orrery_api::{control::ObjectReference, labels::Labels};

/// A resource: what objects of one kind are kept under. Ordered by group, then by resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupResource {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The resource in the plural.
    pub resource: Arc<str>,
}

/// An object's identity. Ordered by resource, then namespace, then name, which is the order of Bindings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId {
    /// The resource.
    pub resource: GroupResource,
    /// The namespace; empty when the object has none.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectId {
    /// The identity with these parts.
    pub fn new(group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            resource: GroupResource { group: group.into(), resource: resource.into() },
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// How the API refers to the object, of which this is known.
    pub fn reference(&self, facts: Option<&ObjectFacts>) -> ObjectReference {
        ObjectReference {
            group: self.resource.group.to_string(),
            version: facts.map(|facts| facts.version.to_string()).unwrap_or_default(),
            resource: self.resource.resource.to_string(),
            namespace: self.namespace.to_string(),
            name: self.name.to_string(),
        }
    }
}

impl Ord for GroupResource {
    fn cmp(&self, other: &Self) -> Ordering {
        compared(&self.group, &other.group).then_with(|| compared(&self.resource, &other.resource))
    }
}

impl PartialOrd for GroupResource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> Ordering {
        let resource = self.resource.cmp(&other.resource);
        resource
            .then_with(|| compared(&self.namespace, &other.namespace))
            .then_with(|| compared(&self.name, &other.name))
    }
}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Most identities that are compared share their beginning.
fn compared(one: &Arc<str>, other: &Arc<str>) -> Ordering {
    if Arc::ptr_eq(one, other) { Ordering::Equal } else { one.cmp(other) }
}

impl From<&ObjectReference> for ObjectId {
    fn from(object: &ObjectReference) -> Self {
        Self::new(&object.group, &object.resource, &object.namespace, &object.name)
    }
}

impl fmt::Display for GroupResource {
    /// `resource.group`, as kubectl writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

impl fmt::Display for ObjectId {
    /// `resource.group namespace/name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.resource)?;
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// What tests look at, and what a Binding repeats, beside the identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFacts {
    /// The version the object is read in.
    pub version: Arc<str>,
    /// Its labels.
    pub labels: Labels,
}
