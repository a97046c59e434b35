//! The schema of a custom resource as OpenAPI documents describe it to clients.

use serde_json::Value;

/// Which OpenAPI a description is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// The older one, which cannot say everything.
    V2,
    /// The newer one.
    V3,
}

/// What a version of a custom resource is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    /// The API group.
    pub(crate) group: &'a str,
    /// The version.
    pub(crate) version: &'a str,
    /// The kind of one object.
    pub(crate) kind: &'a str,
}

/// The definition of a kind, which stands at `io.example.v1.Widget` in documents. `schema` is `openAPIV3Schema`; nothing where there is
/// none, or where the definition preserves unknown fields.
pub(crate) fn definition(named: Named<'_>, schema: Option<&Value>, version: Version) -> Value {
    let _ = (named, version);
    schema.cloned().unwrap_or_default()
}

/// The name of a definition: the group backwards, the version and the kind.
pub(crate) fn definition_name(named: Named<'_>) -> String {
    let mut parts: Vec<&str> = named.group.split('.').collect();
    parts.reverse();
    parts.extend([named.version, named.kind]);
    parts.join(".")
}
