//! The operations of custom resources, as Kubernetes describes them.

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::{Map, Value, json};

use super::{
    assemble,
    generate::{Edition, META},
};
use crate::{
    custom::open_api::Named,
    registry::{Resource, unpacked},
};

/// What the fields of options are for, by the kind of options.
type Texts = BTreeMap<String, BTreeMap<String, String>>;

fn texts() -> &'static Texts {
    static TEXTS: OnceLock<Texts> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let text = unpacked(include_bytes!("../../data/kube-1.34/parameters.json.gz"));
        serde_json::from_slice(&text).expect("the generator wrote this form")
    })
}

/// One operation on a path.
#[derive(Clone, Copy)]
struct Operation {
    method: &'static str,
    action: &'static str,
    verb: &'static str,
}

const fn operation(method: &'static str, action: &'static str, verb: &'static str) -> Operation {
    Operation { method, action, verb }
}

const LIST: Operation = operation("get", "list", "list");
const COLLECTION: [Operation; 3] =
    [LIST, operation("post", "post", "create"), operation("delete", "deletecollection", "deletecollection")];
const OBJECT: [Operation; 4] = [
    operation("get", "get", "read"),
    operation("put", "put", "replace"),
    operation("delete", "delete", "delete"),
    operation("patch", "patch", "patch"),
];
const PART: [Operation; 3] = [OBJECT[0], OBJECT[1], OBJECT[3]];

const TYPES: [&str; 2] = ["application/json", "application/yaml"];
const PATCHES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
const PRETTY: &str = "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).";

/// A custom resource and the document that is made.
struct Described<'a> {
    edition: Edition,
    named: Named<'a>,
    namespaced: bool,
}

/// The paths of a custom resource.
pub(super) fn paths(edition: Edition, resource: &Resource, named: Named<'_>) -> Map<String, Value> {
    let described = Described { edition, named, namespaced: resource.namespaced };
    let (object, list) = (named.definition_name(), named.list_definition_name());
    let root = format!("/apis/{}/{}", named.group, named.version);
    let mut paths = Map::new();
    let collection = if resource.namespaced {
        let all = format!("{root}/{}", named.plural);
        let name = format!("list{}ForAllNamespaces", named.kind);
        if resource.allows("list") {
            let made = described.operation(LIST, &all, "", &list, Some(&name));
            paths.insert(all, together(vec![made]));
        }
        format!("{root}/namespaces/{{namespace}}/{}", named.plural)
    } else {
        format!("{root}/{}", named.plural)
    };
    let mut add = |path: String, part: &str, operations: &[Operation], body: &str| {
        // Everything can be done with a part that there is.
        let served = operations.iter().filter(|operation| !part.is_empty() || resource.allows(operation.right()));
        let made = served.map(|operation| {
            let body = if operation.action == "list" { &list } else { body };
            described.operation(*operation, &path, part, body, None)
        });
        let made: Vec<Made> = made.collect();
        if !made.is_empty() {
            paths.insert(path, together(made));
        }
    };
    add(collection.clone(), "", &COLLECTION, &object);
    add(format!("{collection}/{{name}}"), "", &OBJECT, &object);
    for part in &resource.subresources {
        let body = match part.name.as_str() {
            "scale" => "io.k8s.api.autoscaling.v1.Scale",
            _ => &object,
        };
        add(format!("{collection}/{{name}}/{}", part.name), &part.name, &PART, body);
    }
    paths
}

impl Operation {
    /// The verb that a resource must have for it.
    fn right(self) -> &'static str {
        match self.action {
            "post" => "create",
            "put" => "update",
            action => action,
        }
    }
}

