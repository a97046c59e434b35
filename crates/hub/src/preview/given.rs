//! Objects that are given with a question: what they are, and what is supposed with them.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use orrery_api::{cluster, cluster::PROPERTIES_NAMESPACE, control, labels::Labels};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    delivery::{Properties, Supposition},
    placement::{GroupResource, ObjectFacts, ObjectId},
};

/// A kind that can be sent to clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sendable {
    /// The resource.
    pub resource: GroupResource,
    /// The version in which it is sent.
    pub version: Arc<str>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// What is around a question.
pub trait Surroundings {
    /// The kind of this name, if it can be sent.
    fn kind(&self, group: &str, kind: &str) -> Option<Sendable>;

    /// Whether the space holds the clusters and their properties.
    fn is_inventory(&self) -> bool;
}

/// Sorts one object into a supposition.
pub(super) fn suppose(all: &mut Supposition, object: &Value, around: &dyn Surroundings) -> Result<(), String> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let kind = text("kind");
    let name = object["metadata"]["name"].as_str().filter(|name| !name.is_empty()).ok_or("it has no metadata.name")?;
    match (group, kind) {
        (control::GROUP, "BindingPolicy") => {
            all.policies.insert(name.into(), spec(object)?);
            return Ok(());
        }
        (control::GROUP, "CustomTransform") => {
            all.transforms.insert(name.to_owned(), spec(object)?);
            return Ok(());
        }
        // What comes back changes nothing of what is sent.
        (control::GROUP, "StatusCollector") => return Ok(()),
        (cluster::GROUP, "ManagedCluster") if around.is_inventory() => {
            all.clusters.insert(name.into(), (texts(object, "labels"), texts(object, "annotations")));
        }
        ("", "Namespace") => drop(all.namespaces.insert(name.into(), texts(object, "labels"))),
        ("", "ConfigMap")
            if around.is_inventory() && object["metadata"]["namespace"].as_str() == Some(PROPERTIES_NAMESPACE) =>
        {
            all.properties.insert(name.into(), properties(object));
        }
        _ => {}
    }
    let Some(found) = around.kind(group, kind) else {
        let is_used = (group, kind) == (cluster::GROUP, "ManagedCluster") && around.is_inventory();
        return if is_used { Ok(()) } else { Err(format!("objects of kind {kind} are never sent to clusters")) };
    };
    if *found.version != *version {
        return Err(format!("it must be given in version {}, in which it is sent", found.version));
    }
    let namespace = match object["metadata"]["namespace"].as_str() {
        _ if !found.namespaced => "",
        None | Some("") => return Err("it has no metadata.namespace".to_owned()),
        Some(namespace) => namespace,
    };
    let id = ObjectId { resource: found.resource, namespace: namespace.into(), name: name.into() };
    let facts = ObjectFacts { version: found.version, labels: texts(object, "labels") };
    all.objects.insert(id, (facts, object.clone()));
    Ok(())
}

/// The properties that a ConfigMap has for the cluster it is named after.
pub(crate) fn properties(object: &Value) -> Properties {
    let strings = object["data"].as_object().into_iter().flatten();
    let strings = strings.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let bytes = object["binaryData"].as_object().into_iter().flatten();
    let bytes = bytes.filter_map(|(name, value)| Some((name.clone(), STANDARD.decode(value.as_str()?).ok()?)));
    Properties { data: strings.collect(), binary_data: bytes.collect() }
}

fn spec<T: DeserializeOwned + Default>(object: &Value) -> Result<T, String> {
    let spec = object.get("spec").filter(|spec| !spec.is_null());
    spec.map(T::deserialize).transpose().map(Option::unwrap_or_default).map_err(|error| error.to_string())
}

fn texts(object: &Value, field: &str) -> Labels {
    let members = object["metadata"][field].as_object().into_iter().flatten();
    let members = members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    members.collect::<BTreeMap<_, _>>()
}
