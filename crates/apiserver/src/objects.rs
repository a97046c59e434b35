//! The objects of all spaces: what is stored, and beneath it what every space begins with.
//!
//! # Flow
//!
//! What a space begins with (roles, bindings, namespaces, flow schemas …) is the same for all spaces and held once, as
//! [`Templates`]. As long as nobody has written to one of these objects in a space, it is made up when it is read: its uid
//! comes from the space's, its times and its revision are those of the space's making. The first write stores it like any
//! object, together with a mark that says that the template no longer counts there. `root` has no templates: there the
//! objects are stored.
//!
//! # Guarantees
//!
//! - Reads, pages, selectors, counts, watches and conditions on versions cannot tell such an object from a stored one.
//! - A space that was only made costs its own object, and nothing else.
//!
//! # Assumptions
//!
//! - Object and mark are written in one batch, the mark last. Marks go only when the whole space does.

mod makers;
mod order;
mod templates;
mod watcher;

use std::{
    cmp::Ordering,
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock},
};

use orrery_store::{
    Batch, CommitError, Committed, Content, Expect, Key, List, ListOptions, Object, ReadError, Revision, Scope,
    Selector, Store, Touch,
};

use self::{
    order::Spaces,
    templates::{Origin, Template},
};
pub(crate) use self::{templates::Templates, watcher::Watcher};
use crate::{registry::Registry, request::ROOT, spaces, status::Status};

/// The objects of all spaces. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct Objects {
    store: Store,
    beginning: Arc<Beginning>,
}

/// What every space begins with now: its config maps tell of certificates, which change once in a while.
struct Beginning {
    registry: Arc<Registry>,
    root_ca: RootCa,
    /// The certificates that are told of in the templates.
    templates: RwLock<(String, Arc<Templates>)>,
}

/// The certificates by which clients know the server.
type RootCa = Arc<dyn Fn() -> String + Send + Sync>;

/// Where the marks are: one for each template that no longer counts in a space.
pub(crate) const MARKS: (&str, &str) = ("core.orrery.io", "replacedtemplates");

impl Objects {
    pub(crate) fn new(store: Store, registry: Arc<Registry>, root_ca: RootCa) -> Result<Self, Status> {
        let told = root_ca();
        let templates = Arc::new(spaces::templates(&registry, &told)?);
        let beginning = Beginning { registry, root_ca, templates: RwLock::new((told, templates)) };
        Ok(Self { store, beginning: Arc::new(beginning) })
    }

    /// What is really stored, and nothing else.
    pub(crate) fn stored(&self) -> &Store {
        &self.store
    }

    /// What every space begins with, up to date for a resource.
    pub(crate) fn templates(&self, group: &str, resource: &str) -> Arc<Templates> {
        let kept = || self.beginning.templates.read().unwrap_or_else(PoisonError::into_inner);
        if (group, resource) != ("", "configmaps") {
            return kept().1.clone();
        }
        let told = (self.beginning.root_ca)();
        if kept().0 != told
            && let Ok(templates) = spaces::templates(&self.beginning.registry, &told)
        {
            let mut kept = self.beginning.templates.write().unwrap_or_else(PoisonError::into_inner);
            *kept = (told, Arc::new(templates));
        }
        kept().1.clone()
    }

