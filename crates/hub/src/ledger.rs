//! What must outlive a restart of the hub about the works it derives: their ids, versions and content hashes.
//!
//! Flow: whoever renders tells, work by work, what is desired now ([`Ledger::record`]); the ledger answers what the transport has to
//! send, if anything. It is the only place that assigns versions. The agents' word that a deletion is done removes the last trace
//! ([`Ledger::settle`]).
//!
//! Guarantees: the version of an id never goes back and grows exactly when its content changes. A deleted id is never used again: what
//! is wanted anew under the same name gets a new id. A work that cannot be rendered keeps its entry, its version and its last good
//! manifests.
//!
//! Assumptions: changes are made durable before what they answer is sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The name of a work within its cluster: which Binding it comes from, and which part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkName(pub String);

/// The id of a work on the wire.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkId(pub String);

/// The works of one cluster that come from one Binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The works that are desired.
    #[serde(default)]
    live: BTreeMap<WorkName, Entry>,
    /// The versions of works whose deletion is not acknowledged yet.
    #[serde(default)]
    deleted: BTreeMap<WorkId, i32>,
}

/// A work that is desired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its id on the wire.
    pub id: WorkId,
    /// From 1; fits the 32 bits with sign that agents read.
    pub version: i32,
    /// The hash of the manifests and settings that have this version.
    pub hash: String,
    /// The last manifests that could be rendered, compressed; only while the present ones cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<Vec<u8>>,
}

/// What is desired of a work now.
#[derive(Clone, Copy, Debug)]
pub enum Desired<'a> {
    /// Content with this hash.
    Content {
        /// The hash of manifests and settings.
        hash: &'a str,
    },
    /// It cannot be rendered; an agent keeps what it has.
    Broken {
        /// The last good manifests, compressed, when the caller still has them.
        last_good: Option<&'a [u8]>,
    },
    /// Nothing: the work is to go.
    Nothing,
}

/// What has to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The work has new content in this version.
    Spec {
        /// Which work.
        id: WorkId,
        /// Its version now.
        version: i32,
    },
    /// The work is to be deleted.
    Delete {
        /// Which work.
        id: WorkId,
        /// The last version it had.
        version: i32,
    },
}

/// A version counter reached its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("work {0:?} was changed more often than its version can count")]
pub struct VersionsExhausted(WorkName);

impl Ledger {
    /// The works that are desired.
    pub fn live(&self) -> &BTreeMap<WorkName, Entry> {
        &self.live
    }

    /// The works whose deletion is not acknowledged yet, with their last versions.
    pub fn deleted(&self) -> &BTreeMap<WorkId, i32> {
        &self.deleted
    }

    /// Notes what is desired of one work. `new_id` is used when it was not known.
    pub fn record(
        &mut self,
        name: &WorkName,
        desired: Desired<'_>,
        new_id: impl FnOnce() -> WorkId,
    ) -> Result<Option<Change>, VersionsExhausted> {
        match (desired, self.live.get_mut(name)) {
            (Desired::Content { hash }, None) => {
                let entry = Entry { id: new_id(), version: 1, hash: hash.to_owned(), last_good: None };
                let change = Change::Spec { id: entry.id.clone(), version: entry.version };
                self.live.insert(name.clone(), entry);
                Ok(Some(change))
            }
            (Desired::Content { hash }, Some(entry)) => {
                entry.last_good = None;
                if entry.hash == hash {
                    return Ok(None);
                }
                entry.version = entry.version.checked_add(1).ok_or_else(|| VersionsExhausted(name.clone()))?;
                hash.clone_into(&mut entry.hash);
                Ok(Some(Change::Spec { id: entry.id.clone(), version: entry.version }))
            }
            (Desired::Broken { last_good }, Some(entry)) => {
                if let Some(manifests) = last_good {
                    entry.last_good = Some(manifests.to_vec());
                }
                Ok(None)
            }
            (Desired::Nothing, Some(_)) => Ok(self.delete(name)),
            (Desired::Broken { .. } | Desired::Nothing, None) => Ok(None),
        }
    }

