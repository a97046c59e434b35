//! What is asked about the states of the objects of a Binding, summed up, so that nobody needs to look at all of them.

use std::collections::{BTreeMap, BTreeSet};

use orrery_api::control::Modulation;

use crate::placement::ObjectId;

#[derive(Debug, Default)]
pub(super) struct Asked {
    /// For how many objects each StatusCollector is named.
    collectors: BTreeMap<String, usize>,
    single: BTreeSet<ObjectId>,
}

impl Asked {
    /// The StatusCollectors that are named for any object.
    pub(super) fn collectors(&self) -> BTreeSet<&str> {
        self.collectors.keys().map(String::as_str).collect()
    }

    /// The objects whose one state is asked for, and not what all clusters say together.
    pub(super) fn single(&self) -> &BTreeSet<ObjectId> {
        &self.single
    }

    pub(super) fn add(&mut self, id: &ObjectId, modulation: &Modulation) {
        for name in &modulation.status_collectors {
            *self.collectors.entry(name.clone()).or_default() += 1;
        }
        if modulation.want_singleton_reported_state && !modulation.want_multi_wec_reported_state {
            self.single.insert(id.clone());
        }
    }

    /// Takes back what was added.
    pub(super) fn remove(&mut self, id: &ObjectId, modulation: &Modulation) {
        for name in &modulation.status_collectors {
            if let Some(count) = self.collectors.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.collectors.remove(name);
                }
            }
        }
        self.single.remove(id);
    }
}
