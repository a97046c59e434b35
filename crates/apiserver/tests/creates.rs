//! Every creation the real server was recorded answering, judged offline: decoding, defaults and validation, without verbs or storage.

use std::{collections::BTreeMap, io::Read};

use orrery_apiserver::{
    kinds,
    registry::{Registry, Resource},
    schema,
};
use serde_json::{Value, json};

/// What generated names end in here.
const SUFFIX: &str = "qjvwk";
const UID: &str = "00000000-1111-2222-3333-444444444444";

/// How many of the recorded creations must come out equal; it only rises.
const EQUAL: usize = 5_580;

#[test]
fn creations_are_answered_as_recorded() {
    let registry = Registry::kubernetes();
    let mut differing = BTreeMap::new();
    let (mut equal, mut all) = (0, 0);
    for file in ["kinds", "verbs", "damaged"] {
        for case in cases(file) {
            for step in &case.steps {
                let Some(creation) = Creation::of(&registry, step) else { continue };
                all += 1;
                match creation.compare() {
                    Ok(()) => equal += 1,
                    Err(difference) => {
                        differing.insert(format!("{} {all}", case.case), difference);
                    }
                }
            }
        }
    }
    for (name, difference) in &differing {
        println!("{name}\n{difference}");
    }
    println!("{equal} of {all} recorded creations are equal ({:.1} %)", 100.0 * equal as f64 / all as f64);
    assert!(all > 1000, "the recorded cases are missing");
    assert!(equal >= EQUAL, "{equal} creations are equal, fewer than {EQUAL}");
}

/// A case with the text of its bodies as recorded: the order of fields decides which fault is named first.
#[derive(serde::Deserialize)]
struct Case {
    case: String,
    steps: Vec<Step>,
}

#[derive(serde::Deserialize)]
struct Step {
    r#do: Ask,
    want: Value,
}

#[derive(serde::Deserialize)]
struct Ask {
    method: String,
    path: String,
    #[serde(default)]
    query: Value,
    #[serde(default)]
    headers: Value,
    body: Option<Box<serde_json::value::RawValue>>,
    text: Option<String>,
}

fn cases(file: &str) -> Vec<Case> {
    let packed = std::fs::read(format!("{}/tests/cases/{file}.jsonl.gz", env!("CARGO_MANIFEST_DIR")))
        .expect("the cases are there");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("the cases are packed");
    text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect()
}

/// A recorded creation that needs nothing but the body to be answered.
struct Creation<'a> {
    resource: &'a Resource,
    namespace: String,
    body: Vec<u8>,
    strict: bool,
    want: &'a Value,
}