    /// What is under a key now.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        if let Some(object) = self.store.get(key) {
            return Some(object);
        }
        let templates = self.templates_for(key)?;
        let template = templates.find(key)?;
        let space = self.store.get(&spaces::key(key.space())?)?;
        let origin = Origin::of(&space)?;
        if self.store.get(&mark(key)?).is_some() {
            // It may have been written this very moment.
            return self.store.get(key);
        }
        template.object(&origin, key.space()).map(Arc::new)
    }

    /// What was under a key at a revision.
    pub(crate) fn get_at(&self, key: &Key, at: Revision) -> Result<Option<Arc<Object>>, ReadError> {
        if let Some(object) = self.store.get_at(key, at)? {
            return Ok(Some(object));
        }
        let Some((templates, mark)) = self.templates_for(key).zip(mark(key)) else { return Ok(None) };
        let Some(template) = templates.find(key) else { return Ok(None) };
        let Some(origin) = self.origin_at(key.space(), at)? else { return Ok(None) };
        let replaced = self.store.get_at(&mark, at)?.is_some();
        Ok(template.object(&origin, key.space()).filter(|_| !replaced).map(Arc::new))
    }

    /// The objects of a scope at one revision, in key order.
    pub(crate) fn list(&self, scope: &Scope, options: &ListOptions<'_>) -> Result<List, ReadError> {
        let list = self.store.list(scope, options)?;
        let (group, resource) = scope.of_resource();
        let templates = self.templates(group, resource);
        let templates = templates.of(group, resource);
        if templates.is_empty() || scope.in_space() == Some(ROOT) {
            return Ok(list);
        }
        let wanted: Vec<&Template> =
            templates.iter().filter(|template| options.selector.matches(template.labels())).collect();
        if wanted.is_empty() {
            return Ok(list);
        }
        // One more than asked for tells whether there are more.
        let enough = if options.limit == 0 { usize::MAX } else { options.limit.saturating_add(1) };
        let (mut lying, mut left_out) = (Vec::new(), 0);
        for space in self.spaces_at(scope, options.after, list.revision)? {
            let space = space?;
            if lying.len() >= enough && !options.count_rest {
                break;
            }
            if !templates::is_there(&space) {
                continue;
            }
            let replaced = self.replaced(space.key().name(), Some(list.revision))?;
            if lying.len() >= enough && replaced.is_empty() {
                // Once there are enough, a space is wholly in the scope and after what was seen.
                left_out += wanted.len();
                continue;
            }
            for template in &wanted {
                let Some(key) = template.key(space.key().name()) else { continue };
                let wanted = scope.contains(&key) && options.after.is_none_or(|after| key > *after);
                if wanted && !replaced.contains(mark_name(&key).as_str()) {
                    if lying.len() < enough {
                        lying.push(Lying { key, template, space: space.clone() });
                    } else {
                        left_out += 1;
                    }
                }
            }
        }
        Ok(merge(list, lying, left_out, options))
    }

    /// Watches a scope for changes after a revision that concern objects the selector matches, or matched before.
    pub(crate) fn watch(&self, scope: Scope, selector: Selector, from: Revision) -> Result<Watcher, ReadError> {
        Watcher::new(self, scope, selector, from)
    }

    /// Commits a batch: all of its operations or none.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let begun = batch.operations().filter(|(key, ..)| self.templates_for(key).is_some());
        let begun: Vec<(Key, Expect, Touch)> = begun.map(|(key, expect, touch)| (key.clone(), expect, touch)).collect();
        let mut pending = batch;
        for (key, expect, touch) in &begun {
            let Some((templates, mark)) = self.templates_for(key).zip(mark(key)) else { continue };
            let Some(template) = templates.find(key) else { continue };
            if self.store.get(&mark).is_some() {
                continue;
            }
            let Some(space) = spaces::key(key.space()).and_then(|space| self.store.get(&space)) else { continue };
            let Some(origin) = Origin::of(&space) else { continue };
            // Nothing may come into a space that is going away.
            if !pending.operations().any(|(other, ..)| other == space.key()) {
                pending = pending.check(space.key().clone(), Expect::At(space.modified()));
            }
            pending = match touch {
                // It was stored before there was a template.
                Touch::Check if self.store.get(key).is_some() => pending,
                _ if self.store.get(key).is_some() => pending.put(mark, Expect::Absent, Content::default()),
                Touch::Check => pending.expecting(key, beneath(*expect, &origin)).check(mark, Expect::Absent),
                Touch::Put => {
                    pending.expecting(key, beneath(*expect, &origin)).put(mark, Expect::Absent, Content::default())
                }
                Touch::Delete if !expect.holds(Some(origin.revision())) => pending,
                Touch::Delete => {
                    let stored = self.store_template(key, template.content(&origin), mark, &space).await?;
                    pending.expecting(key, Expect::At(stored))
                }
            };
        }
        self.store.commit(pending).await
    }

    /// Stores an object as the template says, so that it can be removed, while its space stays as it is. Returns its
    /// revision.
    async fn store_template(
        &self,
        key: &Key,
        content: Content,
        mark: Key,
        space: &Object,
    ) -> Result<Revision, CommitError> {
        let batch = Batch::new()
            .put(key.clone(), Expect::Absent, content)
            .put(mark, Expect::Absent, Content::default())
            .check(space.key().clone(), Expect::At(space.modified()));
        let committed = self.store.commit(batch).await?;
        Ok(committed.revisions.first().copied().flatten().unwrap_or(committed.revision))
    }

    /// Waits until reads see everything that was committed before this call.
    pub(crate) async fn catch_up(&self) -> Result<Revision, CommitError> {
        self.store.catch_up().await
    }

    /// The objects that name this uid among their owners now. No template has an owner.
    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<Object>> {
        self.store.owned_by(uid)
    }

    /// The resources that a space can have objects of, as (group, resource).
    pub(crate) fn resources_in(&self, space: &str) -> Vec<(String, String)> {
        let mut resources = self.store.resources_in(space);
        if space != ROOT {
            let owned = |(group, resource): (&str, &str)| (group.to_owned(), resource.to_owned());
            resources.extend(self.templates("", "").resources().map(owned));
            resources.sort_unstable();
            resources.dedup();
        }
        resources
    }

    /// The templates, if there is one of this object, whether or not it still counts.
    fn templates_for(&self, key: &Key) -> Option<Arc<Templates>> {
        if key.space() == ROOT {
            return None;
        }
        let templates = self.templates(key.group(), key.resource());
        templates.find(key).is_some().then_some(templates)
    }

    /// Which templates no longer count in a space, by the names of their marks.
    pub(crate) fn replaced(&self, space: &str, at: Option<Revision>) -> Result<HashSet<String>, ReadError> {
        let (group, resource) = MARKS;
        if self.last_replaced(space) == Revision::ZERO {
            return Ok(HashSet::new());
        }
        let options = ListOptions { at, ..ListOptions::default() };
        let marks = self.store.list(&Scope::space(group, resource, space), &options)?;
        Ok(marks.objects.iter().map(|mark| mark.key().name().to_owned()).collect())
    }

    /// When a template was last said to count no longer in a space.
    pub(crate) fn last_replaced(&self, space: &str) -> Revision {
        let (group, resource) = MARKS;
        self.store.last_change(group, resource, space)
    }

    /// What the objects of a space began as at a revision, if it was there.
    fn origin_at(&self, space: &str, at: Revision) -> Result<Option<Origin>, ReadError> {
        let Some(key) = spaces::key(space) else { return Ok(None) };
        Ok(self.store.get_at(&key, at)?.and_then(|space| Origin::of(&space)))
    }

    /// The spaces a scope lies in, in the order of their objects' keys, without those whose objects all come before `after`.
    fn spaces_at(
        &self,
        scope: &Scope,
        after: Option<&Key>,
        at: Revision,
    ) -> Result<impl Iterator<Item = Result<Arc<Object>, ReadError>>, ReadError> {
        let (mut one, mut all) = (None, None);
        match scope.in_space() {
            Some(space) => one = spaces::key(space).map(|key| self.store.get_at(&key, at)).transpose()?.flatten(),
            None => all = Some(Spaces::from(&self.store, at, after.map(Key::space))?),
        }
        Ok(one.map(Ok).into_iter().chain(all.into_iter().flatten()))
    }
}

