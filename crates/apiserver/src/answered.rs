//! Kinds whose objects are questions: a component of the program answers when one is created, and nothing is stored.

use std::{future::Future, pin::Pin, sync::Arc};

use http::Method;
use orrery_store::Key;
use serde_json::{Value, json};

use crate::{
    definitions::Kinds,
    format,
    identity::{Attributes, Target, User},
    object,
    registry::Resource,
    request::SpaceScope,
    server::{self, Shared},
    status::Status,
    verbs,
};

/// Answers a question: what it gives becomes the `status` of the object that was created.
pub type Answers = Arc<dyn Fn(Asked) -> Pin<Box<dyn Future<Output = Result<Value, Status>> + Send>> + Send + Sync>;

/// A question, and who asks it where. Whoever answers acts with the rights of whoever asks.
pub struct Asked {
    shared: Arc<Shared>,
    user: User,
    space: SpaceScope,
    object: Value,
}

/// Something that rights are about.
#[derive(Clone, Copy, Debug)]
pub struct What<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The resource in the plural.
    pub resource: &'a str,
    /// The namespace; empty where there is none.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

impl Asked {
    pub(crate) fn new(shared: Arc<Shared>, user: User, space: &str, object: Value) -> Self {
        Self { shared, user, space: SpaceScope::One(space.to_owned()), object }
    }

    /// The object that was created, valid and with its defaults.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The space.
    pub fn space(&self) -> &str {
        match &self.space {
            SpaceScope::One(space) => space,
            SpaceScope::All => "",
        }
    }

    /// Whether whoever asks may do something in the space.
    pub fn may(&self, verb: &str, what: What<'_>) -> bool {
        let What { group, resource, namespace, name } = what;
        let target = Target::Resource { group, resource, subresource: "", namespace, name: name.into() };
        self.shared.authorizer.authorize(&self.user, &Attributes { space: &self.space, verb, target }).is_ok()
    }

    /// An object as it would be stored if whoever asks created it, or put it in the place of the one of its name. It is
    /// checked as every write is, and nothing is stored. What the server would only then make up is left out.
    pub async fn tried(&self, object: &Value) -> Result<Value, Status> {
        let resource = self.resource(object)?;
        let name = object::name(object);
        if name.is_empty() {
            return Err(Status::bad_request("metadata.name is missing"));
        }
        let given = object::text(object, "namespace");
        let namespace = match (resource.namespaced, given) {
            (false, _) => "",
            (true, "") => "default",
            (true, given) => given,
        };
        for part in [namespace, name] {
            let problems = format::path_segment(part);
            if !problems.is_empty() {
                return Err(Status::bad_request(format!("{} cannot be a name: {}", json!(part), problems.join(";"))));
            }
        }
        let (group, plural) = verbs::stored_as(&resource)?;
        let key = Key::new(group, plural, self.space(), namespace, name);
        let existing = key.ok().and_then(|key| self.shared.store.get(&key));
        let mut object = object.clone();
        let mut metadata = object::Metadata::of(&mut object);
        metadata.remove("resourceVersion");
        metadata.remove("uid");
        if resource.namespaced {
            metadata.set("namespace", namespace);
        }
        let mut path = collection(&resource, self.space(), namespace);
        let method = match existing {
            None => Method::POST,
            Some(existing) => {
                metadata.set("resourceVersion", existing.modified().to_string());
                path = format!("{path}/{}", escaped(name));
                Method::PUT
            }
        };
        let path = format!("{path}?dryRun=All&fieldValidation=Strict");
        let is_new = method == Method::POST;
        let mut tried = server::ask(&self.shared, &self.user, method, &path, &object).await?;
        let mut metadata = object::Metadata::of(&mut tried);
        let made_up = ["uid", "resourceVersion", "managedFields", "creationTimestamp"];
        made_up
            .into_iter()
            .filter(|field| is_new || *field != "creationTimestamp")
            .for_each(|field| metadata.remove(field));
        Ok(tried)
    }

    /// The resource an object says it is of.
    fn resource(&self, object: &Value) -> Result<Arc<Resource>, Status> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = Kinds::of(&self.shared, &self.space).kind(group, version, kind);
        found.ok_or_else(|| {
            Status::bad_request(format!("no kind {} is served in version {}", json!(kind), json!(api_version)))
        })
    }
}

/// The path of a collection.
fn collection(resource: &Resource, space: &str, namespace: &str) -> String {
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{}", escaped(namespace)) };
    format!("/spaces/{space}{root}/{}{within}/{}", resource.version, resource.plural)
}

/// A name as a part of a path, where nothing in it means anything else.
fn escaped(name: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => (byte as char).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(escaped).collect()
}
