//! What was decided of a Binding and is not stored yet: its works wait for that.

use std::{collections::BTreeSet, sync::Arc};

use super::{pause::Pause, space::Space};
use crate::delivery::{BindingChange, Ledgers, Settled, WorkChange};

#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) change: Option<BindingChange>,
    pub(super) ledgers: Option<Ledgers>,
    pub(super) works: Vec<WorkChange>,
    /// It was refused, and is tried again after this.
    pub(super) pause: Pause,
}

impl Pending {
    /// Takes the last word about each work.
    fn tell(&mut self, works: Vec<WorkChange>) {
        if !self.works.is_empty() {
            let told: BTreeSet<_> = works.iter().map(WorkChange::id).collect();
            self.works.retain(|change| !told.contains(change.id()));
        }
        self.works.extend(works);
    }

    /// Whether the Binding goes: what is not wanted any more can be told before that is stored.
    pub(super) fn is_removed(&self) -> bool {
        self.change == Some(BindingChange::Removed)
    }
}

impl Space {
    /// Notes what is to be stored and told. What was decided before and is still to be stored is replaced.
    pub(super) fn note_decisions(&mut self, settled: &mut Settled) {
        for (binding, change) in std::mem::take(&mut settled.bindings) {
            let pending = self.pending_of(&binding);
            if change == BindingChange::Removed {
                pending.ledgers = None;
            }
            pending.change = Some(change);
        }
        for (binding, ledgers) in std::mem::take(&mut settled.ledgers) {
            self.pending_of(&binding).ledgers = Some(ledgers);
        }
        let mut works = std::mem::take(&mut settled.works).into_iter().peekable();
        while let Some(change) = works.next() {
            let binding = Arc::clone(change.binding());
            let mut of_it = vec![change];
            while let Some(next) = works.next_if(|next| *next.binding() == binding) {
                of_it.push(next);
            }
            self.pending_of(&binding).tell(of_it);
        }
    }

    /// What is still to be stored of a Binding. It is tried at once, since something else is to be stored now.
    fn pending_of(&mut self, binding: &Arc<str>) -> &mut Pending {
        let pending = self.pending.entry(Arc::clone(binding)).or_default();
        pending.pause = Pause::default();
        pending
    }
}
