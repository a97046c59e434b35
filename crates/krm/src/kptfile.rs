//! The conditions in a Kptfile, by which the functions of a package tell each other what is done.

use std::collections::HashMap;

use crate::{
    item::Item,
    yaml::{Node, Value},
};

/// Whether something is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is.
    True,
    /// It is not, or not yet.
    False,
    /// Nobody can tell.
    Unknown,
}

impl Status {
    /// As it is written in a Kptfile.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "True" | "true" => Self::True,
            "False" | "false" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// A condition of a package. A Kptfile allows these four fields and no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about; unique in a package.
    pub kind: String,
    /// Whether it holds.
    pub status: Status,
    /// In Nephio's dialect the object that it is reported for.
    pub reason: Option<String>,
    /// For people.
    pub message: Option<String>,
}

impl Condition {
    /// A condition without reason and message.
    pub fn new(kind: impl Into<String>, status: Status) -> Self {
        Self { kind: kind.into(), status, reason: None, message: None }
    }

    /// The same with a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// The same with a message.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    fn from_node(node: &Node) -> Self {
        let text = |key: &str| node.text(&[key]).map(str::to_owned);
        Self {
            kind: text("type").unwrap_or_default(),
            status: Status::parse(node.text(&["status"]).unwrap_or_default()),
            reason: text("reason"),
            message: text("message"),
        }
    }

    fn to_value(&self) -> Value {
        Value::object()
            .with("type", &self.kind)
            .with("status", self.status.as_str())
            .with_some("reason", self.reason.as_ref())
            .with_some("message", self.message.as_ref())
    }

    /// Changes only the fields that differ.
    fn write(&self, node: &mut Node) {
        node.set("status", self.status.as_str());
        for (key, value) in [("reason", &self.reason), ("message", &self.message)] {
            match value {
                Some(value) => node.set(key, value),
                None => node.remove(key),
            };
        }
    }
}

/// The conditions of a Kptfile in order, found by type without a search: a package may have tens of thousands.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Those that were read, in order, then new ones; `None` for one that is removed.
    slots: Vec<Option<Condition>>,
    read: usize,
    changed: Vec<bool>,
    by_kind: HashMap<String, usize>,
    /// Slots of conditions whose type another one had before: by hand or by a merge, and rare.
    repeated: Vec<usize>,
}

impl Conditions {
    pub(crate) fn read(kptfile: &Item) -> Self {
        let mut conditions = Self::default();
        let list = kptfile.get(&["status", "conditions"]);
        for node in list.into_iter().flat_map(Node::elements) {
            conditions.append(Condition::from_node(node));
        }
        conditions.read = conditions.slots.len();
        conditions
    }

    /// The condition of a type.
    #[must_use]
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.slots[*self.by_kind.get(kind)?].as_ref()
    }

    /// Whether the condition of a type is there and true.
    #[must_use]
    pub fn is_true(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition.status == Status::True)
    }

    /// Puts a condition in the place of the one of its type, or at the end. There is only one of a type then.
    pub fn set(&mut self, condition: Condition) {
        self.drop_repeated(&condition.kind);
        match self.by_kind.get(&condition.kind) {
            Some(&slot) => {
                let old = &mut self.slots[slot];
                self.changed[slot] |= old.as_ref() != Some(&condition);
                *old = Some(condition);
            }
            None => self.append(condition),
        }
    }

    /// Removes the condition of a type; says whether there was one.
    pub fn remove(&mut self, kind: &str) -> bool {
        self.drop_repeated(kind);
        let Some(slot) = self.by_kind.remove(kind) else { return false };
        self.slots[slot] = None;
        true
    }

    /// All conditions in order.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.slots.iter().flatten()
    }

    fn drop_repeated(&mut self, kind: &str) {
        for &slot in &self.repeated {
            self.slots[slot].take_if(|condition| condition.kind == kind);
        }
    }

    fn append(&mut self, condition: Condition) {
        if *self.by_kind.entry(condition.kind.clone()).or_insert(self.slots.len()) < self.slots.len() {
            self.repeated.push(self.slots.len());
        }
        self.slots.push(Some(condition));
        self.changed.push(false);
    }

    /// Changed conditions are edited in place, new ones appended; nothing is touched if nothing changed.
    pub(crate) fn write(self, kptfile: &mut Item) {
        let Self { slots, read, changed, .. } = self;
        let removed = slots[..read].iter().any(Option::is_none);
        let edited = changed[..read].iter().any(|changed| *changed);
        if removed || edited {
            let Some(list) = kptfile.node_mut().at_mut(&["status", "conditions"]) else { return };
            for (slot, node) in list.elements_mut().enumerate() {
                if let Some(condition) = slots.get(slot).and_then(Option::as_ref).filter(|_| changed[slot]) {
                    condition.write(node);
                }
            }
            let mut kept = slots[..read].iter();
            list.retain_elements(|_| kept.next().is_none_or(Option::is_some));
        }
        let new: Vec<Value> = slots[read..].iter().flatten().map(Condition::to_value).collect();
        if new.is_empty() {
            return;
        }
        let root = kptfile.node_mut();
        if root.at(&["status", "conditions"]).is_none_or(|list| !list.is_list()) {
            root.set_at(&["status", "conditions"], Value::List(Vec::new()));
        }
        if let Some(list) = root.at_mut(&["status", "conditions"]) {
            new.into_iter().for_each(|condition| list.push(condition));
        }
    }
}