/// An operation, with the method it is reached by.
type Made = (&'static str, Map<String, Value>);

/// A path with its operations. What all of them take stands once.
fn together(mut operations: Vec<Made>) -> Value {
    let taken = |made: &Made| made.1.get("parameters").and_then(Value::as_array).cloned().unwrap_or_default();
    let all: Vec<Vec<Value>> = operations.iter().map(taken).collect();
    let common: Vec<Value> = match all.split_first() {
        Some((first, rest)) => {
            first.iter().filter(|parameter| rest.iter().all(|list| list.contains(parameter))).cloned().collect()
        }
        None => Vec::new(),
    };
    for (_, operation) in &mut operations {
        if let Some(Value::Array(list)) = operation.get_mut("parameters") {
            list.retain(|parameter| !common.contains(parameter));
            if list.is_empty() {
                operation.remove("parameters");
            }
        }
    }
    let mut path: Map<String, Value> =
        operations.into_iter().map(|(method, operation)| (method.to_owned(), operation.into())).collect();
    path.insert("parameters".to_owned(), common.into());
    path.into()
}

impl Described<'_> {
    fn operation(&self, operation: Operation, path: &str, part: &str, body: &str, name: Option<&str>) -> Made {
        let Operation { method, action, verb } = operation;
        let kind = self.named.kind;
        let namespaced = if self.namespaced { "Namespaced" } else { "" };
        let name = name.map_or_else(|| format!("{verb}{namespaced}{kind}{}", capitalised(part)), str::to_owned);
        let answer = match action {
            "delete" | "deletecollection" => format!("{META}.Status"),
            _ => body.to_owned(),
        };
        let answer = self.edition.reference(&answer);
        let told: &[(&str, &str)] = match action {
            "post" => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
            "put" => &[("200", "OK"), ("201", "Created")],
            "delete" => &[("200", "OK"), ("202", "Accepted")],
            _ => &[("200", "OK")],
        };
        let sent = match action {
            "post" | "put" => Some((self.edition.reference(body), true)),
            "patch" => Some((self.edition.reference(&format!("{META}.Patch")), true)),
            "delete" => Some((self.edition.reference(&format!("{META}.DeleteOptions")), false)),
            _ => None,
        };
        let consumed: &[&str] = if action == "patch" { &PATCHES } else { &TYPES };
        let mut made = Map::new();
        let (id, tag) = self.identity(&name, verb);
        made.insert("tags".to_owned(), json!([tag]));
        made.insert("description".to_owned(), self.description(verb, part).into());
        made.insert("operationId".to_owned(), id.into());
        let mut parameters = self.parameters(action, path);
        let mut responses: Map<String, Value> =
            told.iter().map(|(code, what)| ((*code).to_owned(), self.edition.response(what, &answer))).collect();
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        match self.edition {
            Edition::V2 => {
                made.insert("consumes".to_owned(), json!(consumed));
                made.insert("produces".to_owned(), json!(TYPES));
                made.insert("schemes".to_owned(), json!(["https"]));
                if let Some((schema, required)) = sent {
                    let mut body = json!({"name": "body", "in": "body", "schema": schema});
                    if required {
                        body["required"] = true.into();
                    }
                    parameters.insert(0, body);
                }
            }
            Edition::V3 => {
                if let Some((schema, required)) = sent {
                    let mut body = json!({"content": content(consumed, &schema)});
                    if required {
                        body["required"] = true.into();
                    }
                    made.insert("requestBody".to_owned(), body);
                }
            }
        }
        made.insert("parameters".to_owned(), parameters.into());
        made.insert("responses".to_owned(), responses.into());
        made.insert("x-kubernetes-action".to_owned(), action.into());
        let Named { group, version, .. } = self.named;
        let kinds = json!({"group": group, "version": version, "kind": kind});
        made.insert("x-kubernetes-group-version-kind".to_owned(), kinds);
        (method, made)
    }

    /// What an operation is called, and the tag of all of its group.
    fn identity(&self, name: &str, verb: &str) -> (String, String) {
        let group = self.named.group.strip_suffix(".k8s.io").unwrap_or(self.named.group);
        let version = self.named.version;
        // Of this one only the beginning counts as a verb.
        let prefix = if verb == "deletecollection" { "delete" } else { verb };
        let rest = name.strip_prefix(prefix).unwrap_or(name);
        let id = format!("{prefix}{}{}{}", word(group, true), word(version, true), word(rest, true));
        (id, format!("{}_{}", word(group, false), word(version, false)))
    }

    fn description(&self, verb: &str, part: &str) -> String {
        let kind = self.named.kind;
        let part = if part.is_empty() { String::new() } else { format!(" {part} of") };
        match verb {
            "list" => format!("list{part} objects of kind {kind}"),
            "patch" => format!("partially update{part} the specified {kind}"),
            "deletecollection" => format!("delete collection of{part} {kind}"),
            "create" | "delete" => format!("{verb}{part}{}{kind}", article(kind)),
            _ => format!("{verb}{part} the specified {kind}"),
        }
    }

    fn parameters(&self, action: &str, path: &str) -> Vec<Value> {
        let options = match action {
            "get" => "GetOptions",
            "put" => "UpdateOptions",
            "patch" => "PatchOptions",
            "post" => "CreateOptions",
            "delete" => "DeleteOptions",
            _ => "ListOptions",
        };
        let mut made: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, text) in texts().get(options).into_iter().flatten() {
            // Conditions of a deletion are sent in its body.
            if name != "preconditions" {
                made.insert(name, self.parameter("query", name, text));
            }
        }
        made.insert("pretty", self.parameter("query", "pretty", PRETTY));
        for (name, text) in [
            ("namespace", "object name and auth scope, such as for teams and projects".to_owned()),
            ("name", format!("name of the {}", self.named.kind)),
        ] {
            if path.contains(&format!("{{{name}}}")) {
                let mut parameter = self.parameter("path", name, &text);
                parameter["required"] = true.into();
                made.insert(name, parameter);
            }
        }
        made.into_values().collect()
    }

    fn parameter(&self, place: &str, name: &str, text: &str) -> Value {
        let kind = match name {
            "allowWatchBookmarks"
            | "sendInitialEvents"
            | "watch"
            | "force"
            | "orphanDependents"
            | "ignoreStoreReadErrorWithClusterBreakingPotential" => "boolean",
            "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
            _ => "string",
        };
        let mut parameter = self.edition.parameter(place, name, kind);
        parameter["description"] = text.into();
        parameter
    }
}

