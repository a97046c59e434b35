//! Telling what happens to objects, as it happens.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use orrery_store::{Event, Object, ReadError, Revision, WatchError, Watched};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Call,
    get::{POLL, revision, wait_for},
    is_as_stored,
    list::{Filter, select},
    read, rows_of,
};
use crate::{
    answer::{self, Include, TableView},
    body::Body,
    definitions::settled,
    object::{Opening, SPACE_ANNOTATION, Stored},
    objects::Watcher,
    protobuf,
    registry::Resource,
    request::{Encoding, Form, ListOptions, Shape, SpaceScope},
    server::Shared,
    spaces,
    status::Status,
};

/// Answers with a stream of events.
pub(crate) async fn watch(call: &Call) -> Result<Response<Body>, Status> {
    let options = ListOptions { watch: true, ..ListOptions::parse(&call.query, true)? };
    let filter = Filter::parse(call, &options)?;
    let given = revision(&options.resource_version).map_err(Status::internal)?;
    if call.accepted.encoding == Encoding::Yaml {
        return Err(Status::no_acceptable_form(
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        ));
    }
    if call.accepted.form.shape == Shape::MetadataList {
        // No event holds a list: Kubernetes opens the stream and ends it at the first.
        return Ok(answer::respond(200, content_type(call.accepted.encoding), Body::whole("")));
    }
    let initial = match (options.send_initial_events, given) {
        (Some(initial), _) => initial,
        (None, None) => true,
        (None, Some(revision)) => revision == Revision::ZERO,
    };
    // A watch from before the space was made tells of the space from its beginning on, and of nothing else that had its name.
    let begun = spaces::begun(&call.shared, &call.space);
    let mut from = given.unwrap_or_default().max(Revision::new(begun.get().saturating_sub(1)));
    let mut objects = Vec::new();
    if initial {
        if let Some(revision) = given {
            wait_for(&call.shared, revision).await?;
        }
        let everything =
            ListOptions { limit: 0, resource_version: String::new(), version_match: None, ..options.clone() };
        let selection = select(call, &everything, &filter).await?;
        (from, objects) = (selection.revision, selection.objects);
    } else if given.is_none_or(|revision| revision == Revision::ZERO) {
        from = call.shared.store.catch_up().await?;
    }
    let mark_initial_end = initial && options.allow_bookmarks;
    let renderer = Renderer::new(call, filter)?;
    let now = Instant::now();
    let timeout = timeout(&call.shared, options.timeout_seconds);
    let interval = call.shared.config.bookmark_interval;
    let bookmark =
        options.allow_bookmarks.then(|| now + interval.min(timeout.saturating_sub(LAST_BOOKMARK)).max(FIRST_BOOKMARK));
    let feed = Feed {
        renderer,
        from,
        initial: objects.into_iter(),
        mark_initial_end,
        watcher: None,
        deadline: now + timeout,
        bookmark,
        ended: false,
    };
    let body = Body::stream(stream::unfold(feed, |mut feed| async move {
        let bytes = feed.next().await?;
        Some((bytes, feed))
    }));
    Ok(answer::respond(200, content_type(call.accepted.encoding), body))
}

fn content_type(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    }
}

/// How long before its end a watch is told how far it has come, so that the client can go on from there.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// The soonest that is done.
const FIRST_BOOKMARK: Duration = Duration::from_secs(1);

/// The longest that a watch can be wished to last: years.
const LONGEST: Duration = Duration::from_secs(1 << 28);

/// How long a watch lasts. Without a wish of the client's, a while that differs from watch to watch, so that not all end at once.
fn timeout(shared: &Shared, wish: Option<i64>) -> Duration {
    match wish.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0) {
        Some(seconds) => Duration::from_secs(seconds).min(LONGEST),
        None => {
            let least = shared.config.watch_timeout;
            let spread = getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX));
            least.mul_f64(1.0 + spread)
        }
    }
}

/// A watch under way.
struct Feed {
    renderer: Renderer,
    from: Revision,
    initial: std::vec::IntoIter<Arc<Object>>,
    mark_initial_end: bool,
    watcher: Option<Watcher>,
    deadline: Instant,
    bookmark: Option<Instant>,
    ended: bool,
}

/// How many bytes of events are sent at a time.
const PIECE: usize = 64 << 10;
/// How many objects that are there already are read at a time: those to be converted are converted together.
const TOGETHER: usize = 100;

