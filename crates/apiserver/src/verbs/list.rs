//! Reading many objects: stored bytes are copied into the answer piece by piece, nothing is parsed that need not be.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::Response;
use orrery_store::{Key, List, Object, ReadError, Revision, Scope};
use serde_json::{Value, json};

use super::{
    Call,
    get::{revision, wait_for},
    is_as_stored, is_native, parsed,
    places::Places,
    read, stored_as,
};
use crate::{
    answer::{self, Listing},
    body::Body,
    definitions::settled,
    object::{Opening, Stored},
    page::Page,
    protobuf,
    registry::{Registry, Resource},
    request::{Encoding, Form, ListOptions, PROTOBUF, Shape, SpaceScope, VersionMatch},
    schema,
    selector::{FieldSelector, LabelSelector},
    spaces,
    status::Status,
};

/// Answers with the objects of a collection.
pub(crate) async fn list(call: &Call) -> Result<Response<Body>, Status> {
    let options = ListOptions::parse(&call.query, false)?;
    let filter = Filter::parse(call, &options)?;
    answer(call, select(call, &options, &filter).await?).await
}

/// What was found as an answer.
pub(crate) async fn answer(call: &Call, selection: Selection) -> Result<Response<Body>, Status> {
    if call.accepted.form.shape == Shape::Metadata {
        return Err(answer::is_a_list(&call.resource));
    }
    let view = call.table_view()?;
    let metadata = answer::list_metadata(selection.revision, selection.next.as_deref(), selection.remaining);
    let whole = call.accepted.form.shape == Shape::Whole;
    let metadata = match &call.resource.custom {
        Some(_) if whole && metadata.get("continue").is_none() => with_empty_token(metadata),
        _ => metadata,
    };
    if call.accepted.form.shape == Shape::Table {
        return parsed::table(call, &selection.objects, &metadata, &view).await;
    }
    if call.resource.custom.is_some() && whole && !all_as_stored(call, &selection.objects) {
        let list =
            json!({"kind": list_kind(&call.resource), "apiVersion": call.resource.api_version(), "metadata": metadata});
        return parsed::items(call, &selection.objects, list).await;
    }
    Ok(stream(call, selection.objects, &metadata).await)
}

/// Lists of custom resources say that there is no more.
fn with_empty_token(mut metadata: Value) -> Value {
    metadata["continue"] = "".into();
    metadata
}

/// Whether the bytes of all objects are what the answer shows.
fn all_as_stored(call: &Call, objects: &[Arc<Object>]) -> bool {
    let places = Places::of(call);
    objects.iter().all(|object| {
        let stored = Stored::of(object);
        let shown = places.resource_of(object).filter(|shown| shown.kind == call.resource.kind);
        shown.zip(stored).is_some_and(|(shown, stored)| is_as_stored(&shown, &stored))
    })
}

fn list_kind(resource: &Resource) -> String {
    resource.custom.as_ref().map_or_else(|| format!("{}List", resource.kind), |custom| custom.family.list_kind.clone())
}

/// What a list found.
pub(crate) struct Selection {
    pub(crate) revision: Revision,
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

/// What of a collection is wanted.
pub(crate) struct Filter {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) scope: Scope,
    /// What all keys of the scope begin with.
    prefix: String,
    /// Whether what follows has an empty part, where other resources have their namespace: tokens leave it out.
    gap: bool,
    /// A namespace to look for in all spaces.
    namespace: Option<String>,
    /// By what objects are read.
    pub(crate) places: Places,
}

