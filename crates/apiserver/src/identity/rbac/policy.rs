//! Who has which rules in one space: its roles and bindings, read once and looked up by subject.

use std::{collections::HashMap, sync::Arc};

use orrery_store::{Object, Revision};
use serde::{Deserialize, Deserializer};

use super::{Rule, missing};
use crate::{
    gotext,
    identity::{Attributes, Target, User, service_account_name},
    objects::local_name,
};

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
/// Roles and bindings, by resource.
pub(crate) const RESOURCES: [&str; 4] = ["clusterrolebindings", "clusterroles", "rolebindings", "roles"];

/// When what decides in a space was last changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Each of the resources.
    pub(super) resources: [Revision; 4],
    /// Which of the roles and bindings that every space begins with no longer count.
    pub(super) replaced: Revision,
}

impl Changed {
    /// The last change of all.
    pub(super) fn last(self) -> Revision {
        self.resources.into_iter().fold(self.replaced, Revision::max)
    }
}

/// The roles and bindings of one space.
#[derive(Default)]
pub(crate) struct Policy {
    /// When what it was made of was last changed.
    pub(super) changed: Changed,
    /// What was read of each object, by its name within the space.
    read: HashMap<Box<str>, Read>,
    everywhere: Subjects,
    in_namespaces: HashMap<Box<str>, Subjects>,
}

/// What was read of an object, and in which version of it.
#[derive(Clone)]
struct Read {
    modified: Revision,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Role(Arc<[Rule]>),
    Binding(Arc<Binding>),
}

/// A binding as it is stored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    #[serde(default)]
    role_ref: RoleRef,
    #[serde(default, deserialize_with = "or_default")]
    subjects: Vec<Subject>,
}

/// Which role a binding hands out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

#[derive(Deserialize)]
struct Role {
    #[serde(default, deserialize_with = "or_default")]
    rules: Vec<Rule>,
}

fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What subjects have, by name.
#[derive(Default)]
struct Subjects {
    users: HashMap<Box<str>, Vec<Grant>>,
    groups: HashMap<Box<str>, Vec<Grant>>,
}

/// The rules of a role, or why there are none.
type Grant = Result<Arc<[Rule]>, Arc<str>>;

