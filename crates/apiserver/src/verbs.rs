//! What can be done with objects, the same for every kind.

mod admission;
mod allocation;
mod answered;
mod apply;
mod collection;
mod create;
mod decode;
mod delete;
mod get;
mod in_place;
mod list;
mod outcome;
mod ownership;
mod parsed;
mod patch;
mod places;
mod subresources;
mod update;
mod watch;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header};
use orrery_store::{Key, Object};
use serde_json::Value;

use crate::{
    answer::{self, Include, TableView},
    body::Body,
    definitions::{self, Custom, Found, settled},
    identity::{Attributes, Target, User, resource_verb},
    object::{Opening, Stored},
    registry::{Registry, Resource, Storage, Subresource},
    request::{AVAILABLE, AVAILABLE_LIST, Accepted, Form, Forms, Query, ROOT, ResourcePath, Shape, SpaceScope},
    schema,
    server::{About, Shared, header_text},
    spaces,
    status::{Named, Status},
    versions,
};

pub(crate) use apply::restored;
pub(crate) use create::admit;
pub(crate) use delete::Deletion;
pub(crate) use outcome::{Made, Old};
pub(crate) use ownership::Owner;
pub(crate) use write::Writer;

/// A request for something of a resource.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) user: User,
    pub(crate) resource: Arc<Resource>,
    /// Whether the definition of the resource is going away.
    pub(crate) terminating: bool,
    pub(crate) space: SpaceScope,
    pub(crate) path: ResourcePath,
    pub(crate) query: Query,
    pub(crate) accepted: Accepted,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    verb: Verb,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// What is served, of all that can be asked for.
    fn of(method: &Method, path: &ResourcePath, query: &Query) -> Option<Self> {
        let name = resource_verb(method, path, query);
        let verb = Self::ALL.into_iter().find(|verb| verb.name() == name)?;
        let item = path.name.is_some();
        let served = match verb {
            Self::Get | Self::List | Self::Watch => *method == Method::GET,
            Self::Create => !item || path.subresource.is_some(),
            Self::Update | Self::Patch => item,
            Self::Delete | Self::DeleteCollection => true,
        };
        served.then_some(verb)
    }
}