impl Filter {
    pub(crate) fn parse(call: &Call, options: &ListOptions) -> Result<Self, Status> {
        let (labels, fields) = (options.labels.clone(), options.fields.clone());
        let known = &call.resource.behaviour.field_labels;
        for term in &fields.terms {
            let common = match term.field.as_str() {
                "metadata.name" => true,
                "metadata.namespace" => known.accepts_namespace(call.resource.namespaced),
                _ => false,
            };
            if !common && !known.labels.iter().any(|(label, _)| *label == term.field) {
                return Err(Status::bad_request(known.refusal(&term.field)));
            }
        }
        let (group, resource) = stored_as(&call.resource)?;
        let namespace =
            call.path.namespace.as_deref().or(fields.required("metadata.namespace").filter(|name| !name.is_empty()));
        let (scope, prefix) = match (&call.space, namespace.filter(|_| call.resource.namespaced)) {
            (SpaceScope::All, _) => (Scope::resource(group, resource), format!("{group}/{resource}/")),
            (SpaceScope::One(space), None) => {
                (Scope::space(group, resource, space), format!("{group}/{resource}/{space}/"))
            }
            (SpaceScope::One(space), Some(namespace)) => {
                let scope = Scope::namespace(group, resource, space, namespace);
                (scope, format!("{group}/{resource}/{space}/{namespace}/"))
            }
        };
        let prefix =
            if call.resource.namespaced || call.space == SpaceScope::All { prefix } else { format!("{prefix}/") };
        let scope =
            call.path.name.as_deref().map_or(Ok(scope), |name| call.key(name).map(|key| Scope::object(&key)))?;
        let namespace = call.path.namespace.clone().filter(|_| call.space == SpaceScope::All);
        let gap = call.space == SpaceScope::All && !call.resource.namespaced;
        Ok(Self { labels, fields, scope, prefix, gap, namespace, places: Places::of(call) })
    }

    /// What a token says of a key.
    fn to_token(&self, key: &Key) -> String {
        let rest = key.as_str().get(self.prefix.len()..).unwrap_or_default();
        if self.gap { rest.replacen("//", "/", 1) } else { rest.to_owned() }
    }

    /// What follows the prefix, from what a token says.
    fn place_of<'a>(&self, start: &'a str) -> Cow<'a, str> {
        if self.gap { start.replacen('/', "//", 1).into() } else { start.into() }
    }

    /// Whether the store alone answers this.
    fn is_indexed(&self) -> bool {
        let everywhere = self.namespace.is_none() && !self.places.differ();
        self.fields.is_everything() && !self.labels.has_comparisons() && everywhere
    }

    /// Whether everything in the scope is wanted.
    fn is_everything(&self) -> bool {
        self.is_indexed() && self.labels.is_everything()
    }

    /// Whether an object is wanted.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        let here = self.namespace.as_deref().is_none_or(|namespace| namespace == object.key().namespace());
        here && self.labels.matches(object.labels()) && self.fields_match(object)
    }

    fn fields_match(&self, object: &Object) -> bool {
        // What a space does not serve is nowhere to be seen.
        let Some(resource) = self.places.resource_of(object) else { return false };
        if self.fields.is_everything() {
            return true;
        }
        let registry = &self.places.shared.registry;
        let parsed = std::cell::OnceCell::new();
        self.fields.matches(|field| match field {
            "metadata.name" => object.key().name().to_owned(),
            "metadata.namespace" => object.key().namespace().to_owned(),
            _ => {
                // What a custom resource can be selected by is said for each of its versions.
                let native = super::native(registry, &resource);
                let value = parsed.get_or_init(|| read(registry, native, object).unwrap_or_default());
                let labels = &resource.behaviour.field_labels.labels;
                let path = labels.iter().find(|(label, _)| *label == field).map_or("", |(_, path)| path);
                field_text(native, value, path)
            }
        })
    }
}

/// The value of a field as a selector sees it; what is not set is the zero value of its type.
fn field_text(resource: &Resource, object: &Value, path: &str) -> String {
    let value = path.split('.').try_fold(object, |value, step| value.get(step));
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        _ => zero_text(resource, path).to_owned(),
    }
}