impl Feed {
    async fn next(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.len() < PIECE && self.initial.len() > 0 && !self.ended {
            let added = |object: Arc<Object>| Told { kind: "ADDED", revision: object.modified(), object };
            let told: Vec<Told> = self.initial.by_ref().take(TOGETHER).map(added).collect();
            let written = self.renderer.write(&mut out, || told.clone()).await;
            self.go_on(&mut out, written);
        }
        if self.initial.len() == 0 && !self.ended && std::mem::take(&mut self.mark_initial_end) {
            self.renderer.bookmark(&mut out, self.from, true);
        }
        while out.is_empty() && !self.ended {
            self.wait(&mut out).await;
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// Waits until there is something to tell, or nothing more will be.
    async fn wait(&mut self, out: &mut Vec<u8>) {
        // However much there is to tell.
        if Instant::now() >= self.deadline {
            self.ended = true;
            return;
        }
        let Some(watcher) = &mut self.watcher else {
            return self.begin(out).await;
        };
        let bookmark = self.bookmark.unwrap_or(self.deadline);
        tokio::select! {
            biased;
            watched = watcher.next() => self.tell(out, watched).await,
            () = tokio::time::sleep_until(bookmark.min(self.deadline)) => {
                if Instant::now() < self.deadline
                    && let Some(revision) = watcher.progress()
                {
                    self.renderer.bookmark(out, revision, false);
                    self.bookmark = Some(self.next_bookmark());
                }
            }
        }
    }

    fn next_bookmark(&self) -> Instant {
        let now = Instant::now();
        let regular = now + self.renderer.shared.config.bookmark_interval;
        let last = self.deadline.checked_sub(LAST_BOOKMARK);
        last.filter(|last| *last > now && *last < regular).unwrap_or(regular)
    }

    /// Begins to watch; a revision that has not happened yet is waited for.
    async fn begin(&mut self, out: &mut Vec<u8>) {
        let filter = &self.renderer.filter;
        match self.renderer.shared.store.watch(filter.scope.clone(), filter.labels.indexed.clone(), self.from) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(ReadError::Future { .. }) => tokio::time::sleep(POLL).await,
            Err(ReadError::Compacted { requested, oldest }) => {
                let status = Status::expired(format!("too old resource version: {requested} ({oldest})"));
                self.fail(out, &status);
            }
        }
    }

    async fn tell(&mut self, out: &mut Vec<u8>, watched: Result<Watched, WatchError>) {
        let mut watched = Some(watched);
        while let Some(next) = watched {
            match next {
                Ok(Watched::Event(event)) => {
                    let filter = self.renderer.filter.clone();
                    let written = self.renderer.write(out, || told(&filter, &event).into_iter().collect()).await;
                    self.go_on(out, written);
                }
                Ok(Watched::Progress(_)) => {}
                Err(WatchError::Compacted { requested, oldest }) => {
                    let status = Status::expired(format!("too old resource version: {requested} ({oldest})"));
                    return self.fail(out, &status);
                }
                // The client goes on from the last revision it saw.
                Err(WatchError::TooSlow { .. } | WatchError::Closed) => {
                    self.ended = true;
                    return;
                }
            }
            watched = match &mut self.watcher {
                Some(watcher) if out.len() < PIECE && !self.ended => watcher.try_next().transpose(),
                _ => None,
            };
        }
    }

    /// Ends the watch when something cannot be told: it would be missed.
    fn go_on(&mut self, out: &mut Vec<u8>, written: Result<(), Status>) {
        if let Err(status) = written {
            self.fail(out, &status.into_internal_error());
        }
    }

    fn fail(&mut self, out: &mut Vec<u8>, status: &Status) {
        self.renderer.frame(out, "ERROR", |_, out| out.extend_from_slice(&status.to_json()));
        self.ended = true;
    }
}

/// Something to tell: what has happened to which object.
#[derive(Clone)]
struct Told {
    kind: &'static str,
    object: Arc<Object>,
    revision: Revision,
}

/// What a change is to whoever watches what a filter lets through: objects come into it, change there, and leave.
fn told(filter: &Filter, event: &Event) -> Option<Told> {
    let before = event.previous.as_ref().filter(|object| filter.matches(object));
    let now = Some(&event.object).filter(|object| !object.is_deletion() && filter.matches(object));
    let (kind, object) = match (before, now) {
        (None, Some(object)) => ("ADDED", object),
        (Some(_), Some(object)) => ("MODIFIED", object),
        (Some(previous), None) => ("DELETED", previous),
        (None, None) => return None,
    };
    Some(Told { kind, object: object.clone(), revision: event.revision() })
}

/// Writes events in the form the client asked for.
struct Renderer {
    shared: Arc<Shared>,
    resource: Arc<Resource>,
    filter: Arc<Filter>,
    encoding: Encoding,
    form: Form,
    view: TableView,
    opening: Opening,
    all_spaces: bool,
    /// The space that is watched; empty for all.
    space: String,
}

impl Renderer {
    fn new(call: &Call, filter: Filter) -> Result<Self, Status> {
        let form = call.accepted.form;
        let opening = match form.shape {
            Shape::Metadata => answer::partial_opening(form),
            _ => Opening::named(&call.resource.kind, &call.resource.api_version()),
        };
        Ok(Self {
            shared: call.shared.clone(),
            resource: call.resource.clone(),
            filter: Arc::new(filter),
            encoding: call.accepted.encoding,
            form,
            view: call.table_view()?,
            opening,
            all_spaces: call.space == SpaceScope::All,
            space: call.in_space().to_owned(),
        })
    }

