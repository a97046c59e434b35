//! Watches that also tell of what lies beneath what is stored.

use std::collections::VecDeque;

use orrery_store::{Event, Object, ReadError, Revision, Scope, Selector, WatchError, Watched};

use super::{
    Objects, mark, mark_name,
    templates::{Origin, is_there},
};
use crate::{request::ROOT, spaces};

/// A watch under way. Dropping it ends it.
pub(crate) struct Watcher {
    stored: orrery_store::Watcher,
    beneath: Option<Box<Beneath>>,
}

/// What a watch needs to know of the objects that lie beneath.
struct Beneath {
    objects: Objects,
    scope: Scope,
    selector: Selector,
    /// Tells when the watched spaces come and go.
    spaces: orrery_store::Watcher,
    /// Whether the one space that is watched is gone.
    gone: bool,
    /// What has been told by the store, and by the spaces, and not been passed on.
    next_stored: Option<Watched>,
    next_space: Option<Event>,
    ready: VecDeque<Event>,
}

impl Watcher {
    pub(super) fn new(objects: &Objects, scope: Scope, selector: Selector, from: Revision) -> Result<Self, ReadError> {
        let (group, resource) = scope.of_resource();
        let templates = objects.templates(group, resource);
        let concerned = templates.of(group, resource).iter().any(|template| selector.matches(template.labels()));
        let spaces = match scope.in_space() {
            Some(ROOT) => None,
            Some(space) => spaces::key(space).map(|key| Scope::object(&key)),
            None => concerned.then(spaces::scope),
        };
        let Some(spaces) = spaces else {
            return Ok(Self { stored: objects.store.watch(scope, selector, from)?, beneath: None });
        };
        // An object that lay beneath and did match may be stored and no longer match: only we can tell.
        let told = if concerned { Selector::everything() } else { selector.clone() };
        let beneath = Beneath {
            objects: objects.clone(),
            spaces: objects.store.watch(spaces, Selector::everything(), from)?,
            gone: false,
            scope: scope.clone(),
            selector,
            next_stored: None,
            next_space: None,
            ready: VecDeque::new(),
        };
        Ok(Self { stored: objects.store.watch(scope, told, from)?, beneath: Some(Box::new(beneath)) })
    }

    /// Waits for the next change or progress notification. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Watched, WatchError> {
        loop {
            if let Some(watched) = self.try_next()? {
                return Ok(watched);
            }
            let Some(beneath) = &mut self.beneath else { return self.stored.next().await };
            tokio::select! {
                watched = self.stored.next() => beneath.next_stored = Some(watched?),
                watched = beneath.spaces.next() => beneath.note_space(watched?),
            }
        }
    }

    /// The next change or progress notification if there is one now.
    pub(crate) fn try_next(&mut self) -> Result<Option<Watched>, WatchError> {
        let Some(beneath) = &mut self.beneath else { return self.stored.try_next() };
        loop {
            if let Some(event) = beneath.ready.pop_front() {
                return Ok(Some(Watched::Event(event)));
            }
            if beneath.gone {
                return Err(WatchError::Closed);
            }
            beneath.look(&mut self.stored)?;
            let space_first = match (&beneath.next_stored, &beneath.next_space) {
                (None, None) => return Ok(None),
                (Some(stored), Some(space)) => space.revision() < revision(stored),
                (stored, _) => stored.is_none(),
            };
            if space_first {
                if let Some(event) = beneath.next_space.take() {
                    beneath.tell_of_space(&event);
                }
                continue;
            }
            match beneath.next_stored.take() {
                Some(Watched::Event(event)) => {
                    let seen = beneath.seen(event);
                    beneath.ready.extend(seen);
                }
                progress => return Ok(progress),
            }
        }
    }

    /// The revision up to which this watcher has been told everything, unless something is waiting for it.
    pub(crate) fn progress(&mut self) -> Option<Revision> {
        let Some(beneath) = &mut self.beneath else { return self.stored.progress() };
        let waiting = !beneath.ready.is_empty() || beneath.next_stored.is_some() || beneath.next_space.is_some();
        let (stored, spaces) = (self.stored.progress()?, beneath.spaces.progress()?);
        (!waiting).then(|| stored.min(spaces))
    }
}

fn revision(watched: &Watched) -> Revision {
    match watched {
        Watched::Event(event) => event.revision(),
        Watched::Progress(revision) => *revision,
    }
}

impl Beneath {
    /// Looks what both sides have next. Whichever is told of a change, the other has been told of all before it: so the one
    /// with nothing is asked once more after the other had something.
    fn look(&mut self, stored: &mut orrery_store::Watcher) -> Result<(), WatchError> {
        if self.next_stored.is_none() {
            self.next_stored = stored.try_next()?;
        }
        while self.next_space.is_none()
            && let Some(watched) = self.spaces.try_next()?
        {
            self.note_space(watched);
        }
        if self.next_stored.is_none() {
            self.next_stored = stored.try_next()?;
        }
        Ok(())
    }

    fn note_space(&mut self, watched: Watched) {
        if let Watched::Event(event) = watched {
            self.next_space = Some(event);
        }
    }

    /// With a space come the objects it begins with, and with it they go. When the one space that is watched is gone, so is
    /// the watch.
    fn tell_of_space(&mut self, event: &Event) {
        self.gone = event.object.is_deletion() && self.scope.in_space().is_some();
        let before = event.previous.as_deref().filter(|space| is_there(space));
        let now = Some(&*event.object).filter(|space| is_there(space));
        let (space, comes) = match (before, now) {
            (None, Some(space)) => (space, true),
            (Some(space), None) => (space, false),
            _ => return,
        };
        let Some(origin) = Origin::of(space) else { return };
        let name = space.key().name();
        let at = event.revision();
        let replaced = self.objects.replaced(name, Some(at)).unwrap_or_default();
        let (group, resource) = self.scope.of_resource();
        for template in self.objects.templates(group, resource).of(group, resource) {
            let wanted = |object: &Object| self.scope.contains(object.key()) && self.selector.matches(object.labels());
            let Some(object) = template.object(&origin, name).filter(wanted) else { continue };
            let key = object.key().clone();
            self.ready.push_back(match comes {
                true => Event { object: object.into(), previous: None },
                false if replaced.contains(&mark_name(&key)) => continue,
                false => Event { object: Object::detached(key, at, None).into(), previous: Some(object.into()) },
            });
        }
    }

    /// A change of what is stored, as it looks to whoever did not know that the object was not stored before.
    fn seen(&self, mut event: Event) -> Option<Event> {
        if event.previous.is_none() && !event.object.is_deletion() {
            event.previous = self.replaced_by(&event).map(Into::into);
        }
        let matches = |object: &Object| !object.is_deletion() && self.selector.matches(object.labels());
        let wanted = matches(&event.object) || event.previous.as_deref().is_some_and(matches);
        wanted.then_some(event)
    }

    /// What lay beneath before an object was first stored.
    fn replaced_by(&self, event: &Event) -> Option<Object> {
        let key = event.object.key();
        let templates = self.objects.templates_for(key)?;
        // Marks stay: one that is younger than the object was written with it.
        let mark = self.objects.store.get(&mark(key)?)?;
        if mark.created() < event.object.created() {
            return None;
        }
        let origin = self.objects.origin_at(key.space(), event.revision()).ok()??;
        templates.find(key)?.object(&origin, key.space())
    }
}
