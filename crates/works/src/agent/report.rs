//! What an agent sends about its works, each status in its place in the order of all.

use std::sync::Arc;

use jiff::Timestamp;
use orrery_api::work::{Condition, DELETED, ManifestWorkStatus};

use super::{Agent, Effect, Key, Known, RESERVE, Record};
use crate::{Cause, Message, Order, Sequence, Status, StatusHash, Version, clock::later, event::Meta};

/// A status that is about to be sent.
pub(super) struct Report {
    pub(super) version: Version,
    pub(super) status: Arc<ManifestWorkStatus>,
    pub(super) hash: StatusHash,
    pub(super) meta: Option<Meta>,
    pub(super) cause: Cause,
}

impl Report {
    /// A report on a work that is gone, and its metadata with it.
    pub(super) fn new(version: Version, status: ManifestWorkStatus, cause: Cause) -> Self {
        let hash = StatusHash::of(&status);
        Self { version, status: Arc::new(status), hash, meta: None, cause }
    }
}

impl Agent {
    /// Sends the status of a work with the version it belongs to, if the cluster has reported one.
    pub(super) fn report(&mut self, key: &Key, cause: Cause, now: Timestamp) {
        let Some(work) = self.works.get(key) else { return };
        let Some(Known { version, status, hash }) = work.status.clone() else { return };
        let report = Report { version, status, hash, meta: work.meta.clone(), cause };
        self.send_status(key, report, now);
    }

    pub(super) fn report_deleted(&mut self, key: &Key, now: Timestamp) {
        let Some(tombstone) = self.tombstones.get(key) else { return };
        let (version, at) = (tombstone.version, tombstone.at);
        let conditions = vec![self.deleted_condition(at)];
        let status = ManifestWorkStatus { conditions, ..ManifestWorkStatus::default() };
        self.send_status(key, Report::new(version, status, Cause::Resync), now);
    }

    pub(super) fn deleted_condition(&self, at: Timestamp) -> Condition {
        Condition {
            r#type: DELETED.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Timestamp::from_second(at.as_second()).ok().map(|at| at.to_string()),
            reason: "ManifestsDeleted".to_owned(),
            message: format!("The manifests are deleted from the cluster {}", self.config.cluster),
            ..Condition::default()
        }
    }

    pub(super) fn send_status(&mut self, key: &Key, report: Report, now: Timestamp) {
        let sequence = Order::Exact(self.next_sequence(now));
        let cluster = self.config.cluster.clone();
        let (source, id) = (key.source.clone(), key.id.clone());
        let Report { version, status, hash, meta, cause } = report;
        let status = Status { source, cluster, id, version, sequence, status, hash, cause, meta };
        self.out.push(Effect::Send(Message::Status(status)));
    }

    /// A sequence above every one used before, whatever the clock says.
    pub(super) fn next_sequence(&mut self, now: Timestamp) -> Sequence {
        self.sequence = self.sequence.next().max(Sequence::at(now));
        if self.sequence > self.reserved {
            self.reserved = Sequence::at(later(self.sequence.time(), RESERVE));
            self.out.push(Effect::Record(Record::Sequence(self.reserved)));
        }
        self.sequence
    }
}
