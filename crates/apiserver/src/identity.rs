//! Who asks, and whether they may: the seam between a request and what authenticates and authorises it.

mod certificate;
mod grants;
mod impersonate;
pub(crate) mod rbac;
mod requester;

use std::{borrow::Cow, sync::Arc};

use http::Method;

pub use certificate::CertificateError;
pub(crate) use grants::check as check_grant;
pub(crate) use impersonate::impersonate;
pub(crate) use requester::note_requester;

use self::rbac::{Policy, Rbac};
use crate::{
    gotext,
    objects::Objects,
    request::{Address, Query, ROOT, ResourcePath, SpaceScope, Target as Place},
    selector::FieldSelector,
    status::{Named, Status},
};

/// Who asks. Whatever authenticates a request puts this into its extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
    /// An identifier that is not reused when names are.
    pub uid: String,
    /// Whatever else the authenticator knows.
    pub extra: Vec<(String, Vec<String>)>,
    /// Where the credential was issued, which is where it is good.
    pub issuer: Issuer,
}

/// Where a credential was issued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Issuer {
    /// In the management space.
    #[default]
    Root,
    /// In a space. Another space that gets the same name later is not the same space.
    Space {
        /// Its name.
        name: String,
        /// The uid of its `LogicalSpace`.
        uid: String,
    },
}

impl User {
    /// The user that may do everything.
    pub fn admin() -> Self {
        Self { name: "system:admin".into(), groups: vec![MASTERS.into(), AUTHENTICATED.into()], ..Self::default() }
    }

    /// Somebody who did not say who they are.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Whether nothing is refused to this user where the credential is good.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// Whether this is nobody in particular.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// Refuses a credential where it is not good. `uid` finds the uid of a space.
    ///
    /// A credential is good where it was issued. Those of `root` whose user is in `system:masters` are good everywhere, and
    /// those of `root` may ask for all spaces at once, which is refused to them later unless they are masters.
    pub(crate) fn check_place(&self, place: &SpaceScope, uid: impl Fn(&str) -> Option<String>) -> Result<(), Status> {
        let good = match (&self.issuer, place) {
            (Issuer::Root, SpaceScope::All) => true,
            (Issuer::Root, SpaceScope::One(space)) => space == ROOT || self.is_master() || self.is_anonymous(),
            (Issuer::Space { .. }, SpaceScope::All) => false,
            (Issuer::Space { name, uid: issued }, SpaceScope::One(space)) => {
                name == space && uid(space).as_deref() == Some(issued)
            }
        };
        if good { Ok(()) } else { Err(Status::unauthorized()) }
    }
}

const ANONYMOUS: &str = "system:anonymous";
const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// What a request wants to do, for whoever decides whether it may.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    /// In which space.
    pub space: &'a SpaceScope,
    /// The verb: `get`, `list`, `create` …, or the HTTP method in lower case outside the resources.
    pub verb: &'a str,
    /// What it is done to.
    pub target: Target<'a>,
}

/// What a verb is done to.
#[derive(Clone, Debug)]
pub enum Target<'a> {
    /// A path outside the resources.
    Path(&'a str),
    /// Something of a resource.
    Resource {
        /// The API group.
        group: &'a str,
        /// The resource in the plural.
        resource: &'a str,
        /// A part of the object.
        subresource: &'a str,
        /// The namespace; empty for all of them, or none. A namespace is in itself.
        namespace: &'a str,
        /// The object; empty for a collection, unless a field selector names one.
        name: Cow<'a, str>,
    },
}

/// Who decides what users may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// The roles and bindings of each space.
    #[default]
    Rbac,
    /// Nobody: everybody may do everything. For whoever checked before, and for tests.
    AllowAll,
}

/// Decides whether users may do what they ask for.
pub(crate) struct Authorizer(Option<Rbac>);

impl Authorizer {
    pub(crate) fn new(authorization: Authorization, objects: Objects) -> Self {
        Self((authorization == Authorization::Rbac).then(|| Rbac::new(objects)))
    }