/// An object that is not stored, and is made when it is needed.
struct Lying<'a> {
    key: Key,
    template: &'a Template,
    space: Arc<Object>,
}

/// What must hold of the store for something to hold of an object that lies beneath it.
fn beneath(expect: Expect, origin: &Origin) -> Expect {
    match expect.holds(Some(origin.revision())) {
        true => Expect::Absent,
        // In the store there is nothing, so that this cannot hold.
        false => Expect::Present,
    }
}

/// The mark that says that the template of an object no longer counts.
fn mark(key: &Key) -> Option<Key> {
    let (group, resource) = MARKS;
    Key::new(group, resource, key.space(), "", &mark_name(key)).ok()
}

/// Whether a key is that of a mark.
pub(crate) fn is_mark(key: &Key) -> bool {
    (key.group(), key.resource()) == MARKS
}

/// The object whose template no longer counts because of a mark.
pub(crate) fn marked(mark: &Key) -> Option<Key> {
    let mut parts = mark.name().splitn(4, '|');
    let [group, resource, namespace, name] = std::array::from_fn(|_| parts.next());
    Key::new(group?, resource?, mark.space(), namespace?, name?).ok()
}

fn mark_name(key: &Key) -> String {
    local_name(key.group(), key.resource(), key.namespace(), key.name())
}