    /// Writes what there is to tell. To find that out, and to show it, objects may have to be converted, which can fail.
    async fn write(&mut self, out: &mut Vec<u8>, find: impl Fn() -> Vec<Told>) -> Result<(), Status> {
        if self.resource.custom.is_none() {
            find().iter().for_each(|told| self.event(out, told, None));
            return Ok(());
        }
        let shown = settled(&self.shared, &self.space, || {
            // All are tried before the first failure counts.
            let shown: Vec<Result<_, Status>> = find().into_iter().map(|told| Ok((self.shown(&told)?, told))).collect();
            shown.into_iter().collect::<Result<Vec<_>, Status>>()
        });
        for (value, told) in shown.await? {
            self.event(out, &told, value);
        }
        Ok(())
    }

    /// A custom resource as its space shows it, if that is not as it is stored.
    fn shown(&self, told: &Told) -> Result<Option<Value>, Status> {
        let Some(stored) = Stored::of(&told.object) else { return Ok(None) };
        let own = self.filter.places.resource_of(&told.object).unwrap_or_else(|| self.resource.clone());
        let as_stored = is_as_stored(&own, &stored) && own.kind == self.resource.kind;
        let whole = matches!(self.form.shape, Shape::Whole);
        if (whole && as_stored) || matches!(self.form.shape, Shape::Metadata) {
            return Ok(None);
        }
        let mut value = read(&self.shared.registry, &own, &told.object)?;
        if self.all_spaces {
            value["metadata"]["annotations"][SPACE_ANNOTATION] = told.object.key().space().into();
        }
        Ok(Some(value))
    }

    /// Writes an event. `shown` is the object if it is not as it is stored.
    fn event(&mut self, out: &mut Vec<u8>, told: &Told, shown: Option<Value>) {
        let Some(stored) = Stored::of(&told.object).map(|stored| stored.at(told.revision)) else { return };
        let space = self.all_spaces.then(|| told.object.key().space());
        self.frame(out, told.kind, |this, out| match this.form.shape {
            Shape::Metadata if answer::is_whole_metadata(&this.resource) => {
                stored.write_partial(out, &this.opening, space);
            }
            Shape::Whole if shown.is_none() && is_as_stored(&this.resource, &stored) => {
                stored.write(out, &this.opening, space);
            }
            _ => {
                let resource = rows_of(&this.shared.registry, &this.resource, this.form, &this.view).clone();
                let read = || read(&this.shared.registry, &resource, &told.object).unwrap_or_default();
                let mut value = shown.unwrap_or_else(read);
                value["metadata"]["resourceVersion"] = told.revision.to_string().into();
                this.value(out, &resource, &value);
            }
        });
    }

    /// Writes an event around an object that is written as JSON.
    fn frame(&mut self, out: &mut Vec<u8>, kind: &str, object: impl FnOnce(&mut Self, &mut Vec<u8>)) {
        if self.encoding == Encoding::Protobuf {
            let mut json = Vec::new();
            object(self, &mut json);
            protobuf::write_event(out, kind, &json);
            return;
        }
        out.extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
        object(self, out);
        out.extend_from_slice(b"}\n");
    }

    fn value(&mut self, out: &mut Vec<u8>, resource: &Resource, object: &Value) {
        let shaped = match self.form.shape {
            Shape::Table => {
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let table = answer::table(resource, std::slice::from_ref(object), &metadata, self.form, &self.view);
                self.view.columns = false;
                table.unwrap_or_default()
            }
            Shape::Metadata => answer::partial(resource, object, self.form),
            _ => object.clone(),
        };
        // Writing values to memory cannot fail.
        let _ = serde_json::to_writer(out, &shaped);
    }

    /// Says how far the watch has come.
    fn bookmark(&mut self, out: &mut Vec<u8>, revision: Revision, initial_end: bool) {
        let mut object = json!({"metadata": {"resourceVersion": revision.to_string()}});
        if initial_end {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let resource = self.resource.clone();
        fill_empty(&resource, &mut object);
        answer::complete(&resource, &mut object);
        // A table has no other place for what a bookmark says.
        let include = std::mem::replace(&mut self.view.include, Include::Metadata);
        self.frame(out, "BOOKMARK", |this, out| this.value(out, &resource, &object));
        self.view.include = include;
    }
}

/// Adds what Kubernetes writes for an object of some kinds of which it knows nothing: what need not be set for a client is
/// zero within the server.
fn fill_empty(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => object["spec"]["replicas"] = 0.into(),
        ("apps", "DaemonSet") => object["metadata"]["annotations"][answer::TEMPLATE_GENERATION] = "0".into(),
        _ => {}
    }
}