fn zero_text(resource: &Resource, path: &str) -> &'static str {
    let mut kind = Some(resource.schema);
    let mut zero = "";
    for step in path.split('.') {
        let Some(field) = kind.and_then(|kind| resource.schemas.get(kind).field(step)) else { return "" };
        (kind, zero) = match &field.ty.shape {
            schema::Shape::Struct(inner) => (Some(*inner), ""),
            schema::Shape::Bool => (None, "false"),
            schema::Shape::Int32 | schema::Shape::Int64 => (None, "0"),
            _ => (None, ""),
        };
    }
    zero
}

/// Finds what a list asks for.
pub(crate) async fn select(call: &Call, options: &ListOptions, filter: &Filter) -> Result<Selection, Status> {
    let store = &call.shared.store;
    let page = match options.continue_token.as_str() {
        "" => None,
        token => {
            let page = Page::decode(token).map_err(|problem| {
                Status::bad_request(format!("invalid continue token: continue key is not valid: {problem}"))
            })?;
            if !matches!(options.resource_version.as_str(), "" | "0") {
                return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
            }
            Some(page)
        }
    };
    let invalid = |problem: String| Status::bad_request(format!("invalid resource version: {problem}"));
    let given = revision(&options.resource_version).map_err(invalid)?;
    let any = given == Some(Revision::ZERO) && page.is_none();
    let limit = if any { 0 } else { options.limit };
    let exact = match (options.version_match, given) {
        (Some(VersionMatch::Exact), Some(_)) => true,
        (None, Some(revision)) => revision != Revision::ZERO && limit > 0,
        _ => false,
    };
    match given {
        None => drop(store.catch_up().await?),
        Some(revision) => wait_for(&call.shared, revision).await?,
    }
    let at = match &page {
        Some(page) => page.revision.map(Revision::new),
        None => given.filter(|_| exact),
    };
    let begun = spaces::begun(&call.shared, &call.space);
    if let Some(requested) = at.filter(|at| *at < begun) {
        // What was there then is nothing of this space.
        return Err(unread(ReadError::Compacted { requested, oldest: begun }, page.as_ref()));
    }
    read_pages(call, filter, at, page.as_ref(), limit).await
}

/// Why nothing can be read at the revision of a request, or of the page it goes on from.
fn unread(error: ReadError, page: Option<&Page>) -> Status {
    match (error, page) {
        (ReadError::Compacted { .. }, Some(page)) => {
            Status::page_expired(Page { revision: None, start: page.start.clone() }.encode())
        }
        (ReadError::Compacted { .. }, None) => Status::expired("The resourceVersion for the provided list is too old."),
        (ReadError::Future { requested, newest }, _) => Status::revision_too_large(requested.get(), newest.get()),
    }
}

/// How many objects are looked at together where the store alone cannot tell which are wanted, however few are asked for.
const LOOK: usize = 500;

