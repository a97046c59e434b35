//! Documents of groups that no real server was asked for, our own above all: made from the registry, in the shape of the recorded ones.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value, json};

use sha2::{Digest, Sha512};

use super::{assemble, custom};
use crate::{
    custom::open_api,
    registry::{Registry, Resource, Version},
    schema::{Shape, Struct, StructRef, Type},
};

/// A version of a group that has no recorded document.
pub(super) struct Generated {
    group: String,
    version: String,
    resources: Vec<Arc<Resource>>,
}

/// What every document refers to beyond its own kinds.
const SHARED: [&str; 3] = ["DeleteOptions", "ListMeta", "Status"];
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// All such versions.
pub(super) fn groups() -> &'static [Generated] {
    static GROUPS: OnceLock<Vec<Generated>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let registry = Registry::kubernetes();
        let recorded: BTreeSet<&str> = assemble::v3_paths().collect();
        let versions =
            registry.groups().iter().flat_map(|group| group.versions.iter().map(move |version| (group, version)));
        versions
            .map(|(group, version)| Generated {
                group: group.name.clone(),
                version: version.name.clone(),
                resources: version.resources.clone(),
            })
            .filter(|generated| !recorded.contains(generated.path().as_str()))
            .collect()
    })
}

/// The version of OpenAPI that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edition {
    V2,
    V3,
}

impl Generated {
    /// A version of a group that has custom resources.
    pub(super) fn extended(group: &str, version: &Version) -> Self {
        Self { group: group.to_owned(), version: version.name.clone(), resources: version.resources.clone() }
    }

    /// What tells the contents from others.
    pub(super) fn hash(&self) -> Sha512 {
        let custom = self.resources.iter().filter_map(|resource| resource.custom.as_ref());
        let hash = Sha512::new_with_prefix(self.path());
        custom.fold(hash, |hash, custom| hash.chain_update(custom.family.hash))
    }

    /// Where the document of version 3 is found.
    pub(super) fn path(&self) -> String {
        if self.group.is_empty() {
            format!("api/{}", self.version)
        } else {
            format!("apis/{}/{}", self.group, self.version)
        }
    }

    /// What belongs into the document of version 2.
    pub(super) fn v2(&self) -> Value {
        json!({ "paths": self.paths(Edition::V2), "definitions": self.definitions(Edition::V2) })
    }

    /// The document of version 3.
    pub(super) fn v3(&self) -> Value {
        let mut schemas = Value::Object(self.definitions(Edition::V3));
        assemble::describe(Some(&mut schemas), &assemble::descriptions());
        let custom = self.resources.iter().all(|resource| resource.custom.is_some());
        let info = match custom {
            true => json!({ "title": "Kubernetes CRD Swagger", "version": "v0.1.0" }),
            false => json!({ "title": "Kubernetes", "version": "1.34" }),
        };
        json!({
            "openapi": "3.0.0",
            "info": info,
            "paths": self.paths(Edition::V3),
            "components": { "schemas": schemas },
        })
    }

    fn definitions(&self, edition: Edition) -> Map<String, Value> {
        let mut made = Map::new();
        for resource in &self.resources {
            if let Some(custom) = &resource.custom {
                let named = custom.named(resource);
                let schema = custom.version().described.as_deref().and_then(|text| serde_json::from_str(text).ok());
                let version = edition.of_custom();
                made.insert(named.definition_name(), open_api::definition(named, schema.as_ref(), version));
                if resource.allows("list") {
                    made.insert(named.list_definition_name(), open_api::list_definition(named, version));
                }
                if edition == Edition::V3 {
                    made.extend(custom::shared(custom.scale.is_some()));
                }
                continue;
            }
            let schemas = &resource.schemas;
            let shared = SHARED.iter().filter_map(|name| schemas.find(&format!("{META}.{name}")));
            let bodies = resource.subresources.iter().filter_map(|subresource| subresource.schema);
            let mut waiting: Vec<StructRef> = shared.chain(bodies).chain([resource.schema]).collect();
            while let Some(reference) = waiting.pop() {
                let described = schemas.get(reference);
                if made.contains_key(described.name.as_ref()) {
                    continue;
                }
                let mut referenced = Vec::new();
                let definition = edition.definition(resource, described, &mut referenced);
                made.insert(described.name.to_string(), definition);
                waiting.append(&mut referenced);
            }
            let name = resource.schemas.get(resource.schema).name.to_string();
            let marks = json!([{ "group": self.group, "version": self.version, "kind": resource.kind }]);
            made[&name]["x-kubernetes-group-version-kind"] = marks;
            made.insert(format!("{name}List"), self.list(edition, resource, &name));
        }
        made
    }

