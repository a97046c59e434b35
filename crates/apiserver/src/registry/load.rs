//! Reads the registry from the data that `cargo xtask kube-data` wrote.

use std::{collections::HashMap, io::Read, sync::Arc};

use serde::Deserialize;

use super::{Column, Group, Registry, Resource, Storage, Subresource, Version, behaviour};
use crate::schema::Schemas;

const RESOURCES: &[u8] = include_bytes!("../../data/kube-1.34/resources.json.gz");
const SCHEMAS: &[u8] = include_bytes!("../../data/kube-1.34/schemas.json.gz");
/// Our own kinds, in the same form.
const OWN_RESOURCES: &[u8] = include_bytes!("../../data/orrery/resources.json");
const OWN_SCHEMAS: &[u8] = include_bytes!("../../data/orrery/schemas.json");

#[derive(Deserialize)]
struct Data {
    groups: Vec<GroupData>,
}

#[derive(Deserialize)]
struct GroupData {
    group: String,
    versions: Vec<VersionData>,
}

#[derive(Deserialize)]
struct VersionData {
    version: String,
    resources: Vec<ResourceData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceData {
    plural: String,
    singular: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    verbs: Vec<String>,
    #[serde(default)]
    columns: Vec<Column>,
    #[serde(default)]
    subresources: Vec<SubresourceData>,
    schema: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceData {
    name: String,
    kind: String,
    kind_group: Option<String>,
    kind_version: Option<String>,
    verbs: Vec<String>,
    schema: Option<String>,
}

/// The registry of the built-in kinds.
pub(super) fn registry() -> Registry {
    let mut data: Data = serde_json::from_slice(&unpacked(RESOURCES)).expect("the generator wrote this form");
    let own: Data = serde_json::from_slice(OWN_RESOURCES).expect("it has the generator's form");
    data.groups.extend(own.groups);
    let schemas = Schemas::parse(&[&unpacked(SCHEMAS), OWN_SCHEMAS]).expect("both have the generator's form");
    let schemas = Arc::new(schemas);
    let mut groups = Vec::new();
    let (mut resources, mut kinds) = (HashMap::new(), HashMap::new());
    for group in data.groups {
        let mut versions = Vec::new();
        for version in group.versions {
            let mut listed = Vec::new();
            for data in version.resources {
                let resource = Arc::new(resource(&group.group, &version.version, data, &schemas));
                let name = |last: &str| (group.group.as_str().into(), version.version.as_str().into(), last.into());
                resources.insert(name(&resource.plural), Arc::clone(&resource));
                kinds.insert(name(&resource.kind), Arc::clone(&resource));
                listed.push(resource);
            }
            versions.push(Version { name: version.version, resources: listed });
        }
        groups.push(Group { name: group.group, versions });
    }
    Registry { groups, resources, kinds, schemas }
}

fn resource(group: &str, version: &str, data: ResourceData, schemas: &Arc<Schemas>) -> Resource {
    let found = |name: &str| schemas.find(name).expect("the generator checked that every kind has a schema");
    let subresources = data
        .subresources
        .into_iter()
        .map(|listed| Subresource {
            foreign_kind: listed.kind_version.is_some(),
            kind_group: listed.kind_group.unwrap_or_else(|| group.to_owned()),
            kind_version: listed.kind_version.unwrap_or_else(|| version.to_owned()),
            schema: listed.schema.as_deref().map(found),
            name: listed.name,
            kind: listed.kind,
            verbs: listed.verbs,
        })
        .collect();
    Resource {
        schema: found(&data.schema),
        storage: storage(group, version, &data.plural, &data.verbs),
        behaviour: behaviour::of(group, &data.plural),
        schemas: Arc::clone(schemas),
        group: group.to_owned(),
        version: version.to_owned(),
        plural: data.plural,
        singular: data.singular,
        kind: data.kind,
        namespaced: data.namespaced,
        short_names: data.short_names,
        categories: data.categories,
        verbs: data.verbs,
        subresources,
        columns: data.columns,
        custom: None,
    }
}

/// What can be watched is stored. Both groups of events share one place, and so do the versions of a kind.
fn storage(group: &str, version: &str, plural: &str, verbs: &[String]) -> Storage {
    if !verbs.iter().any(|verb| verb == "watch") {
        return Storage::Virtual;
    }
    let (group, version) = match (group, plural) {
        ("events.k8s.io", "events") => ("", "v1"),
        ("autoscaling", "horizontalpodautoscalers") => (group, "v2"),
        _ => (group, version),
    };
    Storage::Stored { group: group.to_owned(), resource: plural.to_owned(), version: version.to_owned() }
}

/// Unpacks data that is part of the program.
pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut text).expect("the generator packed this");
    text
}
