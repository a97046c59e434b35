//! From a path to what it names. Paths come from outside: nothing in them is trusted, and no two spellings name one object.

use super::query::unescape;
use crate::status::Status;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// In which space.
    pub space: SpaceScope,
    /// What there.
    pub target: Target,
}

/// One space or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpaceScope {
    /// One space; the management space is `root`.
    One(String),
    /// All spaces at once.
    All,
}

/// What a path names within a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Something of a resource.
    Resource {
        /// The API group; empty for the core group.
        group: String,
        /// Its version.
        version: String,
        /// What comes after the version.
        path: ResourcePath,
    },
    /// The group version itself, `/api/v1` or `/apis/<group>/<version>`.
    Version {
        /// The API group; empty for the core group.
        group: String,
        /// Its version.
        version: String,
    },
    /// A path outside the resources, with its leading slash.
    Other(String),
}

/// What comes after the group version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// The namespace, if the path has one.
    pub namespace: Option<String>,
    /// The resource in the plural.
    pub resource: String,
    /// The object, if the path names one.
    pub name: Option<String>,
    /// A part of the object, if the path names one.
    pub subresource: Option<String>,
    /// Whether the path is one of the old watch paths, `/api/v1/watch/…`.
    pub watch: bool,
}

/// The space that is served at the root of all addresses.
pub const ROOT: &str = "root";

/// Reads a path as it came, with its percent escapes.
pub fn parse(path: &str) -> Result<Address, Status> {
    let path = unescape(path, false).ok_or_else(Status::malformed)?;
    if path.contains('\0') {
        return Err(Status::malformed());
    }
    let (space, rest) = split_space(&path)?;
    let Some(inner) = rest.strip_prefix('/') else { return Err(Status::no_such_page()) };
    let inner = inner.trim_end_matches('/');
    let parts: Vec<&str> = inner.split('/').collect();
    let target = match parts.as_slice() {
        ["api", version] => Target::Version { group: String::new(), version: (*version).into() },
        ["apis", "", ..] => Target::Other(rest.to_owned()),
        ["apis", group, version] => Target::Version { group: (*group).into(), version: (*version).into() },
        ["api", version, rest @ ..] if !rest.is_empty() => resource("", version, rest)?,
        ["apis", group, version, rest @ ..] if !rest.is_empty() => resource(group, version, rest)?,
        _ => Target::Other(rest.to_owned()),
    };
    Ok(Address { space, target })
}

