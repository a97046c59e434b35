//! What the server notes in an object about whoever makes it.

use serde_json::{Map, Value};

use super::User;
use crate::registry::Resource;

/// Writes into a request for a certificate who asks for it, whatever the request says itself.
pub(crate) fn note_requester(resource: &Resource, user: &User, object: &mut Value) {
    if (resource.group.as_str(), resource.plural.as_str()) != ("certificates.k8s.io", "certificatesigningrequests") {
        return;
    }
    let Value::Object(spec) = &mut object["spec"] else { return };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    let mut note = |field: &str, value: Value, there: bool| {
        if there {
            spec.insert(field.to_owned(), value);
        }
    };
    let extra: Map<String, Value> =
        user.extra.iter().map(|(key, values)| (key.clone(), values.clone().into())).collect();
    note("username", user.name.clone().into(), !user.name.is_empty());
    note("uid", user.uid.clone().into(), !user.uid.is_empty());
    note("groups", user.groups.clone().into(), !user.groups.is_empty());
    note("extra", extra.into(), !user.extra.is_empty());
}
