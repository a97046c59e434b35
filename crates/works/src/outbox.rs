//! Messages that wait to be sent: one per thing they are about, the newest wins, so waiting never fills memory.

use std::collections::{HashMap, VecDeque};

use crate::{ClusterName, Dialect, Message, ResourceId, SourceId, event::Scope};

/// What a message is about. A newer message about the same thing makes an older one pointless.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    Spec(Option<Dialect>, ResourceId),
    /// An acknowledged deletion and the status of a later life of the same id are two things.
    Status(SourceId, ResourceId, bool),
    SpecResync(Option<SourceId>, Option<ResourceId>),
    StatusResync(Option<Dialect>, Option<ClusterName>, Option<ResourceId>),
    ResyncCompleted(Option<Dialect>, ClusterName),
}

/// The messages of one end that wait for the transport.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    order: VecDeque<Subject>,
    messages: HashMap<Subject, (Option<Dialect>, Message)>,
}

impl Outbox {
    /// Adds a message in the place of an older one about the same thing.
    pub(crate) fn push(&mut self, dialect: Option<Dialect>, message: Message) {
        let subject = subject(dialect, &message);
        if self.messages.insert(subject.clone(), (dialect, message)).is_none() {
            self.order.push_back(subject);
        }
    }

    /// Takes the message that waits longest.
    pub(crate) fn pop(&mut self) -> Option<(Option<Dialect>, Message)> {
        let subject = self.order.pop_front()?;
        self.messages.remove(&subject)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

fn subject(dialect: Option<Dialect>, message: &Message) -> Subject {
    match message {
        Message::Spec(spec) => Subject::Spec(dialect, spec.id.clone()),
        Message::Status(status) => {
            Subject::Status(status.source.clone(), status.id.clone(), status.status.is_deleted())
        }
        Message::SpecResync(resync) => {
            let Scope { listed, after, .. } = resync.scope.clone().unwrap_or_default();
            Subject::SpecResync(listed, after)
        }
        Message::StatusResync(resync) => {
            let first = resync.hashes.first().map(|known| known.id.clone());
            Subject::StatusResync(dialect, resync.cluster.clone(), first)
        }
        Message::ResyncCompleted(completed) => Subject::ResyncCompleted(dialect, completed.cluster.clone()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Cause, Spec, Version, Wish};

    fn deletion(id: &str, version: i64) -> Message {
        Message::Spec(Spec {
            source: "hub1".parse().unwrap(),
            cluster: "cluster1".parse().unwrap(),
            id: id.parse().unwrap(),
            version: Version::new(version).unwrap(),
            wish: Wish::Delete(Timestamp::UNIX_EPOCH),
            cause: Cause::Updated,
            meta: None,
            epoch: None,
            sent: None,
        })
    }

    #[test]
    fn the_newest_message_about_a_work_replaces_older_ones() {
        let mut outbox = Outbox::default();
        for version in 1..=1_000 {
            outbox.push(None, deletion("a", version));
            outbox.push(None, deletion("b", version));
        }
        assert_eq!(outbox.len(), 2);
        assert_eq!(outbox.pop(), Some((None, deletion("a", 1_000))));
        assert_eq!(outbox.pop(), Some((None, deletion("b", 1_000))));
        assert!(outbox.is_empty() && outbox.pop().is_none());
    }
}
