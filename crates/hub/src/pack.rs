//! Packing things into numbered boxes of bounded size, so that what is already in a box stays in it.
//!
//! Guarantees: a thing that had a box keeps it as long as the box can hold it; adding and removing things moves no other. Boxes that
//! nothing is in any more do not appear; their numbers may be used again by new things. A change costs what it touches.

use std::collections::{BTreeMap, BTreeSet};

/// What one box holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The sum of the sizes.
    pub bytes: usize,
    /// The number of things.
    pub count: usize,
}

/// How many boxes with room are tried for a thing before it gets a new one: packing less tightly is better than trying
/// thousands of nearly full boxes for each of many things.
const TRIES: usize = 16;

/// Things in boxes with numbers from 1.
#[derive(Clone, Debug)]
pub struct Boxes<K> {
    limits: Limits,
    things: BTreeMap<K, Thing>,
    boxes: BTreeMap<u32, Content<K>>,
    /// Boxes that may have room.
    open: BTreeSet<u32>,
    /// No box below this number is unused, but for those that may not be used.
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Thing {
    bytes: usize,
    number: u32,
}

#[derive(Clone, Debug)]
struct Content<K> {
    bytes: usize,
    things: BTreeSet<K>,
}

/// What packing changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repacked {
    /// The boxes that something came into or went out of.
    pub boxes: BTreeSet<u32>,
}

