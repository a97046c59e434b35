//! Acting as somebody else: a user who may says in headers as whom a request is to be taken.

use std::borrow::Cow;

use http::{HeaderMap, Uri};

use super::{
    ANONYMOUS, AUTHENTICATED, Attributes, Issuer, Target, UNAUTHENTICATED, User, service_account_groups,
    split_service_account,
};
use crate::{
    request::{SpaceScope, unescape},
    status::Status,
};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// One thing about the other user, each of which needs a right of its own.
struct Claim {
    kind: &'static str,
    namespace: String,
    value: String,
    /// The name of an extra.
    key: String,
}

/// The user as whom a request is to be taken, if it says so. `allowed` decides whether `user` may.
pub(crate) fn impersonate(
    user: &User,
    headers: &HeaderMap,
    uri: &Uri,
    space: &SpaceScope,
    allowed: impl Fn(&Attributes<'_>) -> Result<(), Status>,
) -> Result<Option<User>, Status> {
    let claims = claims(headers);
    let Some(first) = claims.first() else { return Ok(None) };
    if !matches!(first.kind, "User" | "ServiceAccount") {
        let listed: Vec<String> = claims.iter().map(Claim::to_text).collect();
        let asked = uri.path_and_query().map_or("/", |asked| asked.as_str());
        return Err(Status::nobody_to_impersonate(asked, &listed.join(" ")));
    }
    let mut other = User { issuer: issuer(user, space), ..User::default() };
    let explicit_groups = claims.iter().any(|claim| claim.kind == "Group");
    for claim in claims {
        let (group, resource, subresource) = claim.right();
        let target = Target::Resource {
            group,
            resource,
            subresource,
            namespace: &claim.namespace,
            name: claim.value.as_str().into(),
        };
        allowed(&Attributes { space, verb: "impersonate", target })?;
        match claim.kind {
            "ServiceAccount" => {
                if !explicit_groups {
                    other.groups = service_account_groups(&claim.namespace);
                }
                other.name = super::service_account_name(&claim.namespace, &claim.value);
            }
            "User" => other.name = claim.value,
            "Group" => other.groups.push(claim.value),
            "UID" => other.uid = claim.value,
            _ => match other.extra.iter_mut().find(|(key, _)| *key == claim.key) {
                Some((_, values)) => values.push(claim.value),
                None => other.extra.push((claim.key, vec![claim.value])),
            },
        }
    }
    add_group(&mut other);
    Ok(Some(other))
}

/// Whoever reaches a space as a master of `root` acts there as somebody of that space.
fn issuer(user: &User, space: &SpaceScope) -> Issuer {
    match (&user.issuer, space) {
        (Issuer::Root, SpaceScope::One(name)) if name != crate::request::ROOT => {
            Issuer::Space { name: name.clone(), uid: String::new() }
        }
        (issuer, _) => issuer.clone(),
    }
}

/// Somebody is known, nobody is not, whatever the headers say.
fn add_group(user: &mut User) {
    let (added, known): (&str, &[&str]) = match user.name.as_str() {
        ANONYMOUS => (UNAUTHENTICATED, &[UNAUTHENTICATED]),
        _ => (AUTHENTICATED, &[AUTHENTICATED, UNAUTHENTICATED]),
    };
    if !user.groups.iter().any(|group| known.contains(&group.as_str())) {
        user.groups.push(added.to_owned());
    }
}

/// What the headers say, the user first. An empty user is none.
fn claims(headers: &HeaderMap) -> Vec<Claim> {
    let values = |name: &str| headers.get_all(name).into_iter().map(|value| text(value.as_bytes())).collect::<Vec<_>>();
    let claim = |kind, value| Claim { kind, namespace: String::new(), value, key: String::new() };
    let mut claims = Vec::new();
    if let Some(name) = values(USER).into_iter().next().filter(|name| !name.is_empty()) {
        claims.push(match split_service_account(&name) {
            Some((namespace, account)) => {
                Claim { namespace: namespace.to_owned(), ..claim("ServiceAccount", account.to_owned()) }
            }
            None => claim("User", name),
        });
    }
    claims.extend(values(GROUP).into_iter().map(|group| claim("Group", group)));
    let mut extras: Vec<&str> = headers.keys().map(http::HeaderName::as_str).collect();
    extras.retain(|name| name.starts_with(EXTRA_PREFIX));
    extras.sort_unstable();
    for name in extras {
        let escaped = &name[EXTRA_PREFIX.len()..];
        let key = unescape(escaped, false).map_or_else(|| escaped.to_owned(), Cow::into_owned);
        claims.extend(values(name).into_iter().map(|value| Claim { key: key.clone(), ..claim("UserExtra", value) }));
    }
    let uid = values(UID).into_iter().next().filter(|uid| !uid.is_empty());
    claims.extend(uid.map(|uid| claim("UID", uid)));
    claims
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Claim {
    /// The right it needs: API group, resource, and a part of it.
    fn right(&self) -> (&'static str, &'static str, &str) {
        match self.kind {
            "ServiceAccount" => ("", "serviceaccounts", ""),
            "User" => ("", "users", ""),
            "Group" => ("", "groups", ""),
            "UID" => ("authentication.k8s.io", "uids", ""),
            _ => ("authentication.k8s.io", "userextras", &self.key),
        }
    }

    /// As Kubernetes prints it: kind, namespace, name, uid, version, resource version and field of a reference.
    fn to_text(&self) -> String {
        let version = match self.kind {
            "UID" | "UserExtra" => "authentication.k8s.io/v1",
            _ => "",
        };
        format!("{{{} {} {}  {version}  {}}}", self.kind, self.namespace, self.value, self.key)
    }
}