/// The space of a path, and the path within it.
fn split_space(path: &str) -> Result<(SpaceScope, &str), Status> {
    let Some(rest) = path.strip_prefix("/spaces/") else {
        return Ok((SpaceScope::One(ROOT.into()), path));
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let rest = if rest.is_empty() { "/" } else { rest };
    match name {
        "*" => Ok((SpaceScope::All, rest)),
        _ if is_label(name) => Ok((SpaceScope::One(name.to_owned()), rest)),
        _ => Err(Status::no_such_page()),
    }
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= 63 && !name.starts_with('-') && !name.ends_with('-') && !name.is_empty() && name.bytes().all(inner)
}

fn resource(group: &str, version: &str, parts: &[&str]) -> Result<Target, Status> {
    let (watch, parts) = match parts {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, parts),
    };
    let text = |part: &str| Some(part.to_owned());
    let (namespace, resource, name, subresource) = match parts {
        // A part after a namespace is a part of the namespace if namespaces have one of that name.
        ["namespaces", name, part @ ("status" | "finalize")] => (None, "namespaces", text(name), text(part)),
        // An empty namespace is all of them.
        ["namespaces", "", resource] => (None, *resource, None, None),
        ["namespaces", namespace, resource] => (text(namespace), *resource, None, None),
        ["namespaces", namespace, resource, name] => (text(namespace), *resource, text(name), None),
        ["namespaces", namespace, resource, name, part] => (text(namespace), *resource, text(name), text(part)),
        // What comes after is for whoever answers behind the proxy.
        ["namespaces", namespace, resource, name, part @ "proxy", ..] => {
            (text(namespace), *resource, text(name), text(part))
        }
        [resource] => (None, *resource, None, None),
        [resource, name] => (None, *resource, text(name), None),
        [resource, name, part] | [resource, name, part @ "proxy", ..] => (None, *resource, text(name), text(part)),
        _ => return Err(Status::no_such_resource()),
    };
    let empty = |part: &Option<String>| part.as_deref() == Some("");
    if resource.is_empty() || empty(&namespace) || empty(&name) || empty(&subresource) {
        return Err(Status::no_such_resource());
    }
    let path = ResourcePath { namespace, resource: resource.to_owned(), name, subresource, watch };
    Ok(Target::Resource { group: group.to_owned(), version: version.to_owned(), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let got = match parse(path) {
            Err(status) => format!("{} {}", status.code(), if status.is_plain() { "text" } else { "status" }),
            Ok(Address { space, target }) => {
                let space = match space {
                    SpaceScope::One(name) => name,
                    SpaceScope::All => "*".into(),
                };
                let target = match target {
                    Target::Other(path) => path,
                    Target::Version { group, version } => format!("{group}|{version}"),
                    Target::Resource { group, version, path } => {
                        let part = |part: Option<String>| part.unwrap_or_else(|| "-".into());
                        let rest = [part(path.namespace), path.resource, part(path.name), part(path.subresource)];
                        format!("{group}|{version}|{}{}", rest.join("|"), if path.watch { " watch" } else { "" })
                    }
                };
                format!("{space} {target}")
            }
        };
        assert_eq!(got, expected, "{path}");
    }

    #[test]
    fn resources() {
        check("/api/v1/nodes", "root |v1|-|nodes|-|-");
        check("/api/v1/namespaces/a", "root |v1|-|namespaces|a|-");
        check("/api/v1/namespaces/a/", "root |v1|-|namespaces|a|-");
        check("/api/v1/namespaces/a/finalize", "root |v1|-|namespaces|a|finalize");
        check("/api/v1/namespaces/a/pods", "root |v1|a|pods|-|-");
        check("/apis/apps/v1/namespaces/a/deployments/b/scale", "root apps|v1|a|deployments|b|scale");
        check("/api/v1/watch/namespaces/a/pods", "root |v1|a|pods|-|- watch");
        check("/apis/apps/v1", "root apps|v1");
        check("/api/v1/namespaces/a/services/b/proxy/c/d", "root |v1|a|services|b|proxy");
        check("/api/v1/nodes/b/proxy/", "root |v1|-|nodes|b|proxy");
    }

    #[test]
    fn spaces() {
        check("/spaces/team-a/api/v1/nodes", "team-a |v1|-|nodes|-|-");
        check("/spaces/*/api/v1/pods", "* |v1|-|pods|-|-");
        check("/spaces/team-a", "team-a /");
        check("/spaces/a.b/api/v1/nodes", "404 text");
        check("/spaces//api/v1/nodes", "404 text");
        check("/spaces/../api/v1/nodes", "404 text");
        check("/spaces/a%2F..%2Fb/api/v1/nodes", "a /../b/api/v1/nodes");
    }

    #[test]
    fn what_names_nothing() {
        check("//api/v1/nodes", "root //api/v1/nodes");
        check("/api/v1/namespaces/a/configmaps//b", "404 status");
        check("/api/v1/namespaces/a/configmaps/a/b/c", "404 status");
        check("/api/v1/nodes/a%zz", "400 text");
        check("/api/v1/nodes/a%00", "400 text");
        check("/api/v1/nodes/a%2Fstatus", "root |v1|-|nodes|a|status");
        check("/api/v1/nodes/..", "root |v1|-|nodes|..|-");
        check("", "404 text");
    }
}