impl Policy {
    /// Reads roles and bindings. Beneath them lies what `beneath` has and `hidden` does not name. What of `known` is still the
    /// same is not read again.
    pub(super) fn build<'a>(
        changed: Changed,
        beneath: &Self,
        hidden: impl Fn(&str) -> bool,
        objects: impl IntoIterator<Item = &'a Object>,
        known: Option<&Self>,
    ) -> Self {
        let lying = beneath.read.iter().filter(|(name, _)| !hidden(name));
        let mut read: HashMap<Box<str>, Read> = lying.map(|(name, read)| (name.clone(), read.clone())).collect();
        for object in objects {
            let name = entry(object.key().resource(), object.key().namespace(), object.key().name());
            let same = |read: &&Read| read.modified == object.modified() && object.modified() != Revision::ZERO;
            let known = known.and_then(|known| known.read.get(&name).filter(same).cloned());
            read.insert(name, known.unwrap_or_else(|| Read::of(object)));
        }
        let mut policy = Self { changed, read, ..Self::default() };
        policy.index();
        policy
    }

    fn index(&mut self) {
        let (mut everywhere, mut in_namespaces) = (Subjects::default(), HashMap::<Box<str>, Subjects>::new());
        for (name, read) in &self.read {
            let Content::Binding(binding) = &read.content else { continue };
            let namespace = name.split('|').nth(2).unwrap_or_default();
            let subjects = match namespace {
                "" => &mut everywhere,
                _ => in_namespaces.entry(namespace.into()).or_default(),
            };
            let grant = self.rules_of(&binding.role_ref, namespace).map_err(|error| Arc::from(error.as_str()));
            subjects.add(binding, namespace, &grant);
        }
        (self.everywhere, self.in_namespaces) = (everywhere, in_namespaces);
    }

    /// The rules of a role, or a sentence that says there is none.
    pub(crate) fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<Arc<[Rule]>, String> {
        let (resource, namespace) = if role.kind == "Role" { ("roles", namespace) } else { ("clusterroles", "") };
        match self.read.get(&entry(resource, namespace, &role.name)).map(|read| &read.content) {
            Some(Content::Role(rules)) => Ok(rules.clone()),
            _ => {
                let kind = role.kind.to_lowercase();
                Err(format!("{kind}.{GROUP} {} not found", gotext::quote(&role.name)))
            }
        }
    }

    /// What a user has in a namespace: what the user has everywhere, and what in the namespace alone.
    fn grants(&self, user: &User, namespace: &str) -> impl Iterator<Item = &Grant> {
        let subjects = [Some(&self.everywhere), self.in_namespaces.get(namespace)];
        subjects.into_iter().flatten().flat_map(move |subjects| subjects.grants(user))
    }

    /// Whether a user may do something; if not, what stood in the way of finding out, if anything did.
    pub(crate) fn allows(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), String> {
        let namespace = match &attributes.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        };
        let mut problems: Vec<&str> = Vec::new();
        for grant in self.grants(user, namespace) {
            match grant {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => return Ok(()),
                Ok(_) => {}
                Err(problem) if problems.contains(&&**problem) => {}
                Err(problem) => problems.push(problem),
            }
        }
        problems.sort_unstable();
        Err(match problems.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            all => format!("RBAC: [{}]", all.join(", ")),
        })
    }

    /// Refuses to let a user hand out what the user does not have.
    pub(crate) fn may_grant(&self, user: &User, namespace: &str, rules: &[Rule]) -> Result<(), String> {
        let held: Vec<&Rule> = self.grants(user, namespace).flatten().flat_map(|rules| rules.iter()).collect();
        let lines = missing(&held, rules)?;
        if lines.is_empty() {
            return Ok(());
        }
        let (name, groups) = (gotext::quote(&user.name), gotext::quote_list(&user.groups));
        let mut message = format!(
            "user {name} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}",
            lines.join("\n")
        );
        let mut problems: Vec<&str> =
            self.grants(user, namespace).filter_map(|grant| grant.as_ref().err()).map(|problem| &**problem).collect();
        problems.dedup();
        if !problems.is_empty() {
            message.push_str(&format!("; resolution errors: [{}]", problems.join(" ")));
        }
        Err(message)
    }
}

impl Read {
    /// What cannot be read grants nothing.
    fn of(object: &Object) -> Self {
        let bytes = object.value().segments().next().unwrap_or_default();
        let content = if object.key().resource().ends_with("bindings") {
            let nobody = Binding { role_ref: RoleRef::default(), subjects: Vec::new() };
            Content::Binding(Arc::new(serde_json::from_slice(bytes).unwrap_or(nobody)))
        } else {
            let role = serde_json::from_slice(bytes).unwrap_or(Role { rules: Vec::new() });
            Content::Role(role.rules.into())
        };
        Self { modified: object.modified(), content }
    }
}

impl Subjects {
    fn add(&mut self, binding: &Binding, namespace: &str, grant: &Grant) {
        for subject in &binding.subjects {
            let (names, name) = match subject.kind.as_str() {
                "User" => (&mut self.users, subject.name.clone()),
                "Group" => (&mut self.groups, subject.name.clone()),
                "ServiceAccount" => {
                    let own = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                    if own.is_empty() {
                        continue;
                    }
                    (&mut self.users, service_account_name(own, &subject.name))
                }
                _ => continue,
            };
            names.entry(name.into()).or_default().push(grant.clone());
        }
    }

    fn grants(&self, user: &User) -> impl Iterator<Item = &Grant> {
        let own = self.users.get(user.name.as_str());
        let shared = user.groups.iter().filter_map(move |group| self.groups.get(group.as_str()));
        own.into_iter().chain(shared).flatten()
    }
}

fn entry(resource: &str, namespace: &str, name: &str) -> Box<str> {
    local_name(GROUP, resource, namespace, name).into()
}