impl Call {
    /// Finds out what a request wants, and refuses what cannot be wanted.
    #[expect(clippy::too_many_arguments, reason = "these are the parts of a request")]
    pub(crate) fn new(
        shared: Arc<Shared>,
        user: User,
        found: Found,
        space: SpaceScope,
        path: ResourcePath,
        query: Query,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Self, Status> {
        let Found { resource, terminating } = found;
        let collection = path.name.is_none();
        let misplaced =
            if resource.namespaced { path.namespace.is_none() && !collection } else { path.namespace.is_some() };
        if resource.custom.is_some() {
            check_custom(&resource, &path, misplaced, method, &query)?;
        }
        let part =
            path.subresource.as_deref().map(|name| resource.subresource(name).ok_or_else(Status::no_such_resource));
        let part = part.transpose()?;
        // What can only be made has no address of its own.
        let nameless = !collection && part.is_none() && resource.verbs == ["create"];
        let elsewhere = spaces::is_space(&resource) && space != SpaceScope::One(ROOT.to_owned());
        if misplaced || nameless || elsewhere {
            return Err(Status::no_such_resource());
        }
        // A new custom resource may be sent to its own address.
        let named = resource.custom.is_some() && part.is_none() && *method == Method::POST;
        let verb = if named { Some(Verb::Create) } else { Verb::of(method, &path, &query) };
        let verb = verb.ok_or_else(Status::method_not_allowed)?;
        let allowed = part.map_or(&resource.verbs, |part| &part.verbs);
        let reads_all = matches!(verb, Verb::List | Verb::Watch);
        let everywhere = resource.namespaced && collection && path.namespace.is_none();
        if !allowed.iter().any(|name| name == verb.name()) || (everywhere && !reads_all) {
            return Err(Status::method_not_allowed());
        }
        let content_type = header_text(headers, &header::CONTENT_TYPE).trim().to_owned();
        let user_agent = header_text(headers, &header::USER_AGENT).to_owned();
        if verb == Verb::Patch {
            patch::check_type(&resource, &content_type)?;
        }
        let available = if reads_all { AVAILABLE_LIST } else { AVAILABLE };
        let forms = Forms { protobuf: crate::protobuf::has_form(&resource), table: resource.verbs != ["create"] };
        let accepted = Accepted::negotiate(header_text(headers, &header::ACCEPT), available, forms);
        let accepted = accepted.map_err(|status| match resource.custom {
            Some(_) => Status::no_acceptable_form(AVAILABLE),
            None => status,
        })?;
        let accepted =
            accepted.pretty_if(query.get("pretty").is_some_and(|value| query.flag("pretty") && !value.is_empty()));
        if let Some(name) = &path.name {
            let problems = crate::format::path_segment(name);
            if !problems.is_empty() {
                let name = crate::gotext::quote(name);
                return Err(Status::bad_request(format!("Name parameter invalid: {name}: {}", problems.join(";"))));
            }
        }
        Ok(Self { shared, user, resource, terminating, space, path, query, accepted, content_type, user_agent, verb })
    }

    /// What is asked for, for whoever counts.
    pub(crate) fn about(&self) -> About {
        let subresource = self.subresource().map(|part| part.name.clone());
        let own = self.shared.definitions.is_own(&self.resource);
        About { verb: self.verb.name(), resource: own.then(|| self.resource.clone()), subresource }
    }

    /// Refuses another verb than the request's on the object it names.
    pub(crate) fn authorize(&self, verb: &str) -> Result<(), Status> {
        let target = Target::Resource {
            group: &self.resource.group,
            resource: &self.resource.plural,
            subresource: self.path.subresource.as_deref().unwrap_or_default(),
            namespace: self.namespace(),
            name: self.name().into(),
        };
        self.shared.authorizer.authorize(&self.user, &Attributes { space: &self.space, verb, target })
    }

    /// The part of the object that is asked for.
    pub(crate) fn subresource(&self) -> Option<&Subresource> {
        self.resource.subresource(self.path.subresource.as_deref()?)
    }

    /// The resource as messages name it.
    pub(crate) fn named(&self) -> Named<'_> {
        named(&self.resource)
    }

    /// The one space of the request; only reads can go over all.
    pub(crate) fn one_space(&self) -> Result<&str, Status> {
        match &self.space {
            SpaceScope::One(space) => Ok(space),
            SpaceScope::All => Err(Status::method_not_allowed()),
        }
    }

    /// The name in the path; empty for a collection.
    pub(crate) fn name(&self) -> &str {
        self.path.name.as_deref().unwrap_or_default()
    }

    /// The namespace in the path; empty if there is none.
    pub(crate) fn namespace(&self) -> &str {
        self.path.namespace.as_deref().unwrap_or_default()
    }

    /// The key of an object of this resource.
    pub(crate) fn key(&self, name: &str) -> Result<Key, Status> {
        let (group, resource) = stored_as(&self.resource)?;
        // A name that cannot be a key cannot be the name of anything.
        Key::new(group, resource, self.one_space()?, self.namespace(), name)
            .map_err(|_| Status::not_found(self.named(), name))
    }

    /// The object the path names.
    pub(crate) fn existing(&self) -> Result<Arc<Object>, Status> {
        let object = self.shared.store.get(&self.key(self.name())?);
        object.ok_or_else(|| Status::not_found(self.named(), self.name()))
    }

    /// How rows of a table are to be made.
    pub(crate) fn table_view(&self) -> Result<TableView, Status> {
        let asked = self.query.get("includeObject").filter(|_| self.accepted.form.shape == Shape::Table);
        let include = Include::parse(asked)?;
        Ok(TableView { include, now: (self.shared.config.clock)(), columns: true })
    }

    /// The resource in whose version an answer is made.
    pub(crate) fn shown_as(&self, view: &TableView) -> &Arc<Resource> {
        rows_of(&self.shared.registry, &self.resource, self.accepted.form, view)
    }