impl<'a> Creation<'a> {
    fn of(registry: &'a Registry, step: &'a Step) -> Option<Self> {
        let (ask, want) = (&step.r#do, &step.want);
        let code = want["code"].as_u64()?;
        if ask.method != "POST" || !matches!(code, 201 | 400 | 422) {
            return None;
        }
        let path: Vec<&str> = ask.path.split('/').skip(1).collect();
        let (group, version, rest) = match path.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let plural = match rest {
            [plural] | ["namespaces", _, plural] => plural,
            _ => return None,
        };
        let resource = registry.resource(group, version, plural)?;
        if !resource.allows("watch")
            || ask.headers["Accept"].as_str().is_some_and(|accept| accept != "application/json")
        {
            return None;
        }
        let content_type = ask.headers["Content-Type"].as_str().unwrap_or("application/json");
        let body = match (&ask.body, &ask.text) {
            (None, Some(text)) if content_type == "application/json" => named(text).into_bytes(),
            (None, _) => return None,
            (Some(body), _) => named(body.get()).into_bytes(),
        };
        let known = ["fieldManager", "dryRun", "fieldValidation"];
        if ask.query.as_object().is_some_and(|query| query.keys().any(|name| !known.contains(&name.as_str()))) {
            return None;
        }
        let strict = ask.query["fieldValidation"] == "Strict" || ask.query["fieldValidation"][0] == "Strict";
        let message = want["body"]["message"].as_str().unwrap_or_default();
        // Answered by the verbs before a body is looked at, or from what is stored.
        let others = [
            "unrecognized",
            "is registered for version",
            "unknown conversion",
            "does not match",
            "does not match the namespace",
        ];
        let refused =
            code == 400 && (want["body"]["message"].is_null() || others.iter().any(|other| message.contains(other)));
        let namespace = if let ["namespaces", namespace, _] = rest { named(namespace) } else { String::new() };
        (!refused).then_some(Self { resource, namespace, body, strict, want })
    }

    fn compare(&self) -> Result<(), String> {
        let got = self.answer();
        let want = serde_json::from_str(&named(&self.want["body"].to_string())).expect("still JSON");
        let want = normal(&want);
        if got == want {
            return Ok(());
        }
        Err(format!("  body {}\n{}", String::from_utf8_lossy(&self.body), difference("", &want, &got)))
    }

    fn answer(&self) -> Value {
        let resource = self.resource;
        let bad = |error: String| {
            let (kind, version) = (&resource.kind, &resource.version);
            json!({ "code": 400, "message": format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}") })
        };
        let decoded = match schema::decode(&resource.schemas, resource.schema, &self.body) {
            Ok(decoded) => decoded,
            Err(error) => return normal(&bad(error.to_string())),
        };
        if self.strict && !decoded.strict.is_empty() {
            return normal(&bad(format!("strict decoding error: {}", decoded.strict.join(", "))));
        }
        let mut object = decoded.object;
        kinds::default(resource, &mut object);
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.as_str().into();
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        if let (Value::Null, Value::String(start)) = (&object["metadata"]["name"], &object["metadata"]["generateName"])
        {
            object["metadata"]["name"] = format!("{}{SUFFIX}", &start[..start.len().min(58)]).into();
        }
        if resource.namespaced {
            object["metadata"]["namespace"] = self.namespace.as_str().into();
        }
        object["metadata"]["uid"] = UID.into();
        object["metadata"]["creationTimestamp"] = "<time>".into();
        // What was sent empty counts until it is known who owns it, which only the verbs know.
        schema::sparse(&resource.schemas, resource.schema, &mut object);
        kinds::prepare_create(resource, &mut object);
        let mut errors = kinds::validate_addresses(resource, &object, None, true);
        if errors.is_empty() {
            errors = kinds::validate_create(resource, resource, &object);
        }
        if !errors.is_empty() {
            let shown: Vec<String> = errors.iter().map(|error| format!("{} {}", error.kind.reason(), error)).collect();
            return json!({ "code": 422, "errors": shown.iter().map(|error| error_tokens(error)).collect::<Vec<_>>() });
        }
        schema::complete(&resource.schemas, resource.schema, &mut object);
        normal(&object)
    }
}

/// A case runs in a namespace of its own, which stands as `{ns}` in what was recorded.
fn named(text: &str) -> String {
    text.replace("{ns}", "case-1")
}

/// Leaves out what only the verbs and the store know.
fn normal(value: &Value) -> Value {
    if value["code"] == 422 {
        let causes = value["details"]["causes"].as_array().cloned().unwrap_or_default();
        let shown: Vec<String> = causes
            .iter()
            .map(|cause| {
                let part = |name: &str| cause[name].as_str().unwrap_or_default().to_owned();
                format!("{} {}: {}", part("reason"), part("field"), part("message"))
            })
            .collect();
        return json!({ "code": 422, "errors": shown });
    }
    if value["code"] == 400 {
        return json!({ "code": 400, "message": time_free(value["message"].as_str().unwrap_or_default()) });
    }
    let text = value.to_string().replace(UID, "<uid>");
    let mut value: Value = serde_json::from_str(&addresses_free(&text)).expect("still JSON");
    tokens(&mut value);
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for owned in
            ["uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink", "deletionTimestamp", "name"]
        {
            metadata.remove(owned);
        }
    }
    value
}

/// The recorder replaced uids, addresses and what it knew to be generated also inside of messages.
fn error_tokens(message: &str) -> String {
    let uids = ["11111111-2222-3333-4444-555555555555", "22222222-2222-3333-4444-555555555555", UID, "{uid}"];
    let message = uids.iter().fold(message.to_owned(), |message, uid| message.replace(uid, "<uid>"));
    message.replace("10.9.8.7", "<ip>").replace("10.9.8.0", "<ip>").replace(SUFFIX, "<generated>")
}

/// The recorder replaced times, uids and addresses of hosts.
fn tokens(value: &mut Value) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| {
            if name == "hostIP" {
                *value = "<hostIP>".into();
            }
            if name == "uid" && value.as_str().is_some_and(|uid| !uid.is_empty()) {
                *value = "<uid>".into();
            }
            tokens(value);
        }),
        Value::Array(items) => items.iter_mut().for_each(tokens),
        Value::String(text)
            if text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T' =>
        {
            *value = "<time>".into();
        }
        _ => {}
    }
}

/// The recorder replaced addresses of the service network.
fn addresses_free(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\"10.") {
        let end = rest[at + 1..].find('"').map_or(rest.len(), |end| at + 1 + end);
        let inner = &rest[at + 1..end];
        out.push_str(&rest[..at + 1]);
        let address = inner.split('.').count() == 4 && inner.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        out.push_str(if address { "<ip>" } else { inner });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The recorder replaced times, and thereby also the layout that Go names in its messages.
fn time_free(message: &str) -> String {
    message
        .replace("2006-01-02T15:04:05Z07:00", "<time>07:00")
        .replace("2006-01-02T15:04:05.000000Z07:00", "<time>07:00")
}

fn difference(path: &str, want: &Value, got: &Value) -> String {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            let names: std::collections::BTreeSet<&String> = want.keys().chain(got.keys()).collect();
            names
                .into_iter()
                .map(|name| match (want.get(name), got.get(name)) {
                    (Some(want), Some(got)) => difference(&format!("{path}.{name}"), want, got),
                    (Some(want), None) => format!("  {path}.{name}: want {want}, got nothing\n"),
                    (None, Some(got)) => format!("  {path}.{name}: want nothing, got {got}\n"),
                    (None, None) => String::new(),
                })
                .collect()
        }
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => want
            .iter()
            .zip(got)
            .enumerate()
            .map(|(at, (want, got))| difference(&format!("{path}[{at}]"), want, got))
            .collect(),
        (want, got) if want == got => String::new(),
        (want, got) => format!("  {path}: want {want}\n  {}  got {got}\n", " ".repeat(path.len())),
    }
}