    fn list(&self, edition: Edition, resource: &Resource, item: &str) -> Value {
        json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": edition.described_reference(&format!("{META}.ListMeta")),
                "items": { "type": "array", "items": edition.reference(item) },
            },
            "x-kubernetes-group-version-kind":
                [{ "group": self.group, "version": self.version, "kind": format!("{}List", resource.kind) }],
        })
    }

    fn paths(&self, edition: Edition) -> Map<String, Value> {
        let mut paths = Map::new();
        for resource in &self.resources {
            if let Some(custom) = &resource.custom {
                paths.extend(custom::paths(edition, resource, custom.named(resource)));
                continue;
            }
            let space = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
            let collection = format!("/{}{space}/{}", self.path(), resource.plural);
            let object = format!("{collection}/{{name}}");
            let name = &*resource.schemas.get(resource.schema).name;
            let operations = |wanted: &[(&'static str, Action)]| {
                let served = wanted.iter().filter(|(_, action)| resource.allows(action.verb()));
                served.map(|(method, action)| (*method, self.operation(edition, *action, resource, name))).collect()
            };
            let of_collection = [("get", Action::List), ("post", Action::Create), ("delete", Action::DeleteCollection)];
            let of_object =
                [("get", Action::Get), ("put", Action::Update), ("patch", Action::Patch), ("delete", Action::Delete)];
            paths.insert(collection, path(edition, resource.namespaced, false, operations(&of_collection)));
            let of_object_served: Vec<_> = operations(&of_object);
            if !of_object_served.is_empty() {
                paths.insert(object.clone(), path(edition, resource.namespaced, true, of_object_served));
            }
            for subresource in &resource.subresources {
                let body = match subresource.schema {
                    Some(schema) => resource.schemas.get(schema).name.as_ref(),
                    None => continue,
                };
                let served =
                    of_object.iter().filter(|(_, action)| subresource.verbs.iter().any(|verb| verb == action.verb()));
                let made = served.map(|(method, action)| (*method, self.operation(edition, *action, resource, body)));
                paths.insert(
                    format!("{object}/{}", subresource.name),
                    path(edition, resource.namespaced, true, made.collect()),
                );
            }
        }
        paths
    }

    fn operation(&self, edition: Edition, action: Action, resource: &Resource, body: &str) -> Value {
        let answer = match action {
            Action::List => format!("{body}List"),
            Action::Delete | Action::DeleteCollection => format!("{META}.Status"),
            _ => body.to_owned(),
        };
        let sent = match action {
            Action::Create | Action::Update => Some(edition.reference(body)),
            Action::Delete | Action::DeleteCollection => Some(edition.reference(&format!("{META}.DeleteOptions"))),
            Action::Patch => Some(json!({ "type": "object" })),
            Action::Get | Action::List => None,
        };
        let consumes = if action == Action::Patch { PATCHES.as_slice() } else { &["*/*"] };
        let mut made = json!({
            "operationId": format!("{}{}", action.verb(), resource.kind),
            "x-kubernetes-action": action.word(),
            "x-kubernetes-group-version-kind": { "group": self.group, "version": self.version, "kind": resource.kind },
        });
        let mut parameters: Vec<Value> =
            action.parameters().iter().map(|(name, kind)| edition.parameter("query", name, kind)).collect();
        match edition {
            Edition::V2 => {
                made["consumes"] = json!(consumes);
                made["produces"] = json!(PRODUCES);
                if let Some(schema) = sent {
                    parameters.push(json!({ "name": "body", "in": "body", "required": true, "schema": schema }));
                }
                made["responses"] = json!({ "200": { "description": "OK", "schema": edition.reference(&answer) } });
            }
            Edition::V3 => {
                let content = |kinds: &[&str], schema: &Value| -> Map<String, Value> {
                    kinds.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": schema }))).collect()
                };
                if let Some(schema) = sent {
                    made["requestBody"] = json!({ "content": content(consumes, &schema) });
                }
                let answer = content(&PRODUCES, &edition.reference(&answer));
                made["responses"] = json!({ "200": { "description": "OK", "content": answer } });
            }
        }
        made["parameters"] = parameters.into();
        made
    }
}