    /// A stored object as an answer.
    pub(crate) async fn stored_answer(&self, code: u16, object: &Object) -> Result<Response<Body>, Status> {
        let stored = stored(object)?;
        let space = self.space_of(object);
        let mut out = Vec::with_capacity(stored.len() + 256);
        match self.accepted.form.shape {
            Shape::Whole if is_as_stored(&self.resource, &stored) => {
                stored.write(&mut out, &Opening::named(&self.resource.kind, &self.resource.api_version()), space);
            }
            Shape::Metadata if answer::is_whole_metadata(&self.resource) => {
                stored.write_partial(&mut out, &answer::partial_opening(self.accepted.form), space);
            }
            _ => {
                let view = self.table_view()?;
                let resource = self.shown_as(&view);
                let value =
                    settled(&self.shared, self.in_space(), || read(&self.shared.registry, resource, object)).await?;
                return answer::object(code, resource, &value, self.accepted, &view);
            }
        }
        Ok(answer::bytes(code, out, self.accepted.encoding))
    }

    /// An object that was just written, or only would have been, as an answer.
    pub(crate) fn value_answer(&self, code: u16, object: &Value) -> Result<Response<Body>, Status> {
        answer::object(code, &self.resource, object, self.accepted, &self.table_view()?)
    }

    /// A stored object in the version of this request, in its complete form.
    pub(crate) async fn read(&self, object: &Object) -> Result<Value, Status> {
        settled(&self.shared, self.in_space(), || read(&self.shared.registry, &self.resource, object)).await
    }

    /// The space that waits for an answer; all of them are none.
    pub(crate) fn in_space(&self) -> &str {
        match &self.space {
            SpaceScope::One(space) => space,
            SpaceScope::All => "",
        }
    }

    /// The space to name in an answer over all spaces.
    pub(crate) fn space_of<'a>(&self, object: &'a Object) -> Option<&'a str> {
        (self.space == SpaceScope::All).then(|| object.key().space())
    }
}

/// Answers a request.
pub(crate) async fn run(call: Call, body: Bytes, warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    warnings.extend(versions::deprecation(&call.resource).map(str::to_owned));
    warnings.extend(call.resource.custom.as_ref().and_then(|custom| custom.version().deprecation.clone()));
    // Each verb has a place of its own in memory, so that a request carries, and copies, only what its verb needs.
    if call.path.subresource.is_some() {
        return Box::pin(subresources::run(call, body, warnings)).await;
    }
    if let Some(answers) = call.shared.definitions.answers(&call.resource) {
        return Box::pin(answered::create(&call, answers, &body, warnings)).await;
    }
    if call.resource.storage == Storage::Virtual {
        return Box::pin(subresources::run_virtual(call, body, warnings)).await;
    }
    let answer = match call.verb {
        Verb::Get => Box::pin(get::get(&call)).await,
        Verb::List => Box::pin(list::list(&call)).await,
        Verb::Watch => Box::pin(watch::watch(&call)).await,
        Verb::Create => Box::pin(create::create(&call, &body, warnings)).await,
        Verb::Update => Box::pin(update::update(&call, &body, warnings)).await,
        Verb::Patch => Box::pin(patch::patch(&call, &body, warnings)).await,
        Verb::Delete => Box::pin(delete::delete(&call, &body, warnings)).await,
        Verb::DeleteCollection => Box::pin(collection::delete(&call, &body, warnings)).await,
    }?;
    settle_definition(&call).await;
    Ok(answer)
}

/// Gives a definition that was just written its names, so that what it defines is served when the answer is there. If that
/// fails, a controller does it.
async fn settle_definition(call: &Call) {
    let reads = matches!(call.verb, Verb::Get | Verb::List | Verb::Watch);
    let Ok(space) = call.one_space() else { return };
    if reads || !definitions::is_definition(&call.resource) {
        return;
    }
    if let Err(status) = Box::pin(definitions::settle(&call.shared, space)).await {
        tracing::warn!(error = status.message(), "definitions are not served yet");
    }
    if call.verb == Verb::Delete
        && let Ok(key) = call.key(call.name())
        && let Err(status) = Box::pin(definitions::end_if_empty(&call.shared, &key)).await
    {
        tracing::warn!(error = status.message(), "a definition is not gone yet");
    }
}

