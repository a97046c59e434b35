//! Which subscriptions match a topic: a tree by the levels of their filters.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use orrery_works::topic::unshared;

use crate::outbox::Outbox;

/// Names a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionId(pub(crate) u64);

/// One subscription of a connection.
#[derive(Clone)]
pub(crate) struct Subscriber {
    pub(crate) session: SessionId,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) at_least_once: bool,
    pub(crate) no_local: bool,
}

/// All subscriptions.
#[derive(Default)]
pub(crate) struct Routes(Node);

#[derive(Default)]
struct Node {
    /// By the next level of the filter, wildcards among them.
    children: HashMap<Box<str>, Node>,
    subscribers: Vec<Subscriber>,
    groups: HashMap<Box<str>, Group>,
}

/// Subscriptions that share their messages.
#[derive(Default)]
struct Group {
    members: Vec<Subscriber>,
    next: AtomicUsize,
}

impl Routes {
    /// Adds a subscription; one of the same connection to the same filter is replaced.
    pub(crate) fn insert(&mut self, filter: &str, subscriber: Subscriber) {
        let (group, filter) = unshared(filter);
        let node = filter.split('/').fold(&mut self.0, |node, level| node.children.entry(level.into()).or_default());
        let members = match group {
            Some(group) => &mut node.groups.entry(group.into()).or_default().members,
            None => &mut node.subscribers,
        };
        members.retain(|known| known.session != subscriber.session);
        members.push(subscriber);
    }

    /// Takes a subscription away.
    pub(crate) fn remove(&mut self, filter: &str, session: SessionId) {
        let (group, filter) = unshared(filter);
        let levels: Vec<&str> = filter.split('/').collect();
        self.0.remove(&levels, group, session);
    }

    /// Everyone who gets a message on this topic, each connection once.
    pub(crate) fn matching(&self, topic: &str, from: SessionId, found: &mut Vec<Subscriber>) {
        found.clear();
        let levels: Vec<&str> = topic.split('/').collect();
        // Wildcards at the beginning do not match topics of the broker's own.
        self.0.find(&levels, topic.starts_with('$'), from, found);
        if found.len() > 1 {
            // Of two subscriptions of one connection, the one with the stronger promise stays.
            found.sort_by_key(|subscriber| (subscriber.session, !subscriber.at_least_once));
            found.dedup_by_key(|subscriber| subscriber.session);
        }
    }
}

impl Node {
    fn find(&self, levels: &[&str], special: bool, from: SessionId, found: &mut Vec<Subscriber>) {
        if let Some(rest) = self.children.get("#").filter(|_| !special) {
            rest.collect(from, found);
        }
        let Some((first, rest)) = levels.split_first() else { return self.collect(from, found) };
        if let Some(child) = self.children.get(*first) {
            child.find(rest, false, from, found);
        }
        if let Some(child) = self.children.get("+").filter(|_| !special) {
            child.find(rest, false, from, found);
        }
    }

    fn collect(&self, from: SessionId, found: &mut Vec<Subscriber>) {
        let wants = |subscriber: &&Subscriber| !subscriber.no_local || subscriber.session != from;
        found.extend(self.subscribers.iter().filter(wants).cloned());
        for group in self.groups.values() {
            let turn = group.next.fetch_add(1, Relaxed) % group.members.len().max(1);
            found.extend(group.members.get(turn).cloned());
        }
    }

    fn remove(&mut self, levels: &[&str], group: Option<&str>, session: SessionId) {
        if let Some((first, rest)) = levels.split_first() {
            let Some(child) = self.children.get_mut(*first) else { return };
            child.remove(rest, group, session);
            if child.is_empty() {
                self.children.remove(*first);
            }
            return;
        }
        let Some(group) = group else { return self.subscribers.retain(|known| known.session != session) };
        if let Some(shared) = self.groups.get_mut(group) {
            shared.members.retain(|known| known.session != session);
            if shared.members.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.subscribers.is_empty() && self.groups.is_empty()
    }
}

/// Why nobody can subscribe to a filter.
pub(crate) fn is_filter(filter: &str) -> bool {
    /// More than any topic of the conversation has, and little enough to look for.
    const MOST_LEVELS: usize = 32;
    let shared = filter.starts_with("$share/");
    let (group, filter) = unshared(filter);
    let group_is_good = match group {
        Some(group) => !group.is_empty() && !group.contains(['+', '#']),
        None => !shared,
    };
    let levels: Vec<&str> = filter.split('/').collect();
    let last = levels.len() - 1;
    let is_level = |(index, level): (usize, &&str)| match *level {
        "+" => true,
        "#" => index == last,
        word => !word.contains(['+', '#']),
    };
    group_is_good && !filter.is_empty() && levels.len() <= MOST_LEVELS && levels.iter().enumerate().all(is_level)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::outbox::{Appetite, Room};

    fn subscriber(session: u64) -> Subscriber {
        let appetite = Appetite { in_flight: 1, max_packet: 1 };
        let outbox = Outbox::new(Room::Awaited(1), appetite, Duration::MAX, Arc::default());
        Subscriber { session: SessionId(session), outbox: Arc::new(outbox), at_least_once: true, no_local: false }
    }

    fn found(routes: &Routes, topic: &str) -> Vec<u64> {
        let mut found = Vec::new();
        routes.matching(topic, SessionId(0), &mut found);
        found.iter().map(|subscriber| subscriber.session.0).collect()
    }

    #[test]
    fn topics_find_their_subscribers() {
        let mut routes = Routes::default();
        let filters = ["a/b", "a/+", "a/#", "#", "+/b", "/a", "+/+/#"];
        for (session, filter) in (1..).zip(filters) {
            routes.insert(filter, subscriber(session));
        }
        assert_eq!(found(&routes, "a/b"), [1, 2, 3, 4, 5, 7]);
        assert_eq!(found(&routes, "a"), [3, 4]);
        assert_eq!(found(&routes, "/a"), [4, 6, 7]);
        assert_eq!(found(&routes, "$SYS/b"), [0; 0]);
        for (session, filter) in (1..).zip(filters) {
            routes.remove(filter, SessionId(session));
        }
        assert!(routes.0.is_empty());
    }

    #[test]
    fn a_connection_gets_a_message_once_and_may_not_want_its_own() {
        let mut routes = Routes::default();
        for filter in ["a/b", "a/+", "a/b"] {
            routes.insert(filter, subscriber(1));
        }
        assert_eq!(found(&routes, "a/b"), [1]);
        routes.insert("a/b", Subscriber { no_local: true, ..subscriber(0) });
        assert_eq!(found(&routes, "a/b"), [1]);
    }

    #[test]
    fn a_group_takes_turns() {
        let mut routes = Routes::default();
        for session in 1..=3 {
            routes.insert("$share/g/a", subscriber(session));
        }
        let turns: Vec<Vec<u64>> = (0..6).map(|_| found(&routes, "a")).collect();
        assert_eq!(turns, [[1], [2], [3], [1], [2], [3]]);
        routes.remove("$share/g/a", SessionId(2));
        assert!(!found(&routes, "a").contains(&2));
    }

    #[test]
    fn impossible_filters() {
        for filter in ["", "a/#/b", "a#", "+a/b", "$share/g", "$share/+/a", "$share//a", "$share/g/", &"a/".repeat(40)]
        {
            assert!(!is_filter(filter), "{filter}");
        }
        for filter in ["a", "/", "+", "#", "a/+/#", "$share/g/a", "$share/g//a/#"] {
            assert!(is_filter(filter), "{filter}");
        }
    }
}
