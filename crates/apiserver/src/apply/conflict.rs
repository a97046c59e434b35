//! What an apply would change although others own it.

use super::{
    managers::Manager,
    set::{FieldSet, written},
};

/// Fields of others, by their managers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conflicts(Vec<(Manager, FieldSet)>);

/// One field of somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// `conflict with "somebody"`.
    pub(crate) message: String,
    /// The way to the field.
    pub(crate) field: String,
}

impl Conflicts {
    pub(super) fn add(&mut self, manager: &Manager, fields: FieldSet) {
        if !fields.is_empty() {
            self.0.push((manager.clone(), fields));
            self.0.sort_by_cached_key(|(manager, _)| manager.order());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The conflicts about other fields than these.
    pub(super) fn without(&self, fields: &FieldSet) -> Self {
        let mut left = Self::default();
        self.0.iter().for_each(|(manager, set)| left.add(manager, set.difference(fields)));
        left
    }

    /// Each conflict by itself.
    pub(crate) fn each(&self) -> Vec<Conflict> {
        let of = |(manager, fields): &(Manager, FieldSet)| {
            let message = format!("conflict with {}", manager.shown());
            let fields: Vec<String> = fields.paths().iter().map(|path| written(path)).collect();
            fields.into_iter().map(move |field| Conflict { message: message.clone(), field })
        };
        self.0.iter().flat_map(of).collect()
    }

    /// All of them in one text.
    pub(crate) fn message(&self) -> String {
        let all = self.each();
        if let [Conflict { message, field }] = all.as_slice() {
            return format!("Apply failed with 1 conflict: {message}: {field}");
        }
        let mut lines = Vec::new();
        for (manager, fields) in &self.0 {
            lines.push(format!("conflicts with {}:", manager.shown()));
            lines.extend(fields.paths().iter().map(|path| format!("- {}", written(path))));
        }
        format!("Apply failed with {} conflicts: {}", all.len(), lines.join("\n"))
    }
}
