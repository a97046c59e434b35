//! How often the log may speak about one topic, whatever is sent on it.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    time::{Duration, Instant},
};

/// How long lines about one topic are counted together.
const WINDOW: Duration = Duration::from_secs(10);
/// How many lines are written about one topic in that time: enough to see what is wrong, too few to fill a disk.
const MOST_LINES: u32 = 20;
/// How many topics are remembered. Topics are guarded, so that there are few on which anything wrong comes.
const MOST_TOPICS: usize = 1000;

/// What was said about each topic lately. Topics can be long and stand here as hashes.
#[derive(Debug, Default)]
pub(super) struct Complaints(HashMap<u64, Lately>);

#[derive(Debug)]
struct Lately {
    since: Instant,
    said: u32,
    unsaid: u64,
}

impl Complaints {
    /// Whether a line may be written now, and how many were not since the last one.
    pub(super) fn may_say(&mut self, topic: &str, now: Instant) -> Option<u64> {
        let is_over = |lately: &Lately| lately.since + WINDOW <= now;
        let mut hasher = DefaultHasher::new();
        topic.hash(&mut hasher);
        let topic = hasher.finish();
        if self.0.len() >= MOST_TOPICS && !self.0.contains_key(&topic) {
            self.0.retain(|_, lately| !is_over(lately));
            if self.0.len() >= MOST_TOPICS {
                return None;
            }
        }
        let lately = self.0.entry(topic).or_insert(Lately { since: now, said: 0, unsaid: 0 });
        if is_over(lately) {
            (lately.since, lately.said) = (now, 0);
        }
        if lately.said == MOST_LINES {
            lately.unsaid += 1;
            return None;
        }
        lately.said += 1;
        Some(std::mem::take(&mut lately.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_complained_about_so_often() {
        let (mut complaints, start) = (Complaints::default(), Instant::now());
        let mut lines = |topic: &str, at| (0..1000).filter_map(|_| complaints.may_say(topic, at)).collect::<Vec<_>>();
        assert_eq!(lines("a", start), [0; MOST_LINES as usize]);
        assert_eq!(lines("b", start).len(), MOST_LINES as usize, "another topic is another matter");
        assert_eq!(lines("a", start + WINDOW)[..2], [1000 - u64::from(MOST_LINES), 0]);
    }

    #[test]
    fn many_topics_are_no_way_to_fill_the_log_or_memory() {
        let (mut complaints, start) = (Complaints::default(), Instant::now());
        let said = (0..10_000).filter(|topic| complaints.may_say(&topic.to_string(), start).is_some()).count();
        assert_eq!((said, complaints.0.len()), (MOST_TOPICS, MOST_TOPICS));
        assert!(complaints.may_say("another", start + WINDOW).is_some());
    }
}
