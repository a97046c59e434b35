//! Who owns which fields: the list `metadata.managedFields`.

mod fields;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet, hash_map},
};

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::set::FieldSet;
pub(crate) use fields::Fields;

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managers {
    entries: Vec<Entry>,
}

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: Manager,
    /// The version in which the fields are meant.
    pub(crate) api_version: String,
    /// When the manager last changed something, in seconds and UTC.
    pub(crate) time: Option<String>,
    pub(crate) fields: Fields,
}

/// What tells managers apart. One who updates is another in each version; one who applies is not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    /// The version of an update; empty for an apply.
    version: String,
    pub(crate) subresource: String,
}

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// More managers who update than this are not told apart for ever.
const MAX_UPDATERS: usize = 10;
/// The name under which the oldest of too many updaters are kept.
const ANCIENT: &str = "ancient-changes";

impl Manager {
    /// One who applies.
    pub(crate) fn applier(name: &str, subresource: &str) -> Self {
        let (name, subresource) = (or_unknown(name), subresource.to_owned());
        Self { name, operation: Operation::Apply, version: String::new(), subresource }
    }

    /// One who updates in a version.
    pub(crate) fn updater(name: &str, version: &str, subresource: &str) -> Self {
        let (name, subresource) = (or_unknown(name), subresource.to_owned());
        Self { name, operation: Operation::Update, version: version.to_owned(), subresource }
    }

