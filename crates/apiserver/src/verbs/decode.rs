//! From the body of a request to an object.

use std::borrow::Cow;

use serde_json::Value;

use super::Call;
use crate::{
    answer,
    definitions::{self, Custom},
    gotext, object,
    protobuf::{self, Envelope},
    registry::{Registry, Resource},
    request::{FieldValidation, PROTOBUF, media_type},
    schema::{self, StructRef},
    status::Status,
    versions, yaml,
};

/// The types of bodies that are read.
pub(crate) const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The types of bodies that are read of kinds that are not built in.
const ACCEPTED_OF_OTHERS: &str = "application/json, application/yaml";

/// What a body must be.
pub(crate) struct Wanted<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) schema: StructRef,
    /// The resource, if it is a custom one.
    pub(crate) custom: Option<(&'a Resource, &'a Custom)>,
    /// The type's name in messages.
    pub(crate) internal: String,
}

impl<'a> Wanted<'a> {
    /// An object of a resource.
    pub(crate) fn object(resource: &'a Resource) -> Self {
        let Resource { group, version, kind, schema, .. } = resource;
        let custom = resource.custom.as_ref().map(|custom| (resource, custom));
        Self { group, version, kind, schema: *schema, custom, internal: answer::go_type(resource) }
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Reads the body of a create or an update: the object in its sparse form.
pub(crate) fn body(
    call: &Call,
    wanted: &Wanted<'_>,
    bytes: &[u8],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let registry = &call.shared.registry;
    let message = wanted.custom.is_none() && registry.schemas().get(wanted.schema).message;
    let mut object = if is_protobuf(&call.content_type) && message {
        from_protobuf(registry, wanted, bytes)?
    } else {
        let (json, repeated) = to_json(&call.content_type, bytes, wanted.kind)?;
        let problem = |error: schema::DecodeError| {
            unrecognized(wanted.kind, &format!("couldn't get version/kind; json parse error: {error}"), bytes)
        };
        let checked = schema::Checked::new(&json).map_err(problem)?;
        let (api_version, kind) = checked.type_meta().map_err(problem)?;
        match wanted.custom {
            Some(_) => check_custom_type(wanted, &api_version, &kind, &json, bytes)?,
            None => check_type(registry, wanted, &api_version, &kind, &json, bytes)?,
        }
        typed(registry, wanted, &json, checked, repeated, validation, warnings)?
    };
    warnings.extend(repeated_owners(&mut object, ""));
    Ok(object)
}

/// Whether a body is in protobuf.
pub(crate) fn is_protobuf(content_type: &str) -> bool {
    media_type(content_type).is_some_and(|kind| kind == PROTOBUF)
}

/// Reads a body in protobuf. Fields nobody knows are dropped, whatever is said of JSON's.
fn from_protobuf(registry: &Registry, wanted: &Wanted<'_>, bytes: &[u8]) -> Result<Value, Status> {
    let envelope = Envelope::open(bytes).map_err(|error| unrecognized(wanted.kind, &error.to_string(), bytes))?;
    // A version that is none is not taken for one.
    let api_version = if envelope.api_version.matches('/').count() > 1 { "" } else { &envelope.api_version };
    check_type(registry, wanted, api_version, &envelope.kind, bytes, bytes)?;
    let read = protobuf::decode(registry.schemas(), wanted.schema, envelope.raw);
    let mut object = read.map_err(|damage| unhandled(wanted.kind, wanted.version, wanted.kind, &damage.to_string()))?;
    object["kind"] = wanted.kind.into();
    object["apiVersion"] = wanted.api_version().into();
    Ok(object)
}

/// Drops owners that are listed twice, and says so; `when` is how far the request has come.
pub(crate) fn repeated_owners(object: &mut Value, when: &str) -> Option<String> {
    let repeated = object::drop_repeated_owners(object);
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

/// The body as JSON, and the keys that YAML has twice.
fn to_json<'a>(content_type: &str, bytes: &'a [u8], kind: &str) -> Result<(Cow<'a, [u8]>, Vec<String>), Status> {
    if content_type.is_empty() {
        return Ok((Cow::Borrowed(bytes), Vec::new()));
    }
    match media_type(content_type).as_deref() {
        Some("application/json") => Ok((Cow::Borrowed(bytes), Vec::new())),
        Some("application/yaml") => {
            let read = yaml::to_json(bytes).map_err(|problem| unrecognized(kind, &problem, bytes))?;
            Ok((Cow::Owned(read.json), read.repeated))
        }
        // What is not built in has no form in protobuf.
        Some(PROTOBUF) => Err(Status::unsupported_body(ACCEPTED_OF_OTHERS)),
        _ => Err(Status::unsupported_body(ACCEPTED)),
    }
}

/// A body that is not even an object of some kind.
fn unrecognized(kind: &str, problem: &str, body: &[u8]) -> Status {
    let summary = summary(body);
    Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {problem} ({summary})"))
}

/// The first bytes of a body, for a message.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let shown = &body[..body.len().min(SHOWN)];
    let text = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN { format!("{text} ...") } else { text }
}

/// Reads what a patch has made of an object; what is wrong with it is said in words for users. It may have become an object of
/// another kind, which is then read as one, and found not to be one of this kind.
pub(crate) fn patched(registry: &Registry, resource: &Resource, json: &[u8]) -> Result<schema::Decoded, String> {
    if let Some(custom) = &resource.custom {
        return definitions::decode(resource, custom, json).map_err(|error| error.to_string());
    }
    let (api_version, kind) =
        schema::type_meta(json).map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    let own = resource.api_version();
    let api_version = if api_version.is_empty() { &own } else { &api_version };
    let kind = if kind.is_empty() { &resource.kind } else { &kind };
    let read = |schema| schema::decode(&resource.schemas, schema, json).map_err(|error| error.to_string());
    if *api_version == own && *kind == resource.kind {
        return read(resource.schema);
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if version.is_empty() {
        return Err(format!("Object 'apiVersion' is missing in '{}'", String::from_utf8_lossy(json)));
    }
    let unknown = || format!("converting ({version}.{kind}) to ({}): unknown conversion", answer::go_type(resource));
    let Some(other) = registry.kind(group, version, kind) else {
        if versions::is_known(registry, group, version, kind) {
            return Err(unknown());
        }
        let (kind, version) = (gotext::quote(kind), gotext::quote(api_version));
        return Err(format!(
            "no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:110\""
        ));
    };
    read(other.schema)?;
    Err(unknown())
}

/// Refuses a body that says it is something else.
fn check_type(
    registry: &Registry,
    wanted: &Wanted<'_>,
    api_version: &str,
    kind: &str,
    json: &[u8],
    body: &[u8],
) -> Result<(), Status> {
    let (group, version) = match api_version.split_once('/') {
        None if api_version.is_empty() => (wanted.group, wanted.version),
        None => ("", api_version),
        Some((_, version)) if version.contains('/') => {
            return Err(unrecognized(wanted.kind, &format!("unexpected GroupVersion string: {api_version}"), body));
        }
        Some((group, version)) => (group, version),
    };
    let kind = if kind.is_empty() { wanted.kind } else { kind };
    if (group, version, kind) == (wanted.group, wanted.version, wanted.kind) {
        return Ok(());
    }
    if version.is_empty() {
        let problem = format!("Object 'apiVersion' is missing in '{}'", String::from_utf8_lossy(json));
        return Err(unhandled(kind, version, wanted.kind, &problem));
    }
    let expected = wanted.api_version();
    if kind == wanted.kind
        && versions::is_known(registry, group, version, kind)
        && versions::same_kind(group, wanted.group)
    {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    let problem = if versions::is_known(registry, group, version, kind) {
        format!("converting ({version}.{kind}) to ({}): unknown conversion", wanted.internal)
    } else {
        let api_version = if api_version.is_empty() { &expected } else { api_version };
        format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:110\"",
            gotext::quote(kind),
            gotext::quote(api_version)
        )
    };
    Err(unhandled(kind, version, wanted.kind, &problem))
}

/// Refuses a custom resource that does not say what it is, or is of another group or version.
fn check_custom_type(
    wanted: &Wanted<'_>,
    api_version: &str,
    kind: &str,
    json: &[u8],
    body: &[u8],
) -> Result<(), Status> {
    if kind.is_empty() {
        let problem = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(json));
        return Err(unrecognized(wanted.kind, &problem, body));
    }
    let expected = wanted.api_version();
    if api_version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    Ok(())
}

fn unhandled(kind: &str, version: &str, wanted: &str, problem: &str) -> Status {
    Status::bad_request(format!(
        "{kind} in version {} cannot be handled as a {wanted}: {problem}",
        gotext::quote(version)
    ))
}

/// Reads JSON as an object of a type, and deals with fields nobody knows and with keys that are there twice.
fn typed(
    registry: &Registry,
    wanted: &Wanted<'_>,
    json: &[u8],
    checked: schema::Checked<'_>,
    repeated: Vec<String>,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let refuse = |problem: &str| unhandled(wanted.kind, wanted.version, wanted.kind, problem);
    let decoded = match wanted.custom {
        Some((resource, custom)) => definitions::decode(resource, custom, json),
        None => checked.decode(registry.schemas(), wanted.schema),
    };
    let decoded = decoded.map_err(|error| refuse(&error.to_string()))?;
    match validation {
        FieldValidation::Strict if !decoded.strict.is_empty() || !repeated.is_empty() => {
            let repeated = (!repeated.is_empty()).then(|| yaml::repeated_problem(&repeated));
            let problems: Vec<String> = repeated.into_iter().chain(decoded.strict).collect();
            return Err(refuse(&format!("strict decoding error: {}", problems.join(", "))));
        }
        FieldValidation::Warn => warnings.extend(repeated.into_iter().chain(decoded.strict)),
        _ => {}
    }
    Ok(decoded.object)
}