impl Edition {
    fn response(self, what: &str, schema: &Value) -> Value {
        match self {
            Self::V2 => json!({"description": what, "schema": schema}),
            Self::V3 => json!({"description": what, "content": content(&TYPES, schema)}),
        }
    }
}

fn content(types: &[&str], schema: &Value) -> Value {
    types.iter().map(|kind| ((*kind).to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>().into()
}

/// A text as part of a name: only letters, digits and underscores, and after others a capital.
fn word(text: &str, capital: bool) -> String {
    let mut out = String::new();
    let mut raise = capital;
    for (place, letter) in text.chars().enumerate() {
        let fits = letter.is_alphabetic() || letter == '_' || (place > 0 && letter.is_ascii_digit());
        match (fits, std::mem::replace(&mut raise, !fits)) {
            (true, true) => out.extend(letter.to_uppercase()),
            (true, false) => out.push(letter),
            (false, _) => {}
        }
    }
    out
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn article(noun: &str) -> &'static str {
    if noun.ends_with('s') && !noun.ends_with("ss") {
        return " ";
    }
    if noun.starts_with(|letter: char| "aeiouAEIOU".contains(letter)) { " an " } else { " a " }
}

/// The definitions that documents of custom resources refer to, with those they lead to. `scaled` says whether scales are among them.
pub(super) fn shared(scaled: bool) -> Map<String, Value> {
    static SHARED: OnceLock<Map<String, Value>> = OnceLock::new();
    let all = SHARED.get_or_init(|| {
        let mut recorded = assemble::v3("apis/apps/v1");
        let mut recorded = match recorded.pointer_mut("/components/schemas").map(Value::take) {
            Some(Value::Object(schemas)) => schemas,
            _ => Map::new(),
        };
        let wanted = ["DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status"];
        let mut waiting: Vec<String> = wanted.iter().map(|name| format!("{META}.{name}")).collect();
        waiting.push("io.k8s.api.autoscaling.v1.Scale".to_owned());
        let mut found = Map::new();
        while let Some(name) = waiting.pop() {
            let Some(mut definition) = recorded.remove(&name) else { continue };
            references(&definition, &mut waiting);
            keep_known_kinds(&mut definition);
            found.insert(name, definition);
        }
        found
    });
    all.iter()
        .filter(|(name, _)| scaled || !name.starts_with("io.k8s.api."))
        .map(|(name, definition)| (name.clone(), definition.clone()))
        .collect()
}

/// Groups whose kinds the part of Kubernetes that describes custom resources does not know.
const UNKNOWN: [&str; 4] = ["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"];

fn keep_known_kinds(definition: &mut Value) {
    if let Some(Value::Array(kinds)) = definition.get_mut("x-kubernetes-group-version-kind") {
        kinds.retain(|kind| !UNKNOWN.iter().any(|group| kind["group"] == *group));
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_str().filter(|_| name == "$ref").and_then(|text| text.rsplit('/').next()) {
                    Some(name) => found.push(name.to_owned()),
                    None => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
