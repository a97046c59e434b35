//! Who asks, and whether they may: the seam between a request and what authenticates and authorises it.

mod certificate;

pub use certificate::CertificateError;

use crate::{
    request::{ROOT, SpaceScope},
    status::Status,
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