/// Reads from the store until there are as many wanted objects as asked for.
async fn read_pages(
    call: &Call,
    filter: &Filter,
    at: Option<Revision>,
    page: Option<&Page>,
    limit: usize,
) -> Result<Selection, Status> {
    let store = &call.shared.store;
    let indexed = filter.is_indexed();
    let mut selection = Selection { revision: Revision::ZERO, objects: Vec::new(), next: None, remaining: None };
    let mut after = page.map(|page| after(&filter.prefix, &filter.place_of(&page.start)));
    let mut at = at;
    loop {
        let room = match limit - selection.objects.len().min(limit) {
            room if limit > 0 && !indexed => room.max(LOOK),
            room => room,
        };
        let options = orrery_store::ListOptions {
            selector: &filter.labels.indexed,
            at,
            after: after.as_ref().and_then(|start| start.key.as_ref()),
            limit: room,
            count_rest: limit > 0 && filter.is_everything(),
        };
        let mut list = store.list(&filter.scope, &options).map_err(|error| unread(error, page))?;
        selection.revision = list.revision;
        at = Some(list.revision);
        if let Some(first) = after.as_ref().and_then(|start| start.inclusive.as_ref())
            && filter.scope.contains(first)
            && let Some(object) = store.get_at(first, list.revision).map_err(|error| unread(error, page))?
            && (!indexed || filter.matches(&object))
        {
            begin_with(&mut list, object, room);
        }
        selection.remaining = list.rest;
        let (last, more) = if indexed {
            let last = list.objects.last().map(|object| object.key().clone());
            selection.objects.extend(list.objects);
            (last, list.more)
        } else {
            let looked = take_wanted(call, filter, &list.objects, limit, &mut selection.objects).await?;
            let last = list.objects[..looked].last().map(|object| object.key().clone());
            (last, list.more || looked < list.objects.len())
        };
        if !more {
            return Ok(selection);
        }
        if selection.objects.len() >= limit && limit > 0 {
            let start = last.as_ref().map(|key| filter.to_token(key)).unwrap_or_default();
            let page = Page { revision: Some(list.revision.get()), start: format!("{start}\0") };
            selection.next = Some(page.encode());
            return Ok(selection);
        }
        after = last.map(|key| Start { key: Some(key), inclusive: None });
        tokio::task::yield_now().await;
    }
}

/// Takes those objects that are wanted until there are enough, and says how many were looked at. Others are served in between.
async fn take_wanted(
    call: &Call,
    filter: &Filter,
    objects: &[Arc<Object>],
    limit: usize,
    taken: &mut Vec<Arc<Object>>,
) -> Result<usize, Status> {
    let mut looked = 0;
    for (index, step) in parsed::steps(objects).enumerate() {
        parsed::let_others_in(index).await;
        // What is selected by its fields may have to be converted.
        let matches = || Ok(step.iter().map(|object| filter.matches(object)).collect::<Vec<bool>>());
        for (object, wanted) in step.iter().zip(settled(&call.shared, call.in_space(), matches).await?) {
            if limit > 0 && taken.len() >= limit {
                return Ok(looked);
            }
            looked += 1;
            taken.extend(wanted.then(|| object.clone()));
        }
    }
    Ok(looked)
}

/// Puts an object before those of a list, which may hold no more than `limit` then either.
fn begin_with(list: &mut List, object: Arc<Object>, limit: usize) {
    list.objects.insert(0, object);
    if limit > 0 && list.objects.len() > limit {
        list.objects.truncate(limit);
        list.more = true;
        list.rest = list.rest.map(|rest| rest + 1);
    }
}

/// Where a page begins.
struct Start {
    /// Only keys greater than this one.
    key: Option<Key>,
    /// This one too.
    inclusive: Option<Key>,
}

/// Where to go on from the text of a token. One that ends in a zero byte means: after this key; any other: from this key on.
fn after(prefix: &str, start: &str) -> Start {
    let (text, inclusive) = match start.strip_suffix('\0') {
        Some(text) => (text, false),
        None => (start, true),
    };
    let key = Key::parse(&format!("{prefix}{text}")).ok();
    if key.is_none() {
        // A token of a narrower list: it begins with the first object of what its text names.
        return Start { key: Key::parse(&format!("{prefix}{text}/\u{1}")).ok(), inclusive: None };
    }
    Start { inclusive: key.clone().filter(|_| inclusive), key }
}

/// How many bytes of a list are made at a time.
const PIECE: usize = 64 << 10;

