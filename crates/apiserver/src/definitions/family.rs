//! What one definition makes: the versions of a kind, their schemas, and how objects go from one to another.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{conversion::converted, kinds::precedence, webhook::Webhook};
use crate::{
    custom::{Refused, Scale, Structural, columns::Columns, open_api},
    registry::{Behaviour, FieldLabels, Registry, Resource, Storage, Subresource},
    status::Status,
};

/// A compiled definition, shared by all spaces that have an equal one.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) family: Arc<Family>,
    /// The names it was given.
    pub(crate) names: Value,
    /// A resource for each version, in the order of the definition.
    pub(crate) resources: Vec<Arc<Resource>>,
}

/// All versions of a kind.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    /// What tells the definition from others.
    pub(crate) hash: [u8; 32],
    pub(crate) versions: Vec<Version>,
    /// Which of the versions is stored.
    pub(crate) storage: usize,
    conversion: Conversion,
}

/// A version of a kind.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) schema: Arc<Structural>,
    /// `openAPIV3Schema`, for those who describe it.
    pub(crate) described: Option<Box<str>>,
    /// `selectableFields`, likewise.
    pub(crate) selectable: Vec<Value>,
    /// What tells whether an object was written by this schema: then it is as it would be read.
    pub(crate) mark: u64,
    /// `specReplicasPath` of its scale, if it can be scaled.
    pub(crate) replicas: Option<String>,
    /// What users of the version are told.
    pub(crate) deprecation: Option<String>,
}

/// What becomes of objects that are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// They are stored.
    Stored,
    /// They are answered, and nothing else can be done with them.
    Answered,
}

impl Keeping {
    /// What tells definitions apart that are equal otherwise.
    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Stored => "",
            Self::Answered => "answered",
        }
    }
}

/// How objects go from one version to another.
#[derive(Debug)]
enum Conversion {
    /// By saying so.
    Rename,
    /// As a server elsewhere says.
    Webhook(Arc<Webhook>),
}

/// What a resource knows of the custom kind it serves a version of.
#[derive(Debug, Clone)]
pub(crate) struct Custom {
    pub(crate) family: Arc<Family>,
    /// The place of the version in the family.
    pub(crate) version: usize,
    pub(crate) columns: Columns,
    /// Where the scale is, if there is one.
    pub(crate) scale: Option<Scale>,
}

impl Custom {
    /// The version this resource serves.
    pub(crate) fn version(&self) -> &Version {
        &self.family.versions[self.version]
    }

    /// The schema of the version.
    pub(crate) fn schema(&self) -> &Structural {
        &self.version().schema
    }

    /// What documents call the version, which a resource serves.
    pub(crate) fn named<'a>(&'a self, resource: &'a Resource) -> open_api::Named<'a> {
        open_api::Named {
            group: &self.family.group,
            version: &self.version().name,
            kind: &self.family.kind,
            list_kind: &self.family.list_kind,
            plural: &resource.plural,
            selectable: &self.version().selectable,
        }
    }

    /// Whether objects are stored in this version.
    pub(crate) fn is_stored(&self) -> bool {
        self.version == self.family.storage
    }
}

impl Family {
    /// A version by its name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.versions.iter().position(|version| version.name == name)
    }

    /// The version that objects are stored in.
    pub(crate) fn stored(&self) -> &Version {
        &self.versions[self.storage]
    }

    /// What stands in the `apiVersion` of objects of a version.
    pub(crate) fn api_version(&self, version: usize) -> String {
        format!("{}/{}", self.group, self.versions[version].name)
    }

    /// Turns an object of one version into an object of another. What the other does not know is dropped.
    pub(crate) fn convert(&self, object: Value, from: usize, to: usize) -> Result<Value, Status> {
        let mut converted = self.turn(object, from, to)?;
        if from != to {
            self.versions[to].schema.prune(&mut converted);
        }
        Ok(converted)
    }

    /// Turns an object of one version into an object of another, with all it has.
    pub(crate) fn turn(&self, object: Value, from: usize, to: usize) -> Result<Value, Status> {
        if from == to {
            return Ok(object);
        }
        let wanted = self.api_version(to);
        let mut converted = match &self.conversion {
            Conversion::Rename => object,
            Conversion::Webhook(webhook) => {
                let named = format!("{}, Kind={}", self.api_version(from), self.kind);
                self::converted(webhook, &object, &named, &wanted)?
            }
        };
        converted["apiVersion"] = wanted.into();
        Ok(converted)
    }

    /// An object as it was stored in a version, as another version shows it now: with the defaults that have come since.
    pub(crate) fn read(&self, mut object: Value, stored: usize, to: usize) -> Result<Value, Status> {
        self.versions[stored].schema.prune(&mut object);
        self.versions[stored].schema.default(&mut object);
        self.convert(object, stored, to)
    }
}

impl Served {
    /// Compiles the spec of a definition. `names` are those that were accepted.
    pub(super) fn compile(spec: &Value, names: &Value, hash: [u8; 32], keeping: Keeping) -> Result<Self, Refused> {
        let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let group = text(spec, "group");
        let kind = text(names, "kind");
        let listed: &[Value] = spec["versions"].as_array().map_or(&[], Vec::as_slice);
        let versions = listed.iter().map(|version| self::version(version, listed, &group, &kind));
        let family = Arc::new(Family {
            versions: versions.collect::<Result<_, _>>()?,
            storage: listed.iter().position(|version| version["storage"] == true).unwrap_or(0),
            conversion: conversion(&spec["conversion"]),
            list_kind: text(names, "listKind"),
            hash,
            group,
            kind,
        });
        let resources = listed.iter().enumerate();
        let resources = resources.map(|(index, version)| match keeping {
            Keeping::Stored => Arc::new(resource(&family, index, spec, names, version)),
            Keeping::Answered => Arc::new(answered(resource(&family, index, spec, names, version))),
        });
        Ok(Self { resources: resources.collect(), names: names.clone(), family })
    }

