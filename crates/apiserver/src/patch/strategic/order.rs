//! In which order the items of a merged list stand.

use serde_json::Value;

/// Where an item is in a list: the one with the same key, or the same value where there are no keys.
pub(super) fn index_of(list: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    match key {
        None => list.iter().position(|other| other == item),
        Some(key) => list.iter().position(|other| other.get(key).is_some() && other.get(key) == item.get(key)),
    }
}

/// Each item once, where it stands first.
pub(super) fn deduplicate(items: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

/// The items that a list has too, and those it has not.
pub(super) fn split_by(items: Vec<Value>, list: &[Value], key: Option<&str>) -> (Vec<Value>, Vec<Value>) {
    items.into_iter().partition(|item| index_of(list, item, key).is_some())
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
    patch.sort_by_key(|item| index_of(patch_order, item, key));
    server.sort_by_key(|item| index_of(server_order, item, key));
    let before = |left: &Value, right: &Value| {
        let places = (index_of(server_order, left, key), index_of(server_order, right, key));
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