    /// An agent said that it no longer has a deleted work. Says whether anything changed.
    pub fn settle(&mut self, id: &WorkId) -> bool {
        self.deleted.remove(id).is_some()
    }

    /// An agent reported a version that was never assigned: the counter continues above it, and the content is sent again.
    pub fn raise(&mut self, name: &WorkName, reported: i32) -> Result<Option<Change>, VersionsExhausted> {
        let Some(entry) = self.live.get_mut(name).filter(|entry| entry.version < reported) else {
            return Ok(None);
        };
        entry.version = reported.checked_add(1).ok_or_else(|| VersionsExhausted(name.clone()))?;
        Ok(Some(Change::Spec { id: entry.id.clone(), version: entry.version }))
    }

    fn delete(&mut self, name: &WorkName) -> Option<Change> {
        let entry = self.live.remove(name)?;
        self.deleted.insert(entry.id.clone(), entry.version);
        Some(Change::Delete { id: entry.id, version: entry.version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger and a counter for new ids.
    #[derive(Default)]
    struct Book {
        ledger: Ledger,
        ids: u32,
    }

    impl Book {
        fn record(&mut self, desired: Desired<'_>) -> String {
            let ids = &mut self.ids;
            let new_id = || {
                *ids += 1;
                WorkId(format!("id{ids}"))
            };
            // Every change goes through the stored form, as after a restart.
            let stored = serde_json::to_string(&self.ledger).expect("JSON");
            self.ledger = serde_json::from_str(&stored).expect("a ledger");
            let change = self.ledger.record(&WorkName("w".into()), desired, new_id).expect("versions left");
            match change {
                None => "nothing".into(),
                Some(Change::Spec { id, version }) => format!("send {} v{version}", id.0),
                Some(Change::Delete { id, version }) => format!("delete {} v{version}", id.0),
            }
        }

        fn content(&mut self, hash: &str) -> String {
            self.record(Desired::Content { hash })
        }
    }

    #[test]
    fn only_changed_content_is_sent() {
        let mut book = Book::default();
        assert_eq!(book.content("a"), "send id1 v1");
        assert_eq!(book.content("a"), "nothing");
        assert_eq!(book.content("b"), "send id1 v2");
        assert_eq!(book.content("a"), "send id1 v3");
    }

    #[test]
    fn a_deleted_id_is_not_used_again() {
        let mut book = Book::default();
        book.content("a");
        assert_eq!(book.record(Desired::Nothing), "delete id1 v1");
        assert_eq!(book.record(Desired::Nothing), "nothing");
        assert_eq!(book.content("a"), "send id2 v1");
        assert_eq!(book.ledger.deleted().len(), 1);
        assert!(book.ledger.settle(&WorkId("id1".into())));
        assert!(!book.ledger.settle(&WorkId("id1".into())));
        assert!(!book.ledger.settle(&WorkId("id2".into())), "what lives is not settled");
    }

    #[test]
    fn what_cannot_be_rendered_keeps_its_entry() {
        let mut book = Book::default();
        assert_eq!(book.record(Desired::Broken { last_good: None }), "nothing", "it was never sent");
        assert!(book.ledger.live().is_empty());
        book.content("a");
        assert_eq!(book.record(Desired::Broken { last_good: Some(b"good") }), "nothing");
        assert_eq!(book.record(Desired::Broken { last_good: None }), "nothing");
        assert_eq!(book.ledger.live()[&WorkName("w".into())].last_good.as_deref(), Some(&b"good"[..]));
        assert_eq!(book.content("a"), "nothing");
        assert_eq!(book.ledger.live()[&WorkName("w".into())].last_good, None);
    }

    #[test]
    fn a_version_nobody_assigned_is_passed() {
        let mut book = Book::default();
        book.content("a");
        let name = WorkName("w".into());
        assert_eq!(book.ledger.raise(&name, 1), Ok(None));
        assert_eq!(book.ledger.raise(&name, 7), Ok(Some(Change::Spec { id: WorkId("id1".into()), version: 8 })));
        assert_eq!(book.content("b"), "send id1 v9");
        assert!(book.ledger.raise(&name, i32::MAX).is_err());
        assert_eq!(book.content("c"), "send id1 v10", "a refused version changes nothing");
    }
}