    /// The resource of a version that is served.
    pub(crate) fn resource(&self, version: &str) -> Option<&Arc<Resource>> {
        let index = self.family.find(version).filter(|index| self.family.versions[*index].served)?;
        self.resources.get(index)
    }

    /// The resource in whose version objects are stored.
    pub(crate) fn stored(&self) -> Option<&Arc<Resource>> {
        self.resources.get(self.family.storage)
    }
}

fn version(version: &Value, listed: &[Value], group: &str, kind: &str) -> Result<Version, Refused> {
    let name = version["name"].as_str().unwrap_or_default();
    let described = version.pointer("/schema/openAPIV3Schema").map(Value::to_string);
    let text = described.as_deref().unwrap_or(r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#);
    let hash = Sha256::new().chain_update(name).chain_update([0]).chain_update(text).finalize();
    let told = version["deprecated"] == true;
    let deprecation = told.then(|| match version["deprecationWarning"].as_str() {
        Some(warning) => warning.to_owned(),
        None => deprecation(name, listed, group, kind),
    });
    Ok(Version {
        name: name.to_owned(),
        served: version["served"] == true,
        schema: Structural::shared(text.as_bytes())?,
        mark: u64::from_le_bytes(hash[..8].try_into().unwrap_or_default()) | 1,
        described: described.map(Into::into),
        selectable: version["selectableFields"].as_array().cloned().unwrap_or_default(),
        replicas: version.pointer("/subresources/scale/specReplicasPath").and_then(Value::as_str).map(str::to_owned),
        deprecation,
    })
}

/// What users of a deprecated version are told: also what to use instead, if there is something better.
fn deprecation(name: &str, listed: &[Value], group: &str, kind: &str) -> String {
    let usable = listed.iter().filter(|version| version["served"] == true && version["deprecated"] != true);
    let better = usable.filter_map(|version| version["name"].as_str()).max_by_key(|name| precedence(name));
    match better.filter(|better| precedence(better) > precedence(name)) {
        Some(better) => format!("{group}/{name} {kind} is deprecated; use {group}/{better} {kind}"),
        None => format!("{group}/{name} {kind} is deprecated"),
    }
}

fn conversion(conversion: &Value) -> Conversion {
    match conversion["strategy"].as_str() {
        Some("Webhook") => Conversion::Webhook(Arc::new(Webhook::of(&conversion["webhook"]))),
        _ => Conversion::Rename,
    }
}

/// What can be done with custom resources, in the order of discovery.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// What can be done with a part of them.
const PART_VERBS: [&str; 3] = ["get", "patch", "update"];

/// A resource whose objects are only created and answered.
fn answered(resource: Resource) -> Resource {
    Resource { verbs: vec!["create".to_owned()], subresources: Vec::new(), storage: Storage::Virtual, ..resource }
}

fn resource(family: &Arc<Family>, index: usize, spec: &Value, names: &Value, version: &Value) -> Resource {
    let registry = Registry::kubernetes();
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let texts = |field: &str| {
        let list = names[field].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let owned = |verbs: &[&str]| verbs.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>();
    let plural = text(names, "plural");
    let scale = version.pointer("/subresources/scale").map(|scale| Scale {
        spec_replicas: text(scale, "specReplicasPath"),
        status_replicas: text(scale, "statusReplicasPath"),
        label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
    });
    let mut subresources = Vec::new();
    if version.pointer("/subresources/status").is_some() {
        subresources.push(Subresource {
            name: "status".to_owned(),
            kind: family.kind.clone(),
            kind_group: family.group.clone(),
            kind_version: text(version, "name"),
            foreign_kind: false,
            verbs: owned(&PART_VERBS),
            schema: None,
        });
    }
    if scale.is_some() {
        subresources.push(Subresource {
            name: "scale".to_owned(),
            kind: "Scale".to_owned(),
            kind_group: "autoscaling".to_owned(),
            kind_version: "v1".to_owned(),
            foreign_kind: true,
            verbs: owned(&PART_VERBS),
            schema: registry.schemas().find("io.k8s.api.autoscaling.v1.Scale"),
        });
    }
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    let selectable = selectable.filter_map(|field| field["jsonPath"].as_str());
    let labels = selectable.map(|path| path.trim_start_matches('.').to_owned()).map(|path| (path.clone(), path));
    Resource {
        group: family.group.clone(),
        version: text(version, "name"),
        singular: text(names, "singular"),
        kind: family.kind.clone(),
        namespaced: spec["scope"] == "Namespaced",
        short_names: texts("shortNames"),
        categories: texts("categories"),
        verbs: owned(&VERBS),
        subresources,
        storage: Storage::Stored {
            group: family.group.clone(),
            resource: plural.clone(),
            version: family.stored().name.clone(),
        },
        plural,
        schema: registry.schemas().partial_metadata(),
        schemas: registry.schemas().clone(),
        columns: Vec::new(),
        behaviour: Behaviour::custom(FieldLabels::custom(labels.collect())),
        custom: Some(Custom { family: family.clone(), version: index, columns: Columns::of(version), scale }),
    }
}