/// A list as an answer that is made while it is sent.
async fn stream(call: &Call, objects: Vec<Arc<Object>>, metadata: &Value) -> Response<Body> {
    let resource = &call.resource;
    let whole = call.accepted.form.shape == Shape::Whole;
    let (kind, version) = if whole {
        (list_kind(resource), resource.api_version())
    } else {
        ("PartialObjectMetadataList".to_owned(), call.accepted.form.api_version().to_owned())
    };
    let opening = format!(r#"{{"kind":"{kind}","apiVersion":"{version}","metadata":{metadata},"items":"#);
    if objects.is_empty() && !whole {
        return answer::bytes(200, format!("{opening}null}}").into_bytes(), call.accepted.encoding);
    }
    let items = Items {
        first: Some(format!("{opening}[").into_bytes()),
        objects: Vec::new().into_iter(),
        begun: false,
        ended: false,
        item: match whole {
            true if resource.custom.is_some() => Opening::named(&resource.kind, &resource.api_version()),
            true => Opening::bare(),
            false => answer::partial_opening(call.accepted.form),
        },
        whole,
        form: call.accepted.form,
        native: is_native(resource),
        all_spaces: call.space == SpaceScope::All,
        resource: resource.clone(),
        registry: call.shared.registry.clone(),
    };
    if call.accepted.encoding == (Encoding::Json { pretty: false }) {
        return answer::respond(200, "application/json", Body::pieces(items.with(objects)));
    }
    if call.accepted.encoding == Encoding::Protobuf
        && let Some(list) = protobuf::List::new(&version, &kind)
    {
        return protobuf_list(list, items.with(objects), metadata).await;
    }
    let around = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
    let mut listing = Listing::new(around, "items", call.accepted.encoding);
    let mut json = Vec::new();
    for (index, step) in parsed::steps(&objects).enumerate() {
        parsed::let_others_in(index).await;
        for object in step {
            json.clear();
            items.write(&mut json, object);
            listing.push_json(&json);
        }
    }
    listing.finish()
}

/// A list in protobuf. Others are let in between its pieces: a large one takes a while.
async fn protobuf_list(mut list: protobuf::List, mut items: Items, metadata: &Value) -> Response<Body> {
    loop {
        let more = list.fill(|json| {
            let Some(object) = items.objects.next() else { return false };
            items.write(json, &object);
            true
        });
        if !more {
            break;
        }
        tokio::task::yield_now().await;
    }
    let pieces = list.finish(metadata.to_string().as_bytes());
    answer::respond(200, PROTOBUF, Body::pieces(pieces.into_iter()))
}

/// The bytes of a list, made piece by piece.
struct Items {
    first: Option<Vec<u8>>,
    objects: std::vec::IntoIter<Arc<Object>>,
    begun: bool,
    ended: bool,
    item: Opening,
    whole: bool,
    form: Form,
    native: bool,
    all_spaces: bool,
    resource: Arc<Resource>,
    registry: Arc<Registry>,
}

impl Iterator for Items {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut out = self.first.take().unwrap_or_default();
        out.reserve(PIECE.saturating_sub(out.capacity()).min(PIECE));
        while out.len() < PIECE {
            let Some(object) = self.objects.next() else {
                out.extend_from_slice(b"]}");
                self.ended = true;
                break;
            };
            if std::mem::replace(&mut self.begun, true) {
                out.push(b',');
            }
            self.write(&mut out, &object);
        }
        Some(out.into())
    }
}

impl Items {
    fn with(self, objects: Vec<Arc<Object>>) -> Self {
        Self { objects: objects.into_iter(), ..self }
    }

    fn write(&self, out: &mut Vec<u8>, object: &Object) {
        let space = self.all_spaces.then(|| object.key().space());
        match Stored::of(object) {
            Some(stored) if !self.whole && answer::is_whole_metadata(&self.resource) => {
                stored.write_partial(out, &self.item, space);
            }
            Some(stored) if self.whole && self.native => stored.write(out, &self.item, space),
            _ => {
                let mut value = read(&self.registry, &self.resource, object).unwrap_or_default();
                if !self.whole {
                    value = answer::partial(&self.resource, &value, self.form);
                } else if let Value::Object(fields) = &mut value {
                    fields.remove("kind");
                    fields.remove("apiVersion");
                }
                // Writing values to memory cannot fail.
                let _ = serde_json::to_writer(out, &value);
            }
        }
    }
}
