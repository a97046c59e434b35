//! What every namespace has.

use std::sync::Arc;

use orrery_store::Key;
use serde_json::Value;

use super::{agenda::Outcome, queue::Queue, root_ca, service_accounts, writer};
use crate::{objects, registry::Resource, server::Shared, status::Status, verbs};

/// A namespace of a space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) space: String,
    pub(super) namespace: String,
}

impl Place {
    /// A namespace, or that of an object.
    pub(super) fn of(key: &Key) -> Self {
        let namespace = if key.namespace().is_empty() { key.name() } else { key.namespace() };
        Self { space: key.space().to_owned(), namespace: namespace.to_owned() }
    }

    /// Where something that every namespace has may be missing, by the mark of its template: one that nobody has stored
    /// is not told of when it goes.
    pub(super) fn of_mark(mark: &Key) -> Option<Self> {
        let key = objects::marked(mark)?;
        is_had_by_all(&key).then(|| Self::of(&key))
    }
}

/// Whether an object is one that every namespace has.
pub(super) fn is_had_by_all(key: &Key) -> bool {
    match (key.group(), key.resource()) {
        ("", "serviceaccounts") => key.name() == service_accounts::NAME,
        ("", "configmaps") => key.name() == root_ca::NAME,
        _ => false,
    }
}

/// Gives every namespace what every namespace has.
pub(super) async fn run(shared: Arc<Shared>, queue: Arc<Queue<Place>>) {
    let look = |place: Arc<Place>, ()| {
        let shared = &shared;
        async move {
            let account = service_accounts::ensure(shared, &place).await;
            root_ca::ensure(shared, &place).await.and(account).map(|()| Outcome::Done)
        }
    };
    queue.run("a namespace lacks what every namespace has", look).await;
}

/// What every namespace has, by resource.
fn contents(root_ca: &str) -> [Value; 2] {
    [service_accounts::object(), root_ca::object(root_ca)]
}

/// What a space has besides its bootstrap objects because of these controllers, given the namespaces it begins with.
pub(crate) fn begun(root_ca: &str, namespaces: &[String]) -> Vec<Value> {
    let placed = |namespace: &String| {
        contents(root_ca).map(|mut object| {
            crate::object::Metadata::of(&mut object).set("namespace", namespace.as_str());
            object
        })
    };
    namespaces.iter().flat_map(placed).collect()
}

/// Makes an object that must be there, unless its namespace is going away or gone.
pub(super) async fn ensure(
    shared: &Shared,
    place: &Place,
    resource: &Arc<Resource>,
    name: &str,
    object: Value,
) -> Result<(), Status> {
    let writer = writer(shared, resource, &place.space, &place.namespace);
    if shared.store.get(&writer.key(name)?).is_some() {
        return Ok(());
    }
    if let Err(status) = verbs::admit(shared, &place.space, &place.namespace, verbs::named(resource), name) {
        return if matches!(status.code(), 403 | 404) { Ok(()) } else { Err(status) };
    }
    match writer.create(object, &mut Vec::new()).await {
        Ok(_) => Ok(()),
        Err(status) if matches!(status.code(), 403 | 404 | 409) => Ok(()),
        Err(status) => Err(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_say_where_something_may_be_missing() {
        let place = |name: &str| {
            let (group, resource) = objects::MARKS;
            Place::of_mark(&Key::new(group, resource, "a", "", name).expect("it is a key"))
        };
        let found = Some(Place { space: "a".to_owned(), namespace: "team".to_owned() });
        assert_eq!(place("|serviceaccounts|team|default"), found);
        assert_eq!(place("|configmaps|team|kube-root-ca.crt"), found);
        assert_eq!(place("|configmaps|team|other"), None);
        assert_eq!(place("rbac.authorization.k8s.io|clusterroles||default"), None);
    }
}
