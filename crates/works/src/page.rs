//! Lists in pages that fit a broker's packet limit.

use crate::ResourceId;

/// What an entry of a resync list costs besides its resource id: keys, quotes, and a version or a hash.
const ENTRY_BYTES: usize = 128;

/// Cuts a list into pages of at most `limit` bytes, each with at least one entry. No entries give no pages.
pub(crate) fn pages<T>(items: Vec<T>, limit: usize, id: impl Fn(&T) -> &ResourceId) -> Vec<Vec<T>> {
    let mut pages = Vec::new();
    let mut page = Vec::new();
    let mut bytes = 0;
    for item in items {
        let cost = ENTRY_BYTES + id(&item).as_str().len();
        if bytes + cost > limit && !page.is_empty() {
            pages.push(std::mem::take(&mut page));
            bytes = 0;
        }
        bytes += cost;
        page.push(item);
    }
    if !page.is_empty() {
        pages.push(page);
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_order_and_limit() {
        let ids: Vec<ResourceId> = (0..100).map(|n| ResourceId::new(format!("{n:03}")).unwrap()).collect();
        let cut = pages(ids.clone(), 10 * (ENTRY_BYTES + 3), |id| id);
        assert_eq!(cut.len(), 10);
        assert_eq!(cut.concat(), ids);
        assert_eq!(pages(ids.clone(), 1, |id| id).len(), 100);
        assert!(pages(Vec::new(), 1, |id: &ResourceId| id).is_empty());
    }
}
