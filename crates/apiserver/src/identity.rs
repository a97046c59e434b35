//! Who asks, and whether they may: the seam between a request and what authenticates and authorises it.

use crate::{request::SpaceScope, status::Status};

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
}

impl User {
    /// The user that may do everything.
    pub fn admin() -> Self {
        Self { name: "system:admin".into(), groups: vec![MASTERS.into(), AUTHENTICATED.into()], ..Self::default() }
    }

    /// Somebody who did not say who they are.
    pub fn anonymous() -> Self {
        Self { name: "system:anonymous".into(), groups: vec!["system:unauthenticated".into()], ..Self::default() }
    }

    /// Whether nothing is refused to this user.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";

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
        /// The namespace; empty for all of them, or none.
        namespace: &'a str,
        /// The object; empty for a collection.
        name: &'a str,
    },
}

/// Decides whether a user may do something.
pub trait Authorizer: Send + Sync {
    /// Refuses with the answer to give, or does not.
    fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Status>;
}

/// Lets everybody do everything: for whoever checked before, and for tests.
pub struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize(&self, _: &User, _: &Attributes<'_>) -> Result<(), Status> {
        Ok(())
    }
}
