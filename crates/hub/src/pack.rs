//! Packing things into numbered boxes of bounded size, so that what is already in a box stays in it.
//!
//! Guarantees: a thing that had a box keeps it as long as the box can hold it; adding and removing things moves no other. Boxes that
//! nothing is in any more do not appear; their numbers may be used again by new things.

use std::collections::{BTreeMap, BTreeSet};

/// What one box holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The sum of the sizes.
    pub bytes: usize,
    /// The number of things.
    pub count: usize,
}

/// Something to be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<K> {
    /// What identifies it; also what comes back.
    pub key: K,
    /// Its size.
    pub bytes: usize,
    /// The box it had before.
    pub previous: Option<u32>,
}

/// The boxes, and what fits in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<K> {
    /// By number, from 1; in each the things in the order given.
    pub boxes: BTreeMap<u32, Vec<K>>,
    /// Things that are too large for an empty box.
    pub too_large: Vec<K>,
}

/// How many boxes with room are tried for a thing before it gets a new one: packing less tightly is better than trying
/// thousands of nearly full boxes for each of many things.
const TRIES: usize = 16;

/// Packs things, in the order given.
pub fn pack<K: Ord + Copy>(items: &[Item<K>], limits: Limits) -> Packed<K> {
    let mut packing = Packing { limits, used: BTreeMap::new(), open: BTreeSet::new(), next: 1 };
    let mut too_large = Vec::new();
    let mut newcomers = Vec::new();
    let mut placed = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        if item.bytes > limits.bytes || limits.count == 0 {
            too_large.push(item.key);
        } else if let Some(number) = item.previous.filter(|&number| number > 0 && packing.put(number, item.bytes)) {
            placed.push((number, position));
        } else {
            newcomers.push(position);
        }
    }
    for position in newcomers {
        placed.push((packing.put_somewhere(items[position].bytes), position));
    }
    placed.sort_unstable();
    let mut boxes: BTreeMap<u32, Vec<K>> = BTreeMap::new();
    for (number, position) in placed {
        boxes.entry(number).or_default().push(items[position].key);
    }
    Packed { boxes, too_large }
}

struct Packing {
    limits: Limits,
    used: BTreeMap<u32, Limits>,
    /// Boxes that hold something and may have room.
    open: BTreeSet<u32>,
    /// No box below this number is unused.
    next: u32,
}

impl Packing {
    fn put(&mut self, number: u32, bytes: usize) -> bool {
        let used = self.used.entry(number).or_insert(Limits { bytes: 0, count: 0 });
        if used.count == self.limits.count || used.bytes + bytes > self.limits.bytes {
            return false;
        }
        used.count += 1;
        used.bytes += bytes;
        if used.count < self.limits.count && used.bytes < self.limits.bytes {
            self.open.insert(number);
        } else {
            self.open.remove(&number);
        }
        true
    }

    fn put_somewhere(&mut self, bytes: usize) -> u32 {
        let candidates: Vec<_> = self.open.iter().rev().take(TRIES).copied().collect();
        if let Some(&number) = candidates.iter().rev().find(|&&number| self.put(number, bytes)) {
            return number;
        }
        while self.used.contains_key(&self.next) {
            self.next += 1;
        }
        let number = self.next;
        let fits = self.put(number, bytes);
        debug_assert!(fits, "what is too large for an empty box was sorted out");
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs `key:bytes` or `key:bytes@box` and shows the boxes as `box=key,key`.
    fn check(items: &str, limits: Limits, expected: &str) {
        let items: Vec<_> = items
            .split_whitespace()
            .map(|text| {
                let (key, rest) = text.split_once(':').expect("key:bytes");
                let (bytes, previous) =
                    rest.split_once('@').map_or((rest, None), |(bytes, number)| (bytes, Some(number)));
                let previous = previous.map(|number| number.parse().expect("a number"));
                Item { key, bytes: bytes.parse().expect("bytes"), previous }
            })
            .collect();
        let packed = pack(&items, limits);
        let boxes = packed.boxes.iter().map(|(number, keys)| format!("{number}={}", keys.join(",")));
        let large = packed.too_large.iter().map(|key| format!("too large: {key}"));
        assert_eq!(boxes.chain(large).collect::<Vec<_>>().join(" "), expected);
    }

    const TEN: Limits = Limits { bytes: 10, count: 3 };

    #[test]
    fn fills_box_after_box() {
        check("", TEN, "");
        check("a:4 b:4 c:4 d:1", TEN, "1=a,b,d 2=c");
        check("a:1 b:1 c:1 d:1", TEN, "1=a,b,c 2=d");
        check("a:10 b:11 c:1", TEN, "1=a 2=c too large: b");
        check("a:1 b:2", Limits { bytes: 10, count: 1 }, "1=a 2=b");
    }

    #[test]
    fn what_has_a_box_stays() {
        check("0:1 a:4@1 b:4@1 c:4@2", TEN, "1=0,a,b 2=c");
        check("0:3 a:4@1 b:4@1 c:4@2", TEN, "1=a,b 2=0,c");
        check("a:4@1 c:4@2", TEN, "1=a 2=c");
        check("c:4@2 d:9", TEN, "1=d 2=c");
        check("a:0@0 b:1@7", TEN, "7=a,b");
    }

    #[test]
    fn what_outgrew_its_box_moves_alone() {
        check("a:4@1 b:7@1 c:4@2", TEN, "1=a 2=c 3=b");
    }

    #[test]
    fn many_things_of_one_box_each_are_packed_quickly() {
        let items: Vec<_> = (0..200_000_u32).map(|key| Item { key, bytes: 1, previous: None }).collect();
        let packed = pack(&items, Limits { bytes: 10, count: 1 });
        assert_eq!(packed.boxes.len(), items.len());
    }
}