/// What names an object within its space, and its mark. None of the parts before the last has a `|`.
pub(crate) fn local_name(group: &str, resource: &str, namespace: &str, name: &str) -> String {
    format!("{group}|{resource}|{namespace}|{name}")
}

/// Puts what lies beneath between what is stored, up to the limit. Both are in key order; `left_out` more lie after these.
fn merge(list: List, lying: Vec<Lying<'_>>, left_out: usize, options: &ListOptions<'_>) -> List {
    let limit = if options.limit == 0 { usize::MAX } else { options.limit };
    let all = list.objects.len() + list.rest.unwrap_or_default() + lying.len() + left_out;
    let mut stored = list.objects.into_iter().peekable();
    let mut lying = lying.into_iter().peekable();
    let mut objects = Vec::new();
    while objects.len() < limit {
        let order = match (stored.peek(), lying.peek()) {
            (None, None) => break,
            (Some(object), Some(next)) => object.key().cmp(&next.key),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        if order == Ordering::Greater {
            let made = lying.next().and_then(|next| next.template.object(&Origin::of(&next.space)?, next.key.space()));
            objects.extend(made.map(Arc::new));
        } else {
            objects.extend(stored.next());
        }
        if order == Ordering::Equal {
            // It was stored before there was a template.
            lying.next();
        }
    }
    let more = list.more || stored.peek().is_some() || lying.peek().is_some();
    let rest = options.count_rest.then(|| if more { all.saturating_sub(objects.len()) } else { 0 });
    List { revision: list.revision, objects, more, rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_template_is_not_stored_in_a_space_that_has_changed() {
        let store = Store::memory(orrery_store::Config::default()).expect("it opens");
        let root_ca: RootCa = Arc::new(String::new);
        let objects = Objects::new(store.clone(), Registry::kubernetes(), root_ca).expect("there are templates");
        let space = spaces::key("a").expect("it is a key");
        let write = async || {
            let batch = Batch::new().put(space.clone(), Expect::Anything, Content::default());
            store.commit(batch).await.expect("the space is written");
            store.get(&space).expect("it is there")
        };
        let (before, now) = (write().await, write().await);
        let key = Key::new("", "serviceaccounts", "a", "default", "default").expect("it is a key");
        let mark = mark(&key).expect("it is a key");
        let late = objects.store_template(&key, Content::default(), mark.clone(), &before).await;
        assert!(matches!(late, Err(CommitError::Conflict { .. })), "{late:?}");
        assert!(store.get(&key).is_none() && store.get(&mark).is_none());
        objects.store_template(&key, Content::default(), mark, &now).await.expect("it is stored");
    }
}
