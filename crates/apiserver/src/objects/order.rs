//! Spaces in the order of their objects' keys, read as they are needed.
//!
//! A key has a slash after the name of the space, so that this is not the order of names: `a-b/` comes before `a/`. A name
//! comes after those that go on from it with a character smaller than the slash.

use std::{sync::Arc, vec};

use orrery_store::{Key, ListOptions, Object, ReadError, Revision, Store};

use crate::spaces;

/// How many spaces are read at a time.
const PAGE: usize = 500;

/// The spaces at a revision.
pub(super) struct Spaces<'a> {
    store: &'a Store,
    at: Revision,
    page: std::iter::Peekable<vec::IntoIter<Arc<Object>>>,
    page_size: usize,
    /// The last space that was read, and whether there are more.
    last: Option<Key>,
    more: bool,
    /// Those that come after all that go on from their names. Each goes on from the one before.
    waiting: Vec<Arc<Object>>,
}

impl<'a> Spaces<'a> {
    /// All spaces but those whose objects come before those of `first`.
    pub(super) fn from(store: &'a Store, at: Revision, first: Option<&str>) -> Result<Self, ReadError> {
        Self::in_pages(store, at, first, PAGE)
    }

    fn in_pages(store: &'a Store, at: Revision, first: Option<&str>, page_size: usize) -> Result<Self, ReadError> {
        let mut waiting = Vec::new();
        for name in first.into_iter().flat_map(not_before) {
            let Some(key) = spaces::key(name) else { continue };
            waiting.extend(store.get_at(&key, at)?);
        }
        // Those that go on from the first come before it: the last that could has a dot and then what is in no name.
        let last = first.and_then(|first| spaces::key(&format!("{first}.~")));
        Ok(Self { store, at, page: Vec::new().into_iter().peekable(), page_size, last, more: true, waiting })
    }

    /// The name of the space that is read next.
    fn peek(&mut self) -> Result<Option<&str>, ReadError> {
        if self.page.peek().is_none() && self.more {
            let after = self.last.as_ref();
            let options = ListOptions { at: Some(self.at), after, limit: self.page_size, ..ListOptions::default() };
            let list = self.store.list(&spaces::scope(), &options)?;
            self.last = list.objects.last().map(|space| space.key().clone());
            self.more = list.more;
            self.page = list.objects.into_iter().peekable();
        }
        Ok(self.page.peek().map(|space| space.key().name()))
    }

    fn find(&mut self) -> Result<Option<Arc<Object>>, ReadError> {
        loop {
            let waits = self.waiting.last().cloned();
            let Some(read) = self.peek()? else { return Ok(self.waiting.pop()) };
            if waits.is_some_and(|waits| !is_first(read, waits.key().name())) {
                return Ok(self.waiting.pop());
            }
            self.waiting.extend(self.page.next());
        }
    }
}

impl Iterator for Spaces<'_> {
    type Item = Result<Arc<Object>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.find().transpose()
    }
}

/// Whether the objects of a space come before those of one with a smaller name.
fn is_first(space: &str, smaller: &str) -> bool {
    space.strip_prefix(smaller).is_some_and(|rest| rest.as_bytes().first().is_some_and(|next| *next < b'/'))
}

/// A name and those before it whose objects come after its own, in their order.
fn not_before(name: &str) -> impl Iterator<Item = &str> {
    let ends = name.char_indices().map(|(end, _)| end).chain([name.len()]);
    ends.map(|end| &name[..end]).filter(move |smaller| *smaller == name || is_first(name, smaller))
}

#[cfg(test)]
mod tests {
    use orrery_store::{Batch, Config, Content, Expect};

    use super::*;

    #[tokio::test]
    async fn spaces_come_in_the_order_of_their_objects_from_any_of_them_on() {
        let mut names = vec!["a", "a-b", "a-b-c", "a-b.c", "a-c", "a.b", "a0", "aa", "ab", "ab-c", "b", "b-b", "c"];
        let store = Store::memory(Config::default()).unwrap();
        for name in &names {
            let put = Batch::new().put(spaces::key(name).unwrap(), Expect::Absent, Content::default());
            store.commit(put).await.unwrap();
        }
        names.sort_by_key(|name| format!("{name}/"));
        let gone = ["a-a", "a-b-b", "a.", "az", "0", "d"];
        for first in names.iter().chain(&gone).copied().map(Some).chain([None]) {
            let place = |name: &str| format!("{name}/");
            let expected: Vec<&str> =
                names.iter().copied().filter(|name| first.is_none_or(|first| place(name) >= place(first))).collect();
            for page_size in [1, 2, 3, 100] {
                let found = Spaces::in_pages(&store, store.revision(), first, page_size).unwrap();
                let found: Vec<String> = found.map(|space| space.unwrap().key().name().to_owned()).collect();
                assert_eq!(found, expected, "from {first:?} by {page_size}");
            }
        }
    }
}