const PRODUCES: [&str; 2] = ["application/json", "application/yaml"];
const PATCHES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// A path with its operations and the parameters that stand in it.
fn path(edition: Edition, namespaced: bool, named: bool, operations: Vec<(&'static str, Value)>) -> Value {
    let within = [("namespace", namespaced), ("name", named)];
    let parameters: Vec<Value> = within
        .into_iter()
        .filter(|(_, there)| *there)
        .map(|(name, _)| {
            let mut parameter = edition.parameter("path", name, "string");
            parameter["required"] = true.into();
            parameter
        })
        .collect();
    let mut made: Map<String, Value> =
        operations.into_iter().map(|(method, operation)| (method.to_owned(), operation)).collect();
    made.insert("parameters".to_owned(), parameters.into());
    made.into()
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    List,
    Create,
    DeleteCollection,
    Get,
    Update,
    Patch,
    Delete,
}

impl Action {
    fn verb(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Create => "create",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    /// The word that clients look for.
    fn word(self) -> &'static str {
        match self {
            Self::Create => "post",
            Self::Update => "put",
            other => other.verb(),
        }
    }

    fn parameters(self) -> &'static [(&'static str, &'static str)] {
        const LIST: &[(&str, &str)] = &[
            ("allowWatchBookmarks", "boolean"),
            ("continue", "string"),
            ("fieldSelector", "string"),
            ("labelSelector", "string"),
            ("limit", "integer"),
            ("resourceVersion", "string"),
            ("resourceVersionMatch", "string"),
            ("sendInitialEvents", "boolean"),
            ("timeoutSeconds", "integer"),
            ("watch", "boolean"),
        ];
        const WRITE: &[(&str, &str)] =
            &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
        const PATCH: &[(&str, &str)] =
            &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
        const DELETE: &[(&str, &str)] = &[
            ("dryRun", "string"),
            ("gracePeriodSeconds", "integer"),
            ("orphanDependents", "boolean"),
            ("propagationPolicy", "string"),
        ];
        match self {
            Self::List => LIST,
            Self::Create | Self::Update => WRITE,
            Self::Patch => PATCH,
            Self::Delete | Self::DeleteCollection => DELETE,
            Self::Get => &[],
        }
    }
}

impl Edition {
    fn of_custom(self) -> open_api::Version {
        match self {
            Self::V2 => open_api::Version::V2,
            Self::V3 => open_api::Version::V3,
        }
    }

    pub(super) fn reference(self, definition: &str) -> Value {
        let place = match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        };
        json!({ "$ref": format!("{place}{definition}") })
    }

    /// A reference beside which a description can stand.
    fn described_reference(self, definition: &str) -> Value {
        match self {
            Self::V2 => self.reference(definition),
            Self::V3 => json!({ "allOf": [self.reference(definition)] }),
        }
    }

    pub(super) fn parameter(self, place: &str, name: &str, kind: &str) -> Value {
        match self {
            Self::V2 => json!({ "name": name, "in": place, "type": kind, "uniqueItems": true }),
            Self::V3 => json!({ "name": name, "in": place, "schema": { "type": kind, "uniqueItems": true } }),
        }
    }

    /// A struct as a definition; `referenced` receives the structs it leads to.
    fn definition(self, resource: &Resource, described: &Struct, referenced: &mut Vec<StructRef>) -> Value {
        let mut properties = Map::new();
        for field in &described.fields {
            let mut property = self.property(resource, &field.ty, referenced);
            if !field.choices.is_empty() {
                property["enum"] = json!(field.choices);
            }
            properties.insert(field.name.to_string(), property);
        }
        json!({ "type": "object", "properties": properties })
    }

    fn property(self, resource: &Resource, ty: &Type, referenced: &mut Vec<StructRef>) -> Value {
        match &ty.shape {
            Shape::Bool => json!({ "type": "boolean" }),
            Shape::Int32 => json!({ "type": "integer", "format": "int32" }),
            Shape::Int64 => json!({ "type": "integer", "format": "int64" }),
            Shape::Float64 => json!({ "type": "number", "format": "double" }),
            Shape::String | Shape::Duration | Shape::Quantity => json!({ "type": "string" }),
            Shape::Bytes => json!({ "type": "string", "format": "byte" }),
            Shape::Time | Shape::MicroTime => json!({ "type": "string", "format": "date-time" }),
            Shape::Raw => json!({ "type": "object" }),
            Shape::IntOrString => json!({ "type": "string", "format": "int-or-string" }),
            Shape::Struct(reference) => {
                referenced.push(*reference);
                self.described_reference(&resource.schemas.get(*reference).name)
            }
            Shape::List(item) => json!({ "type": "array", "items": self.property(resource, item, referenced) }),
            Shape::Map(value) => {
                json!({ "type": "object", "additionalProperties": self.property(resource, value, referenced) })
            }
        }
    }
}
