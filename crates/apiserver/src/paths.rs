//! Addresses outside the resources: discovery, OpenAPI, version, health.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use crate::{
    answer,
    body::Body,
    definitions::Kinds,
    discovery, health,
    openapi::{self, Document, Extension},
    request::{Accepted, Encoding, Query, SpaceScope},
    server::{Shared, header_text},
    status::Status,
};

/// Answers for a group version as such: its resources.
pub(crate) fn version(
    shared: &Shared,
    method: &Method,
    space: &SpaceScope,
    group: &str,
    version: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let Some(known) = Kinds::of(shared, space).group(group) else { return Err(Status::no_such_page()) };
    let built_in = shared.registry.group(group).is_some();
    let missing = || if built_in { Status::no_such_resource() } else { Status::no_such_page() };
    let version = known.version(version).ok_or_else(missing)?;
    if method != Method::GET {
        return Err(Status::method_not_allowed());
    }
    let encoding = Accepted::resources(header_text(headers, &header::ACCEPT))?;
    Ok(respond(&discovery::resources(group, version), encoding))
}

/// Answers for any other path.
pub(crate) async fn other(
    shared: &Shared,
    method: &Method,
    space: &SpaceScope,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let ends_in_slash = path.len() > 1 && path.ends_with('/');
    let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
    let read_only = || if method == Method::GET { Ok(()) } else { Err(Status::method_not_allowed()) };
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match parts.as_slice() {
        ["version", _, ..] => Err(Status::no_such_resource()),
        ["version"] => {
            read_only()?;
            Accepted::json(header_text(headers, &header::ACCEPT))?;
            Ok(respond(&build_version(), Accepted::JSON.encoding))
        }
        ["healthz" | "livez" | "readyz", check @ ..] if !ends_in_slash => {
            health::answer(shared, parts[0], check, query).await
        }
        ["api"] => {
            read_only()?;
            let core = shared.registry.groups().iter().filter(|group| group.name.is_empty());
            discover(headers, &discovery::versions(&shared.config.address), core)
        }
        ["apis"] => {
            let kinds = Kinds::of(shared, space);
            let all = if kinds.has_custom() { Cow::Owned(kinds.groups()) } else { shared.registry.groups().into() };
            let groups = all.iter().filter(|group| !group.name.is_empty());
            discover(headers, &discovery::groups(groups.clone()), groups)
        }
        ["apis", group] if !group.is_empty() => {
            let group = Kinds::of(shared, space).group(group).ok_or_else(Status::no_such_page)?;
            let encoding = Accepted::group(header_text(headers, &header::ACCEPT))?;
            Ok(respond(&discovery::group(&group), encoding))
        }
        ["metrics"] if *space == SpaceScope::One(crate::request::ROOT.to_owned()) => {
            let metrics = shared.config.metrics.as_ref().ok_or_else(Status::no_such_page)?;
            Ok(answer::respond(200, "text/plain; version=0.0.4; charset=utf-8", Body::whole(metrics())))
        }
        ["openapi", "v2" | "v3"] if ends_in_slash => Err(Status::no_such_page()),
        ["openapi", "v2"] => {
            let Some(form) = openapi_form("v2", headers) else { return Ok(empty(StatusCode::NOT_ACCEPTABLE)) };
            Ok(document_answer(&extension(shared, space).v2(form), content_type("v2", form), headers))
        }
        ["openapi", "v3"] => {
            let text = serde_json::to_vec(&extension(shared, space).v3_index(&prefix(space))).unwrap_or_default();
            Ok(answer::respond(200, "text/plain; charset=utf-8", Body::whole(text)))
        }
        ["openapi", "v3", path @ ..] => Ok(openapi_v3(shared, &path.join("/"), space, query, headers)),
        _ => Err(Status::no_such_page()),
    }
}

fn respond(value: &Value, encoding: Encoding) -> Response<Body> {
    answer::bytes(200, serde_json::to_vec(value).unwrap_or_default(), encoding)
}

/// What the documents of a space have beyond those of all.
fn extension(shared: &Shared, space: &SpaceScope) -> Extension {
    Extension::of(&Kinds::of(shared, space).extended())
}

/// What stands before every address of a space.
fn prefix(space: &SpaceScope) -> String {
    match space {
        SpaceScope::One(space) if space != crate::request::ROOT => format!("/spaces/{space}"),
        SpaceScope::One(_) => String::new(),
        SpaceScope::All => "/spaces/*".to_owned(),
    }
}