/// Refuses what cannot be asked for of a custom resource, in the words that are used for them.
fn check_custom(
    resource: &Resource,
    path: &ResourcePath,
    misplaced: bool,
    method: &Method,
    query: &Query,
) -> Result<(), Status> {
    let reads_all = *method == Method::GET || *method == Method::HEAD;
    let everywhere = resource.namespaced && path.namespace.is_none() && !(path.name.is_none() && reads_all);
    if misplaced || everywhere {
        return Err(Status::no_such_page());
    }
    let verb = resource_verb(method, path, query);
    let verbs = match path.subresource.as_deref() {
        None => &resource.verbs,
        Some(part) => {
            let missing = || Status::not_found(named(resource), path.name.as_deref().unwrap_or_default());
            &resource.subresource(part).ok_or_else(missing)?.verbs
        }
    };
    if verbs.iter().any(|allowed| allowed == verb) {
        Ok(())
    } else {
        Err(Status::verb_not_supported(named(resource), verb))
    }
}

/// The resource as messages name it.
pub(crate) fn named(resource: &Resource) -> Named<'_> {
    Named { group: &resource.group, what: &resource.plural }
}

/// The kind as messages name it.
pub(crate) fn kind(resource: &Resource) -> Named<'_> {
    Named { group: &resource.group, what: &resource.kind }
}

/// The group and resource under which objects are stored.
pub(crate) fn stored_as(resource: &Resource) -> Result<(&str, &str), Status> {
    match &resource.storage {
        Storage::Stored { group, resource, .. } => Ok((group, resource)),
        Storage::Virtual => Err(Status::method_not_allowed()),
    }
}

/// Whether objects are stored in the version this resource serves.
pub(crate) fn is_native(resource: &Resource) -> bool {
    matches!(&resource.storage, Storage::Stored { group, version, .. } if *group == resource.group && *version == resource.version)
}

/// The resource in whose version objects are stored.
/// Custom resources are worked on in the version of the request, and turned into another when they are stored.
pub(crate) fn native<'a>(registry: &'a Registry, resource: &'a Arc<Resource>) -> &'a Arc<Resource> {
    match &resource.storage {
        _ if resource.custom.is_some() => resource,
        Storage::Stored { resource: plural, .. } if is_native(resource) && *plural == resource.plural => resource,
        Storage::Stored { group, resource: plural, version } => {
            registry.resource(group, version, plural).unwrap_or(resource)
        }
        Storage::Virtual => resource,
    }
}

/// The resource in whose version objects are shown: rows of tables are made of what is stored, unless they hold whole objects.
pub(crate) fn rows_of<'a>(
    registry: &'a Registry,
    resource: &'a Arc<Resource>,
    form: Form,
    view: &TableView,
) -> &'a Arc<Resource> {
    if form.shape == Shape::Table && view.include != Include::Object { native(registry, resource) } else { resource }
}

/// Whether a stored object is, byte by byte, what a resource shows.
pub(crate) fn is_as_stored(resource: &Resource, stored: &Stored<'_>) -> bool {
    is_native(resource) && resource.custom.as_ref().is_none_or(|custom| stored.is_marked(custom.version().mark))
}

/// A stored custom resource in the version a resource serves.
fn read_custom(custom: &Custom, object: &Object) -> Result<Value, Status> {
    let family = &custom.family;
    let stored = stored(object)?;
    let version = family.find(stored.version()).unwrap_or(family.storage);
    let value = stored.parse(&family.kind, &family.api_version(version));
    if version == custom.version && stored.is_marked(custom.version().mark) {
        return Ok(value);
    }
    family.read(value, version, custom.version)
}

/// The bytes of a stored object.
pub(crate) fn stored(object: &Object) -> Result<Stored<'_>, Status> {
    let unreadable =
        || Status::internal_error(format!("{} is stored in a format this version does not read", object.key()));
    Stored::of(object).ok_or_else(unreadable)
}

/// A stored object in the version a resource serves, in its complete form. What may need conversion is [`settled`].
pub(crate) fn read(registry: &Registry, resource: &Arc<Resource>, object: &Object) -> Result<Value, Status> {
    if let Some(custom) = &resource.custom {
        return read_custom(custom, object);
    }
    let native = native(registry, resource);
    let mut value = stored(object)?.parse(&native.kind, &native.api_version());
    if !Arc::ptr_eq(native, resource) {
        schema::sparse(&native.schemas, native.schema, &mut value);
        versions::convert(native, resource, &mut value);
        answer::complete(resource, &mut value);
    }
    Ok(value)
}