    /// The text by which Kubernetes orders managers.
    pub(super) fn order(&self) -> String {
        let mut fields = String::new();
        if !self.version.is_empty() {
            fields.push_str(&format!(r#","apiVersion":{}"#, Value::from(self.version.as_str())));
        }
        if !self.subresource.is_empty() {
            fields.push_str(&format!(r#","subresource":{}"#, Value::from(self.subresource.as_str())));
        }
        let (name, operation) = (Value::from(self.name.as_str()), self.operation.name());
        format!(r#"{{"manager":{name},"operation":"{operation}"{fields}}}"#)
    }

    /// The manager as messages name it.
    pub(super) fn shown(&self) -> String {
        let mut shown = crate::gotext::quote(&self.name);
        if !self.subresource.is_empty() {
            shown.push_str(&format!(" with subresource {}", crate::gotext::quote(&self.subresource)));
        }
        if self.operation == Operation::Update {
            shown.push_str(&format!(" using {}", self.version));
        }
        shown
    }
}

/// Somebody who does not say who they are.
fn or_unknown(name: &str) -> String {
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Managers {
    /// Reads the list of an object; `None` if it is not one that a server could have written.
    pub(crate) fn read(list: Option<&Value>) -> Option<Self> {
        match list {
            None | Some(Value::Null) => Some(Self::default()),
            Some(Value::Array(entries)) => Self::of(entries.iter().map(Entry::read)),
            Some(_) => None,
        }
    }

    /// Reads the text of a list that was stored; an empty text is none.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let entries: Vec<EntryText<'_>> = serde_json::from_slice(text).ok()?;
        Self::of(entries.into_iter().map(|entry| {
            let fields = entry.fields.map_or_else(Fields::default, |text| Fields::stored(text.get()));
            entry.understood(fields)
        }))
    }

    /// The managers of some entries; of those of one manager the last counts.
    fn of(entries: impl Iterator<Item = Option<Entry>>) -> Option<Self> {
        let mut managers = Self::default();
        let mut places: HashMap<Manager, usize> = HashMap::new();
        for entry in entries {
            let entry = entry?;
            match places.entry(entry.id.clone()) {
                hash_map::Entry::Occupied(place) => managers.entries[*place.get()] = entry,
                hash_map::Entry::Vacant(place) => {
                    place.insert(managers.entries.len());
                    managers.entries.push(entry);
                }
            }
        }
        Some(managers)
    }

    /// The list of an object; none if there are no managers.
    pub(crate) fn write(mut self) -> Option<Value> {
        if self.entries.is_empty() {
            return None;
        }
        self.sort();
        Some(self.entries.iter().map(Entry::write).collect())
    }

    /// The text of the list; empty if there are no managers.
    pub(crate) fn text(mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.sort();
        for entry in &self.entries {
            out.push(if out.is_empty() { b'[' } else { b',' });
            entry.write_text(&mut out);
        }
        if !out.is_empty() {
            out.push(b']');
        }
        out
    }

    /// Whether the managers own the same, whenever they came to own it.
    pub(crate) fn own_the_same(&self, other: &Self) -> bool {
        let alike = |(one, other): (&Entry, &Entry)| {
            one.id == other.id && one.api_version == other.api_version && one.fields == other.fields
        };
        self.entries.len() == other.entries.len() && self.entries.iter().zip(&other.entries).all(alike)
    }

    fn sort(&mut self) {
        fn key(entry: &Entry) -> (Operation, Option<&str>, &str, &str, &str) {
            let Entry { id, api_version, time, .. } = entry;
            (id.operation, time.as_deref(), &id.name, api_version, &id.subresource)
        }
        // Times are written in one form, so that their texts are in their order.
        self.entries.sort_by(|one, other| key(one).cmp(&key(other)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn get(&self, id: &Manager) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == *id)
    }

    /// Puts an entry in the place of the manager's former one. An entry without fields only takes that away.
    pub(crate) fn set(&mut self, entry: Entry) {
        self.entries.retain(|known| known.id != entry.id);
        if !entry.fields.is_empty() {
            self.entries.push(entry);
        }
    }

    /// Adds an entry beside those that are there, unless it has no fields.
    pub(super) fn push(&mut self, entry: Entry) {
        if !entry.fields.is_empty() {
            self.entries.push(entry);
        }
    }

    /// Changes what the managers own; whose change is `None`, or who owns nothing any more, is forgotten.
    pub(crate) fn change(&mut self, mut change: impl FnMut(&mut Entry) -> Option<()>) {
        self.entries.retain_mut(|entry| change(entry).is_some() && !entry.fields.is_empty());
    }

    /// Puts the oldest updaters of a version together until there are not too many.
    pub(crate) fn fold_oldest(&mut self) {
        let is_updater = |at: &usize| self.entries[*at].id.operation == Operation::Update;
        let mut updaters: Vec<usize> = (0..self.entries.len()).filter(is_updater).collect();
        let mut surplus = updaters.len().saturating_sub(MAX_UPDATERS);
        if surplus == 0 {
            return;
        }
        updaters.sort_by_cached_key(|at| (self.entries[*at].time.clone(), self.entries[*at].id.order()));
        let places: HashMap<&Manager, usize> =
            self.entries.iter().enumerate().map(|(at, entry)| (&entry.id, at)).collect();
        let mut oldest: HashMap<&str, usize> = HashMap::new();
        // Of each version those who are put together, the oldest first.
        let mut folds: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for at in updaters {
            if surplus == 0 {
                break;
            }
            let id = &self.entries[at].id;
            let Some(first) = oldest.get(id.version.as_str()) else {
                oldest.insert(&id.version, at);
                continue;
            };
            let bucket = Manager::updater(ANCIENT, &id.version, "");
            if *id == bucket {
                continue;
            }
            let fold = folds.entry(&id.version);
            fold.or_insert_with(|| vec![places.get(&bucket).copied().unwrap_or(*first)]).push(at);
            surplus -= 1;
        }
        let together = |(version, fold): (&&str, &Vec<usize>)| {
            let fields = FieldSet::union_of(fold.iter().map(|at| (*self.entries[*at].fields).clone()).collect()).into();
            let last = fold.last().map(|at| self.entries[*at].clone())?;
            Some(Entry { id: Manager::updater(ANCIENT, version, ""), fields, ..last })
        };
        let made: Vec<Entry> = folds.iter().filter_map(together).collect();
        let gone: HashSet<usize> = folds.into_values().flatten().collect();
        let mut at = 0;
        self.entries.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
        self.entries.extend(made);
    }

    /// Takes an entry out.
    pub(super) fn take(&mut self, id: &Manager) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.id == *id)?;
        Some(self.entries.remove(at))
    }
}

impl Entry {
    fn read(entry: &Value) -> Option<Self> {
        let text = |field: &str| Cow::from(entry.get(field).and_then(Value::as_str).unwrap_or_default());
        EntryText {
            manager: text("manager"),
            operation: text("operation"),
            api_version: text("apiVersion"),
            time: entry.get("time").and_then(Value::as_str).map(Cow::from),
            subresource: text("subresource"),
            fields_type: text("fieldsType"),
            fields: None,
        }
        .understood(FieldSet::parse(entry.get("fieldsV1").unwrap_or(&Value::Null)).ok()?.into())
    }

    fn write_text(&self, out: &mut Vec<u8>) {
        let put = |out: &mut Vec<u8>, before: &str, value: &str| {
            if !value.is_empty() {
                out.extend_from_slice(before.as_bytes());
                // Writing texts to memory cannot fail.
                let _ = serde_json::to_writer(&mut *out, value);
            }
        };
        put(out, r#"{"apiVersion":"#, &self.api_version);
        out.extend_from_slice(br#","fieldsType":"FieldsV1","fieldsV1":"#);
        self.fields.write(out);
        put(out, r#","manager":"#, &self.id.name);
        put(out, r#","operation":"#, self.id.operation.name());
        put(out, r#","subresource":"#, &self.id.subresource);
        put(out, r#","time":"#, self.time.as_deref().unwrap_or_default());
        out.push(b'}');
    }

    fn write(&self) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                entry.insert(name.to_owned(), value.into());
            }
        };
        put("manager", &self.id.name);
        put("operation", self.id.operation.name());
        put("apiVersion", &self.api_version);
        put("time", self.time.as_deref().unwrap_or_default());
        put("subresource", &self.id.subresource);
        put("fieldsType", "FieldsV1");
        entry.insert("fieldsV1".to_owned(), self.fields.to_json());
        Value::Object(entry)
    }
}

/// An entry as it is written.
#[derive(Deserialize)]
struct EntryText<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default, rename = "apiVersion")]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
    #[serde(borrow, default, rename = "fieldsType")]
    fields_type: Cow<'a, str>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

impl EntryText<'_> {
    /// The entry, if it is one that a server could have written.
    fn understood(self, fields: Fields) -> Option<Entry> {
        let api_version = self.api_version.into_owned();
        if api_version.is_empty() || self.fields_type != "FieldsV1" {
            return None;
        }
        let (operation, version) = match self.operation.as_ref() {
            "Apply" => (Operation::Apply, String::new()),
            "Update" => (Operation::Update, api_version.clone()),
            _ => return None,
        };
        let (name, subresource) = (self.manager.into_owned(), self.subresource.into_owned());
        let id = Manager { name, operation, version, subresource };
        Some(Entry { id, api_version, time: self.time.map(Cow::into_owned), fields })
    }
}

/// Whether somebody wants an object to have no managers: an empty list, or one with an empty entry.
pub(crate) fn is_reset(list: Option<&Value>) -> bool {
    match list.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => *only == json!({}),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, time: &str, fields: Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    #[test]
    fn a_list_is_written_in_order() {
        let list = json!([
            entry("b", "Update", "2026-01-01T00:00:01Z", json!({"f:a": {}})),
            entry("a", "Update", "2026-01-01T00:00:02Z", json!({"f:b": {}})),
            entry("z", "Apply", "2026-01-01T00:00:03Z", json!({"f:c": {}})),
            entry("a", "Update", "2026-01-01T00:00:01Z", json!({"f:d": {}})),
        ]);
        // The second `a` is the same manager as the first.
        let written = Managers::read(Some(&list)).unwrap().write().unwrap();
        let names: Vec<&str> = written.as_array().unwrap().iter().map(|it| it["manager"].as_str().unwrap()).collect();
        assert_eq!(names, ["z", "a", "b"]);
        assert_eq!(written[1], list[3]);
        let text = Managers::read(Some(&list)).unwrap().text();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), written);
        let read = Managers::parse(&text).unwrap();
        assert_eq!(Some(&read), Managers::read(Some(&written)).as_ref());
        assert_eq!(read.write(), Some(written));
        assert!(Managers::default().text().is_empty() && Managers::parse(b"").unwrap().is_empty());
    }

    #[test]
    fn a_list_that_no_server_wrote_is_not_read() {
        for broken in [
            json!("x"),
            json!([{}]),
            json!([{"operation": "Apply", "fieldsType": "FieldsV1"}]),
            json!([{"operation": "Apply", "apiVersion": "v1"}]),
            json!([{"operation": "Create", "apiVersion": "v1", "fieldsType": "FieldsV1"}]),
            json!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"nope": {}}}]),
        ] {
            assert_eq!(Managers::read(Some(&broken)), None, "{broken}");
        }
        assert_eq!(Managers::read(Some(&json!([]))), Some(Managers::default()));
        assert!(is_reset(Some(&json!([]))) && is_reset(Some(&json!([{}]))));
        assert!(!is_reset(None) && !is_reset(Some(&Value::Null)) && !is_reset(Some(&json!([{"manager": "a"}]))));
    }

    /// Each of these was once looked for among all the others, and what was put together was copied for each.
    #[test]
    fn very_many_updaters_are_put_together_at_once() {
        let name = |at: usize| format!("m{at:05}");
        let updater = |at: usize| entry(&name(at), "Update", "2026-01-01T00:00:00Z", json!({format!("f:{at:05}"): {}}));
        let list: Vec<Value> = (0..30_000).map(updater).collect();
        let mut managers = Managers::read(Some(&Value::from(list))).unwrap();
        managers.fold_oldest();
        assert_eq!(managers.entries().len(), MAX_UPDATERS);
        let folded = managers.get(&Manager::updater(ANCIENT, "v1", "")).unwrap();
        assert_eq!(folded.fields.paths().len(), 30_000 - MAX_UPDATERS + 1);
    }

    #[test]
    fn what_was_put_together_before_grows() {
        let time = |second: usize| format!("2026-01-01T00:00:{second:02}Z");
        let list: Vec<Value> = (0..12)
            .map(|at| entry(&format!("m{at}"), "Update", &time(at), json!({format!("f:{at}"): {}})))
            .chain([entry(ANCIENT, "Update", &time(5), json!({"f:x": {}}))])
            .collect();
        let mut managers = Managers::read(Some(&Value::from(list))).unwrap();
        managers.fold_oldest();
        assert_eq!(managers.entries().len(), MAX_UPDATERS);
        let folded = managers.get(&Manager::updater(ANCIENT, "v1", "")).unwrap();
        assert_eq!(folded.fields.to_json(), json!({"f:1": {}, "f:2": {}, "f:3": {}, "f:x": {}}));
        assert_eq!(folded.time, Some(time(3)));
        assert!(managers.get(&Manager::updater("m0", "v1", "")).is_some(), "the oldest stays beside it");
    }

    #[test]
    fn the_oldest_of_too_many_updaters_are_put_together() {
        let time = |second: usize| format!("2026-01-01T00:00:{second:02}Z");
        let list: Vec<Value> = (0..12)
            .map(|at| entry(&format!("m{at}"), "Update", &time(at), json!({format!("f:{at}"): {}})))
            .chain([entry("applier", "Apply", &time(0), json!({"f:x": {}}))])
            .collect();
        let mut managers = Managers::read(Some(&Value::from(list))).unwrap();
        managers.fold_oldest();
        assert_eq!(managers.entries().len(), MAX_UPDATERS + 1);
        let folded = managers.get(&Manager::updater(ANCIENT, "v1", "")).unwrap();
        assert_eq!(folded.fields.to_json(), json!({"f:0": {}, "f:1": {}, "f:2": {}}));
        assert_eq!(folded.time, Some(time(2)));
    }
}