/// Groups in the form the client asks for: all of them at once, or as they were listed before that was possible.
fn discover<'a>(
    headers: &HeaderMap,
    listed: &Value,
    groups: impl Iterator<Item = &'a crate::registry::Group>,
) -> Result<Response<Body>, Status> {
    let accepted = Accepted::discovery(header_text(headers, &header::ACCEPT))?;
    let Some(form) = accepted.aggregated else { return Ok(respond(listed, accepted.encoding)) };
    let body = serde_json::to_vec(&discovery::aggregated(groups, form)).unwrap_or_default();
    let hash: String = Sha512::digest(&body).iter().map(|byte| format!("{byte:02X}")).collect();
    let mut response = tagged(&format!("\"{hash}\""), headers, || {
        let mut response = answer::bytes(200, body, accepted.encoding);
        let encoding = accepted.encoding.content_type();
        let kind = format!("{encoding};g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList", form.version());
        set(&mut response, header::CONTENT_TYPE, &kind);
        response
    });
    set(&mut response, header::VARY, "Accept");
    set(&mut response, header::CACHE_CONTROL, "public");
    Ok(response)
}

fn set(response: &mut Response<Body>, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// An answer that the client may have already.
fn tagged(tag: &str, headers: &HeaderMap, make: impl FnOnce() -> Response<Body>) -> Response<Body> {
    let mut response = if header_text(headers, &header::IF_NONE_MATCH).contains(tag) {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        make()
    };
    set(&mut response, header::ETAG, tag);
    response
}

/// The form of OpenAPI that a client asks for first; none if it asks for another.
fn openapi_form(version: &str, headers: &HeaderMap) -> Option<openapi::Form> {
    let protobuf = format!("application/com.github.proto-openapi.spec.{version}@v1.0+protobuf");
    let accepted = header_text(headers, &header::ACCEPT);
    if accepted.is_empty() {
        return Some(openapi::Form::Json);
    }
    accepted.split(',').find_map(|range| match range.split(';').next().unwrap_or_default().trim() {
        range if range == protobuf => Some(openapi::Form::Protobuf),
        "application/json" | "application/*" | "*/*" => Some(openapi::Form::Json),
        _ => None,
    })
}

fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::whole(""));
    *response.status_mut() = code;
    response
}

/// What a form is called in an answer: not quite as it is asked for.
fn content_type(version: &str, form: openapi::Form) -> &'static str {
    match (form, version) {
        (openapi::Form::Json, _) => "application/json",
        (openapi::Form::Protobuf, "v2") => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        (openapi::Form::Protobuf, _) => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    }
}

/// A document, packed if the client takes it so.
fn document_answer(document: &Document, kind: &'static str, headers: &HeaderMap) -> Response<Body> {
    tagged(&document.etag(), headers, || {
        let packed = header_text(headers, &header::ACCEPT_ENCODING).contains("gzip");
        let bytes = if packed { document.gzip() } else { document.text().into() };
        let mut response = answer::respond(200, kind, Body::whole(bytes));
        set(&mut response, header::VARY, "Accept");
        if packed {
            set(&mut response, header::CONTENT_ENCODING, "gzip");
        }
        response
    })
}

/// One document of version 3. An address with its hash can be kept for ever; one with another hash is shown the right one.
fn openapi_v3(shared: &Shared, path: &str, space: &SpaceScope, query: &Query, headers: &HeaderMap) -> Response<Body> {
    let Some(form) = openapi_form("v3", headers) else { return empty(StatusCode::NOT_ACCEPTABLE) };
    let Some(document) = extension(shared, space).v3(path, form) else { return empty(StatusCode::NOT_FOUND) };
    let hash = &document.hash;
    let given = query.get("hash").unwrap_or_default();
    if !given.is_empty() && given != hash.as_ref() {
        let mut response = empty(StatusCode::MOVED_PERMANENTLY);
        set(&mut response, header::LOCATION, &format!("{}/openapi/v3/{path}?hash={hash}", prefix(space)));
        return response;
    }
    let mut response = document_answer(&document, content_type("v3", form), headers);
    if !given.is_empty() {
        const YEAR: jiff::SignedDuration = jiff::SignedDuration::from_hours(365 * 24);
        let expires = (shared.config.clock)().saturating_add(YEAR).unwrap_or(jiff::Timestamp::MAX);
        set(&mut response, header::CACHE_CONTROL, "public, immutable");
        set(&mut response, header::EXPIRES, &expires.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string());
    }
    response
}

/// What `kubectl version` shows of the server.
fn build_version() -> Value {
    json!({
        "major": "1",
        "minor": "34",
        "emulationMajor": "1",
        "emulationMinor": "34",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "33",
        "gitVersion": concat!("v1.34.4+orrery-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}
