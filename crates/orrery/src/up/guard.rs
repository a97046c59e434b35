//! Who may do what in a hub: masters everything, everybody else only what tells nothing.

use orrery_apiserver::{
    identity::{Attributes, Authorizer, Target, User},
    status::{Named, Status},
};

/// What anybody may see, with what lies below.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];
/// What anybody may see who says who they are, with what lies below.
const DISCOVERY: [&str; 3] = ["/api", "/apis", "/openapi"];

/// Lets masters do everything where their credential is good, and nobody else do anything that matters.
pub(super) struct MastersOnly;

impl Authorizer for MastersOnly {
    fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Status> {
        let below = |roots: &[&str], path: &str| {
            roots
                .iter()
                .any(|root| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        };
        let verb = attributes.verb;
        let allowed = match attributes.target {
            _ if user.is_master() => true,
            Target::Path(path) if verb == "get" => {
                below(&PUBLIC, path) || (!user.is_anonymous() && below(&DISCOVERY, path))
            }
            _ => false,
        };
        if allowed {
            return Ok(());
        }
        let name = &user.name;
        match attributes.target {
            Target::Path(path) => {
                let why = format!("User {name:?} cannot {verb} path {path:?}");
                Err(Status::forbidden(Named { group: "", what: "" }, "", &why))
            }
            Target::Resource { group, resource, subresource, namespace, name: object } => {
                let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
                let place = match namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                let why =
                    format!("User {name:?} cannot {verb} resource \"{resource}{part}\" in API group {group:?} {place}");
                Err(Status::forbidden(Named { group, what: resource }, object, &why))
            }
        }
    }
}
