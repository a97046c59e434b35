//! Which type an object is of by what it says of itself.

use std::{collections::HashMap, sync::OnceLock};

use crate::{
    registry::{Registry, Resource},
    schema::StructRef,
};

/// What is sent besides objects of resources: version, kind and type.
const OTHERS: [(&str, &str, &str); 11] = [
    ("v1", "DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"),
    ("v1", "Status", "io.k8s.apimachinery.pkg.apis.meta.v1.Status"),
    ("", "APIVersions", "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions"),
    ("v1", "APIGroup", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup"),
    ("v1", "APIGroupList", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList"),
    ("v1", "APIResourceList", "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList"),
    ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList", "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList"),
    ("apidiscovery.k8s.io/v2beta1", "APIGroupDiscoveryList", "io.k8s.api.apidiscovery.v2beta1.APIGroupDiscoveryList"),
    ("meta.k8s.io/v1", "PartialObjectMetadataList", "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList"),
    (
        "meta.k8s.io/v1beta1",
        "PartialObjectMetadataList",
        "io.k8s.apimachinery.pkg.apis.meta.v1beta1.PartialObjectMetadataList",
    ),
    ("meta.k8s.io/v1", "PartialObjectMetadata", PARTIAL),
];

/// One object's metadata, the same in both versions.
const PARTIAL: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";

/// Whether objects of a resource have a form in protobuf. Those that are not built in have none.
pub(crate) fn has_form(resource: &Resource) -> bool {
    resource.custom.is_none() && resource.schemas.get(resource.schema).message
}

/// The type of the options of a deletion, which come in protobuf too.
pub(crate) fn delete_options() -> Option<StructRef> {
    find("v1", "DeleteOptions")
}

/// The type of a kind; none if it has no form in protobuf.
pub(super) fn find(api_version: &str, kind: &str) -> Option<StructRef> {
    static KINDS: OnceLock<HashMap<String, StructRef>> = OnceLock::new();
    KINDS.get_or_init(all).get(&name(api_version, kind)).copied()
}

fn name(api_version: &str, kind: &str) -> String {
    format!("{api_version} {kind}")
}

fn all() -> HashMap<String, StructRef> {
    let registry = Registry::kubernetes();
    let schemas = registry.schemas();
    let mut kinds = HashMap::new();
    let mut add = |api_version: &str, kind: &str, schema: Option<StructRef>| {
        if let Some(schema) = schema.filter(|schema| schemas.get(*schema).message) {
            kinds.insert(name(api_version, kind), schema);
        }
    };
    let versions = registry.groups().iter().flat_map(|group| &group.versions);
    for resource in versions.flat_map(|version| &version.resources) {
        let api_version = resource.api_version();
        add(&api_version, &resource.kind, Some(resource.schema));
        let list = format!("{}List", schemas.get(resource.schema).name);
        add(&api_version, &format!("{}List", resource.kind), schemas.find(&list));
        for part in &resource.subresources {
            let api_version = match part.kind_group.as_str() {
                "" => part.kind_version.clone(),
                group => format!("{group}/{}", part.kind_version),
            };
            add(&api_version, &part.kind, part.schema);
        }
    }
    for (api_version, kind, schema) in OTHERS {
        add(api_version, kind, schemas.find(schema));
    }
    // The core group, being older than versions of kinds, does not say which version its own description is in.
    add("", "APIResourceList", schemas.find("io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList"));
    add("meta.k8s.io/v1beta1", "PartialObjectMetadata", schemas.find(PARTIAL));
    kinds
}
