//! Addresses outside the resources: discovery, version, health.

use http::{HeaderMap, Method, Response};
use serde_json::json;

use crate::{
    answer,
    body::Body,
    request::{Accepted, Query, SpaceScope},
    server::Shared,
    status::Status,
};

/// Answers for a group version as such.
pub(crate) fn version(
    shared: &Shared,
    method: &Method,
    group: &str,
    version: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let _ = headers;
    let Some(known) = shared.registry.group(group) else { return Err(Status::no_such_page()) };
    if known.version(version).is_none() {
        return Err(Status::no_such_resource());
    }
    if method != Method::GET {
        return Err(Status::method_not_allowed());
    }
    Err(Status::no_such_resource())
}

/// Answers for any other path.
pub(crate) fn other(
    shared: &Shared,
    method: &Method,
    space: &SpaceScope,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let _ = (shared, space, query, headers);
    let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
    match path {
        "/version" if method == Method::GET => Ok(answer::bytes(200, build_version(), Accepted::JSON.encoding)),
        "/version" => Err(Status::method_not_allowed()),
        "/healthz" | "/livez" | "/readyz" => Ok(answer::respond(200, "text/plain; charset=utf-8", Body::whole("ok"))),
        _ => Err(Status::no_such_page()),
    }
}

/// What `kubectl version` shows of the server.
fn build_version() -> Vec<u8> {
    let version = json!({
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
        "platform": concat!("linux/", "amd64"),
    });
    serde_json::to_vec(&version).unwrap_or_default()
}