    /// Refuses what a user may not do.
    pub(crate) fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Status> {
        let Some(rbac) = self.0.as_ref().filter(|_| !user.is_master()) else { return Ok(()) };
        let allowed = match attributes.space {
            SpaceScope::One(space) => rbac.allows(space, user, attributes),
            SpaceScope::All => Err("only system:masters of the space root reach all spaces at once".to_owned()),
        };
        allowed.map_err(|reason| attributes.forbidden(user, &reason))
    }

    /// The roles and bindings of a space, if they decide.
    pub(crate) fn policy(&self, space: &str) -> Option<Arc<Policy>> {
        self.0.as_ref().map(|rbac| rbac.policy(space))
    }
}

impl<'a> Attributes<'a> {
    /// What a request wants to do. `path` has the room for a path that has to be put together.
    pub(crate) fn of(address: &'a Address, method: &'a Method, query: &Query, path: &'a mut String) -> Self {
        let space = &address.space;
        match &address.target {
            Place::Resource { group, path, .. } => {
                let verb = resource_verb(method, path, query);
                let selected = matches!(verb, "list" | "watch").then(|| selected_name(query)).flatten();
                let own = path.name.as_deref().unwrap_or_default();
                let target = Target::Resource {
                    group,
                    resource: &path.resource,
                    subresource: path.subresource.as_deref().unwrap_or_default(),
                    namespace: match path.resource.as_str() {
                        "namespaces" if path.namespace.is_none() => own,
                        _ => path.namespace.as_deref().unwrap_or_default(),
                    },
                    name: match selected {
                        Some(name) if own.is_empty() => Cow::Owned(name),
                        _ => Cow::Borrowed(own),
                    },
                };
                Self { space, verb, target }
            }
            Place::Version { group, version } => {
                *path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
                Self { space, verb: path_verb(method), target: Target::Path(path) }
            }
            Place::Other(path) => Self { space, verb: path_verb(method), target: Target::Path(path) },
        }
    }

    /// The refusal, in Kubernetes' words.
    fn forbidden(&self, user: &User, reason: &str) -> Status {
        let (name, verb) = (gotext::quote(&user.name), self.verb);
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        match &self.target {
            Target::Path(path) => {
                let why = format!("User {name} cannot {verb} path {}", gotext::quote(path));
                Status::forbidden_path(&(escape_html(&why) + &reason))
            }
            Target::Resource { group, resource, subresource, namespace, name: object } => {
                let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
                let place = match *namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", gotext::quote(namespace)),
                };
                let what = gotext::quote(&format!("{resource}{part}"));
                let why =
                    format!("User {name} cannot {verb} resource {what} in API group {} {place}", gotext::quote(group));
                Status::forbidden(Named { group, what: resource }, object, &(escape_html(&why) + &reason))
            }
        }
    }
}

/// The verb of a request for a resource, as roles name it. Methods that nothing is served for have none.
pub(crate) fn resource_verb(method: &Method, path: &ResourcePath, query: &Query) -> &'static str {
    let collection = path.name.is_none();
    match *method {
        _ if path.watch => "watch",
        Method::GET | Method::HEAD if collection && query.flag("watch") => "watch",
        Method::GET | Method::HEAD if collection => "list",
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if collection => "deletecollection",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// The verb of a request outside the resources: the method in lower case.
fn path_verb(method: &Method) -> &str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        Method::CONNECT => "connect",
        Method::TRACE => "trace",
        _ => method.as_str(),
    }
}

/// The one object a field selector leaves of a collection.
fn selected_name(query: &Query) -> Option<String> {
    let selector = FieldSelector::parse(query.get("fieldSelector")?).ok()?;
    let name = selector.required("metadata.name")?;
    crate::format::path_segment(name).is_empty().then(|| name.to_owned())
}

/// Kubernetes' messages may end up in a browser.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What the users of service accounts are called.
const SERVICE_ACCOUNT: &str = "system:serviceaccount";

/// The user of a service account.
pub(crate) fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}:{namespace}:{name}")
}

/// The groups of the service accounts of a namespace.
fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Namespace and name of the service account whose user this is.
fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.strip_prefix(':')?.split_once(':')?;
    let valid = crate::format::dns_label(namespace).is_empty() && crate::format::dns_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}