impl<K: Ord + Clone> Boxes<K> {
    /// No boxes yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, things: BTreeMap::new(), boxes: BTreeMap::new(), open: BTreeSet::new(), next: 1 }
    }

    /// Things that had these boxes.
    pub fn restored(limits: Limits, things: impl IntoIterator<Item = (K, u32)>) -> Self {
        let mut boxes = Self::new(limits);
        boxes.restore(things);
        boxes
    }

    /// Further things that had these boxes, whatever their sizes: those are not known before they are packed again.
    pub fn restore(&mut self, things: impl IntoIterator<Item = (K, u32)>) {
        for (key, number) in things.into_iter().filter(|(_, number)| *number > 0) {
            if !self.things.contains_key(&key) {
                self.put(key, number, 0);
            }
        }
    }

    /// The box of a thing.
    pub fn number(&self, key: &K) -> Option<u32> {
        self.things.get(key).map(|thing| thing.number)
    }

    /// All boxes.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.boxes.keys().copied()
    }

    /// What is in a box, in order.
    pub fn things(&self, number: u32) -> Option<&BTreeSet<K>> {
        self.boxes.get(&number).map(|content| &content.things)
    }

    /// All things from one on, in order, with their boxes.
    pub fn things_from<'a>(&'a self, start: &K) -> impl Iterator<Item = (&'a K, u32)> {
        self.things.range(start..).map(|(key, thing)| (key, thing.number))
    }

    /// All things, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.things.keys()
    }

    /// Packs things that came or have another size, and takes out those that have none any more. What is too large for an empty
    /// box is in none. New boxes get numbers that may be used.
    pub fn repack(
        &mut self,
        changes: impl IntoIterator<Item = (K, Option<usize>)>,
        may_be_used: impl Fn(u32) -> bool,
    ) -> Repacked {
        let changes: BTreeMap<K, Option<usize>> = changes.into_iter().collect();
        let mut repacked = Repacked::default();
        let mut waiting = Vec::with_capacity(changes.len());
        for (key, bytes) in changes {
            let before = self.things.get(&key).copied();
            if before.is_some_and(|before| Some(before.bytes) == bytes) {
                continue;
            }
            if let Some(before) = before {
                self.take(&key, before);
            }
            waiting.push((key, bytes, before.map(|before| before.number)));
        }
        let mut newcomers = Vec::new();
        for (key, bytes, before) in waiting {
            let bytes = bytes.filter(|&bytes| bytes <= self.limits.bytes && self.limits.count > 0);
            match (bytes, before) {
                (Some(bytes), Some(number)) if self.has_room(number, bytes) => self.put(key, number, bytes),
                (bytes, before) => {
                    repacked.boxes.extend(before);
                    newcomers.extend(bytes.map(|bytes| (key, bytes)));
                }
            }
        }
        for (key, bytes) in newcomers {
            let number = self.room_for(bytes, &may_be_used);
            repacked.boxes.insert(number);
            self.put(key, number, bytes);
        }
        repacked
    }

    fn has_room(&self, number: u32, bytes: usize) -> bool {
        self.boxes.get(&number).is_none_or(|content| {
            content.things.len() < self.limits.count && content.bytes + bytes <= self.limits.bytes
        })
    }

    fn room_for(&mut self, bytes: usize, may_be_used: impl Fn(u32) -> bool) -> u32 {
        let mut candidates: Vec<u32> = self.open.iter().rev().take(TRIES).copied().collect();
        candidates.reverse();
        if let Some(number) = candidates.into_iter().find(|&number| self.has_room(number, bytes)) {
            return number;
        }
        while self.boxes.contains_key(&self.next) {
            self.next += 1;
        }
        (self.next..).find(|number| !self.boxes.contains_key(number) && may_be_used(*number)).unwrap_or(u32::MAX)
    }

    fn put(&mut self, key: K, number: u32, bytes: usize) {
        let content = self.boxes.entry(number).or_insert_with(|| Content { bytes: 0, things: BTreeSet::new() });
        content.bytes += bytes;
        content.things.insert(key.clone());
        if content.things.len() < self.limits.count && content.bytes < self.limits.bytes {
            self.open.insert(number);
        } else {
            self.open.remove(&number);
        }
        self.things.insert(key, Thing { bytes, number });
    }

    fn take(&mut self, key: &K, Thing { bytes, number }: Thing) {
        self.things.remove(key);
        let Some(content) = self.boxes.get_mut(&number) else { return };
        content.things.remove(key);
        content.bytes -= bytes;
        if content.things.is_empty() {
            self.boxes.remove(&number);
            self.open.remove(&number);
            self.next = self.next.min(number);
        } else {
            self.open.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs `key:bytes` or `key:bytes@box` and shows the boxes as `box=key,key`.
    fn check(items: &str, limits: Limits, expected: &str) {
        let items: Vec<(&str, usize, Option<u32>)> = items
            .split_whitespace()
            .map(|text| {
                let (key, rest) = text.split_once(':').expect("key:bytes");
                let (bytes, previous) =
                    rest.split_once('@').map_or((rest, None), |(bytes, number)| (bytes, Some(number)));
                (key, bytes.parse().expect("bytes"), previous.map(|number| number.parse().expect("a number")))
            })
            .collect();
        let had = items.iter().filter_map(|(key, _, previous)| Some((*key, (*previous)?)));
        let mut boxes = Boxes::restored(limits, had);
        boxes.repack(items.iter().map(|(key, bytes, _)| (*key, Some(*bytes))), |_| true);
        assert_eq!(shown(&boxes), expected);
    }

    fn shown(boxes: &Boxes<&str>) -> String {
        let shown = boxes.numbers().map(|number| {
            let things: Vec<&str> = boxes.things(number).expect("a box").iter().copied().collect();
            format!("{number}={}", things.join(","))
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    const TEN: Limits = Limits { bytes: 10, count: 3 };

    #[test]
    fn fills_box_after_box() {
        check("", TEN, "");
        check("a:4 b:4 c:4 d:1", TEN, "1=a,b,d 2=c");
        check("a:1 b:1 c:1 d:1", TEN, "1=a,b,c 2=d");
        check("a:10 b:11 c:1", TEN, "1=a 2=c");
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
        let mut boxes = Boxes::restored(TEN, []);
        boxes.repack([("a", Some(4)), ("b", Some(4)), ("c", Some(9))], |_| true);
        let repacked = boxes.repack([("a", Some(7))], |_| true);
        assert_eq!(repacked.boxes, BTreeSet::from([1, 3]));
        assert_eq!(shown(&boxes), "1=b 2=c 3=a");
    }

    #[test]
    fn a_change_tells_which_boxes_it_touched_and_leaves_the_others() {
        let mut boxes = Boxes::restored(TEN, []);
        let first = boxes.repack(["a", "b", "c", "d"].map(|key| (key, Some(4))), |_| true);
        assert_eq!((first.boxes, shown(&boxes)), (BTreeSet::from([1, 2]), "1=a,b 2=c,d".to_owned()));
        let smaller = boxes.repack([("c", Some(3))], |_| true);
        assert_eq!(smaller, Repacked::default(), "nothing came or went");
        let gone = boxes.repack([("a", None), ("b", None), ("x", None)], |_| true);
        assert_eq!((gone.boxes, shown(&boxes)), (BTreeSet::from([1]), "2=c,d".to_owned()));
        let came = boxes.repack([("e", Some(3)), ("f", Some(9))], |_| true);
        assert_eq!((came.boxes, shown(&boxes)), (BTreeSet::from([1, 2]), "1=f 2=c,d,e".to_owned()));
    }

    #[test]
    fn numbers_that_may_not_be_used_are_left_out() {
        let mut boxes = Boxes::new(TEN);
        boxes.repack(["a", "b", "c"].map(|key| (key, Some(9))), |number| number != 2);
        assert_eq!(shown(&boxes), "1=a 3=b 4=c");
        boxes.repack([("d", Some(9))], |_| true);
        assert_eq!(shown(&boxes), "1=a 2=d 3=b 4=c");
    }

    #[test]
    fn many_things_of_one_box_each_are_packed_quickly() {
        let mut boxes = Boxes::new(Limits { bytes: 10, count: 1 });
        boxes.repack((0..200_000_u32).map(|key| (key, Some(1))), |_| true);
        assert_eq!(boxes.numbers().count(), 200_000);
    }
}
