//! Discovery: which groups, versions and resources are served, in the old form and the aggregated one.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    registry::{Group, Resource, Storage, Subresource, Version},
    schema::encode_base64,
};

/// The aggregated forms, by the version of their own API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregated {
    /// `apidiscovery.k8s.io/v2`.
    V2,
    /// `apidiscovery.k8s.io/v2beta1`, for clients from 1.26 to 1.29.
    V2Beta1,
}

impl Aggregated {
    /// The version as it stands in media types.
    pub fn version(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V2Beta1 => "v2beta1",
        }
    }
}

/// `/api`: the versions of the core group, and where the server is reached.
pub fn versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
    })
}

/// `/apis`: all groups but the core one.
pub fn groups<'a>(groups: impl IntoIterator<Item = &'a Group>) -> Value {
    let named = groups.into_iter().filter(|group| !group.name.is_empty());
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": named.map(described).collect::<Vec<_>>() })
}

/// `/apis/<group>`.
pub fn group(group: &Group) -> Value {
    let mut made = described(group);
    made["kind"] = "APIGroup".into();
    made["apiVersion"] = "v1".into();
    made
}

fn described(group: &Group) -> Value {
    let version = |version: &Version| json!({ "groupVersion": format!("{}/{}", group.name, version.name), "version": version.name });
    json!({
        "name": group.name,
        "versions": group.versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": group.versions.first().map(version),
    })
}

/// `/apis/<group>/<version>` and `/api/v1`.
pub fn resources(group: &str, version: &Version) -> Value {
    let name = if group.is_empty() { version.name.clone() } else { format!("{group}/{}", version.name) };
    let listed: Vec<Value> = version.resources.iter().flat_map(|resource| listed(resource)).collect();
    let mut made = json!({ "kind": "APIResourceList", "groupVersion": name, "resources": listed });
    // The core has been listed since before lists had versions.
    if !group.is_empty() {
        made["apiVersion"] = "v1".into();
    }
    made
}

/// A resource and all that lies below it.
fn listed(resource: &Resource) -> Vec<Value> {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    names(resource, &mut entry);
    if let Storage::Stored { group, version, .. } = &resource.storage {
        // The real server still stores these in an earlier form, which clients see in the hash alone.
        let version = match (group.as_str(), resource.kind.as_str()) {
            (_, "CustomResourceDefinition" | "VolumeAttributesClass") => "v1beta1",
            ("resource.k8s.io", _) => "v1beta2",
            _ => version,
        };
        entry["storageVersionHash"] = storage_version_hash(group, version, &resource.kind).into();
    }
    let below = resource.subresources.iter().map(|subresource| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, subresource.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": subresource.kind,
            "verbs": subresource.verbs,
        });
        if subresource.foreign_kind {
            entry["group"] = subresource.kind_group.as_str().into();
            entry["version"] = subresource.kind_version.as_str().into();
        }
        entry
    });
    std::iter::once(entry).chain(below).collect()
}

fn names(resource: &Resource, entry: &mut Value) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

/// Groups with everything in them, in one answer.
pub fn aggregated<'a>(groups: impl IntoIterator<Item = &'a Group>, form: Aggregated) -> Value {
    let items: Vec<Value> = groups
        .into_iter()
        .map(|group| {
            let metadata = if group.name.is_empty() { json!({}) } else { json!({ "name": group.name }) };
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = version.resources.iter().map(|resource| whole(resource)).collect();
                    json!({ "version": version.name, "resources": resources, "freshness": "Current" })
                })
                .collect();
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{}", form.version()),
        "metadata": {},
        "items": items,
    })
}

fn whole(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": { "group": "", "version": "", "kind": resource.kind },
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    names(resource, &mut entry);
    if !resource.subresources.is_empty() {
        entry["subresources"] = resource.subresources.iter().map(below).collect::<Vec<_>>().into();
    }
    entry
}

fn below(subresource: &Subresource) -> Value {
    let mut kind = Map::new();
    let own = |named: &str| if subresource.foreign_kind { named.to_owned() } else { String::new() };
    kind.insert("group".into(), own(&subresource.kind_group).into());
    kind.insert("version".into(), own(&subresource.kind_version).into());
    kind.insert("kind".into(), subresource.kind.as_str().into());
    json!({ "subresource": subresource.name, "responseKind": kind, "verbs": subresource.verbs })
}

/// The hash that tells clients when the stored form of a kind has changed.
fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    encode_base64(&digest[..8])
}
