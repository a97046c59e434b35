//! In which order the items of a merged list stand.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// Where the items of a list are: the first with a key, or with a value where there are no keys.
pub(super) struct Places<'k> {
    key: Option<&'k str>,
    places: HashMap<String, usize>,
}

impl<'k> Places<'k> {
    pub(super) fn of(list: &[Value], key: Option<&'k str>) -> Self {
        let mut found = Self { key, places: HashMap::with_capacity(list.len()) };
        list.iter().enumerate().for_each(|(at, item)| found.add(item, at));
        found
    }

    /// Notes where an item is, unless one like it is noted already.
    pub(super) fn add(&mut self, item: &Value, at: usize) {
        if let Some(identity) = self.identity(item) {
            self.places.entry(identity).or_insert(at);
        }
    }

    /// Where the list has an item like this.
    pub(super) fn find(&self, item: &Value) -> Option<usize> {
        self.places.get(&self.identity(item)?).copied()
    }

    /// What an item is known by; nothing if it has no key.
    fn identity(&self, item: &Value) -> Option<String> {
        match self.key {
            None => Some(item.to_string()),
            Some(key) => item.get(key).map(Value::to_string),
        }
    }
}

/// Each item once, where it stands first.
pub(super) fn deduplicate(mut items: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::with_capacity(items.len());
    items.retain(|item| seen.insert(item.to_string()));
    items
}

/// The items that a list has too, and those it has not.
pub(super) fn split_by(items: Vec<Value>, list: &[Value], key: Option<&str>) -> (Vec<Value>, Vec<Value>) {
    let places = Places::of(list, key);
    items.into_iter().partition(|item| places.find(item).is_some())
}

/// Puts the patch's items into the patch's order and the server's into the server's, and weaves them together: a server's
/// item comes before a patch's item only if it did so before.
pub(super) fn reorder(
    mut patch: Vec<Value>,
    mut server: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    let (patch_places, server_places) = (Places::of(patch_order, key), Places::of(server_order, key));
    patch.sort_by_cached_key(|item| patch_places.find(item));
    server.sort_by_cached_key(|item| server_places.find(item));
    let before = |left: &Value, right: &Value| {
        let places = (server_places.find(left), server_places.find(right));
        matches!(places, (Some(left), Some(right)) if left < right)
    };
    let mut woven = Vec::with_capacity(patch.len() + server.len());
    let (mut patch, mut server) = (patch.into_iter().peekable(), server.into_iter().peekable());
    loop {
        let next = match (server.peek(), patch.peek()) {
            (Some(left), Some(right)) if before(left, right) => server.next(),
            (_, Some(_)) => patch.next(),
            (Some(_), None) => server.next(),
            (None, None) => return woven,
        };
        woven.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each item was once looked for in the whole list, and that for each comparison while sorting.
    #[test]
    fn long_lists_are_put_in_order_by_lookup() {
        let items = |from: usize, to: usize| -> Vec<Value> { (from..to).map(|at| json!({ "name": at })).collect() };
        let server = items(0, 60_000);
        let order: Vec<Value> = server.iter().step_by(2).rev().cloned().collect();
        let (from_patch, from_server) = split_by(server.clone(), &order, Some("name"));
        assert_eq!((from_patch.len(), from_server.len()), (30_000, 30_000));
        let woven = reorder(from_patch, from_server, &order, &server, Some("name"));
        let patched: Vec<&Value> =
            woven.iter().filter(|item| item["name"].as_u64().is_some_and(|at| at % 2 == 0)).collect();
        assert!(woven.len() == 60_000 && patched.into_iter().eq(&order));
        assert_eq!(deduplicate([server.clone(), server.clone()].concat()), server);
    }
}
