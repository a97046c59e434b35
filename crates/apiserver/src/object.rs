//! The stored form of an object, and how it becomes an answer without being parsed.
//!
//! Stored is the JSON a client gets, without `kind`, `apiVersion` and `metadata.resourceVersion`, metadata first. The head
//! says where those belong, so that a get or a list copies bytes and puts a few words in between.

mod metadata;

use std::borrow::Cow;

use crate::json;
use orrery_store::{Content, Object, Revision, Segment};
use serde_json::Value;

pub(crate) use metadata::{Metadata, Owner, drop_repeated_owners, finalizers, is_deleting, name, owners, text};

/// The finalizer of an object that is deleted and first lets go of those it owns.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer of an object that is deleted after those it owns.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The stored bytes of an object with what is known about them.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    /// The first segment; all metadata is in it.
    bytes: &'a [u8],
    value: orrery_store::Value<'a>,
    head: Head,
    /// The version of the kind it was written in, where there are several.
    version: &'a str,
    revision: Revision,
}

/// How a custom resource was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    /// The version.
    pub(crate) version: &'a str,
    /// What tells its schema from others.
    pub(crate) mark: u64,
}

/// Where in the stored bytes something can be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    /// After the uid, where the resourceVersion goes.
    splice: u32,
    /// After the opening brace of the annotations; zero if there are none.
    annotations: u32,
    /// At the closing brace of the metadata.
    metadata_end: u32,
    /// Whether the object is being deleted.
    deleting: bool,
    /// What tells the schema it was written by from others; zero if there was none.
    mark: u64,
}

/// The format of heads and values; stored as the first byte of the head.
const FORMAT: u8 = 1;

/// The annotation that tells in a list over all spaces where an object is from. It is never stored.
pub(crate) const SPACE_ANNOTATION: &str = "core.orrery.io/space";

/// How an object begins, before its metadata.
#[derive(Clone, Debug)]
pub(crate) struct Opening(Vec<u8>);

impl Opening {
    /// An object that says what it is.
    pub(crate) fn named(kind: &str, api_version: &str) -> Self {
        Self(format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#).into_bytes())
    }

    /// An item of a list that says it for all.
    pub(crate) fn bare() -> Self {
        Self(b"{".to_vec())
    }
}

impl<'a> Stored<'a> {
    /// The latest version of an object; `None` if its head is from another program.
    pub(crate) fn of(object: &'a Object) -> Option<Self> {
        let bytes = object.value().segments().next()?;
        let (head, version) = Head::decode(object.head())?;
        Some(Self { bytes, value: object.value(), head, version, revision: object.modified() })
    }

    /// The same object as it was changed, or went away, at another revision.
    #[must_use]
    pub(crate) fn at(self, revision: Revision) -> Self {
        Self { revision, ..self }
    }

    /// Writes the whole object. `space` is set in answers over all spaces.
    pub(crate) fn write(&self, out: &mut Vec<u8>, opening: &Opening, space: Option<&str>) {
        self.write_metadata(out, opening, space);
        out.extend_from_slice(&self.bytes[self.head.metadata_end as usize..]);
        self.value.segments().skip(1).for_each(|segment| out.extend_from_slice(segment));
    }

    /// Writes the object's metadata alone, as an object of its own.
    pub(crate) fn write_partial(&self, out: &mut Vec<u8>, opening: &Opening, space: Option<&str>) {
        self.write_metadata(out, opening, space);
        out.extend_from_slice(b"}}");
    }

    /// Writes everything up to the closing brace of the metadata.
    fn write_metadata(&self, out: &mut Vec<u8>, opening: &Opening, space: Option<&str>) {
        let Head { splice, annotations, metadata_end, .. } = self.head;
        let [splice, annotations, metadata_end] = [splice, annotations, metadata_end].map(|at| at as usize);
        out.extend_from_slice(&opening.0);
        out.extend_from_slice(&self.bytes[1..splice]);
        out.extend_from_slice(b",\"resourceVersion\":\"");
        write_number(out, self.revision.get());
        out.push(b'"');
        match space {
            None => out.extend_from_slice(&self.bytes[splice..metadata_end]),
            Some(space) if annotations > 0 => {
                out.extend_from_slice(&self.bytes[splice..annotations]);
                let comma = if self.bytes[annotations] == b'}' { "" } else { "," };
                out.extend_from_slice(format!(r#""{SPACE_ANNOTATION}":"{space}"{comma}"#).as_bytes());
                out.extend_from_slice(&self.bytes[annotations..metadata_end]);
            }
            Some(space) => {
                out.extend_from_slice(&self.bytes[splice..metadata_end]);
                out.extend_from_slice(format!(r#","annotations":{{"{SPACE_ANNOTATION}":"{space}"}}"#).as_bytes());
            }
        }
    }

    /// Whether the object is being deleted.
    pub(crate) fn is_deleting(&self) -> bool {
        self.head.deleting
    }

    /// How many bytes the object takes.
    pub(crate) fn len(&self) -> usize {
        self.value.len()
    }

    /// Whether a word of letters stands anywhere in the object, as a part of it or within a text.
    pub(crate) fn says(&self, word: &str) -> bool {
        let first = word.as_bytes().first();
        let begins = |at: &usize| self.bytes.get(*at) == first && self.bytes[*at..].starts_with(word.as_bytes());
        self.bytes.len() < self.value.len() || (0..self.bytes.len()).any(|at| begins(&at))
    }

    /// The version of its kind that the object was written in; empty where it is the only one.
    pub(crate) fn version(&self) -> &'a str {
        self.version
    }

    /// Whether the object was written by the schema with this mark.
    pub(crate) fn is_marked(&self, mark: u64) -> bool {
        self.head.mark == mark
    }

    /// The object as values without its managers, and the text of those; empty if there are none.
    pub(crate) fn parse_apart(&self, kind: &str, api_version: &str) -> (Value, &'a [u8]) {
        let (before, managers, after) = self.head.apart(self.bytes);
        if managers.is_empty() {
            return (self.parse(kind, api_version), managers);
        }
        let mut text = Vec::with_capacity(self.value.len());
        text.extend_from_slice(before);
        text.extend_from_slice(after);
        self.value.segments().skip(1).for_each(|segment| text.extend_from_slice(segment));
        (self.understood(&text, kind, api_version), managers)
    }

    /// Whether content is what is stored already, but for what is said of managers who own the same.
    pub(crate) fn is_same(&self, content: &Content, own_the_same: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        let Some(((head, _), first)) = Head::decode(&content.head).zip(content.value.first()) else { return false };
        let (before, managers, after) = self.head.apart(self.bytes);
        let (new_before, new_managers, new_after) = head.apart(&first.bytes);
        let others = content.value[1..].iter().map(|segment| segment.bytes.as_slice());
        before == new_before
            && after == new_after
            && self.value.segments().skip(1).eq(others)
            && (managers == new_managers || own_the_same(managers, new_managers))
    }

    fn whole(&self) -> Cow<'a, [u8]> {
        if self.bytes.len() == self.value.len() { Cow::Borrowed(self.bytes) } else { Cow::Owned(self.value.to_vec()) }
    }

    /// The uid, which stands right before the resourceVersion.
    pub(crate) fn uid(&self) -> &'a str {
        let before = &self.bytes[..(self.head.splice as usize).saturating_sub(1)];
        let start = before.iter().rposition(|byte| *byte == b'"').map_or(0, |quote| quote + 1);
        std::str::from_utf8(&before[start..]).unwrap_or_default()
    }

    /// When the object was made, which stands among the first fields of the metadata, before anything a client wrote.
    pub(crate) fn creation_time(&self) -> Option<&'a str> {
        const FIELD: &[u8] = b",\"creationTimestamp\":\"";
        let rest = self.bytes.get(self.head.splice as usize..self.head.metadata_end as usize)?;
        let start = rest.windows(FIELD.len()).position(|window| window == FIELD)? + FIELD.len();
        let length = rest[start..].iter().position(|byte| *byte == b'"')?;
        std::str::from_utf8(&rest[start..start + length]).ok()
    }

    /// The object as values, with kind, apiVersion and resourceVersion. Only writes need this.
    pub(crate) fn parse(&self, kind: &str, api_version: &str) -> Value {
        self.understood(&self.whole(), kind, api_version)
    }

    fn understood(&self, text: &[u8], kind: &str, api_version: &str) -> Value {
        // What is stored was written by us from values; if the disk lied, the object is shown as empty rather than not at all.
        let mut value: Value = serde_json::from_slice(text).unwrap_or_default();
        value["kind"] = kind.into();
        value["apiVersion"] = api_version.into();
        Metadata::of(&mut value).set("resourceVersion", self.revision.to_string());
        value
    }
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        // A remainder of ten fits a byte.
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

impl Head {
    fn encode(self, version: &str) -> Vec<u8> {
        let mut head = vec![FORMAT, u8::from(self.deleting)];
        for at in [self.splice, self.annotations, self.metadata_end] {
            head.extend_from_slice(&at.to_le_bytes());
        }
        if self.mark != 0 || !version.is_empty() {
            head.extend_from_slice(&self.mark.to_le_bytes());
            head.extend_from_slice(version.as_bytes());
        }
        head
    }

    /// The bytes before the managers, the text of those, and the bytes behind. The text is empty if there are none.
    fn apart(self, bytes: &[u8]) -> (&[u8], &[u8], &[u8]) {
        let (start, end) = (self.splice as usize, self.metadata_end as usize);
        // The managers are the last field of the metadata. Labels and annotations of that name hold no list, and quotes within
        // texts are escaped.
        let is_list = |at: usize| bytes.get(at + MANAGERS.len()) == Some(&b'[');
        let is_managers = |at: &usize| bytes[*at] == b',' && bytes[*at..].starts_with(MANAGERS) && is_list(*at);
        match (start..end).find(is_managers) {
            Some(at) => (&bytes[..at], &bytes[at + MANAGERS.len()..end], &bytes[end..]),
            None => (&bytes[..end], &[], &bytes[end..]),
        }
    }

    /// The head, and the version of the kind if it is said.
    fn decode(head: &[u8]) -> Option<(Self, &str)> {
        let [FORMAT, deleting, rest @ ..] = head else { return None };
        let at = |index: usize| Some(u32::from_le_bytes(rest.get(index * 4..index * 4 + 4)?.try_into().ok()?));
        let (mark, version) = match rest.get(12..).and_then(|rest| rest.split_first_chunk::<8>()) {
            Some((mark, version)) => (u64::from_le_bytes(*mark), std::str::from_utf8(version).ok()?),
            None => (0, ""),
        };
        let head = Self { splice: at(0)?, annotations: at(1)?, metadata_end: at(2)?, deleting: *deleting != 0, mark };
        Some((head, version))
    }
}

/// The fields of metadata in the order in which Kubernetes writes them; the resourceVersion comes after the first four.
const BEFORE_SPLICE: [&str; 4] = ["name", "generateName", "namespace", "uid"];
const AFTER_SPLICE: [&str; 9] = [
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// How the managers begin in stored bytes; they are never the first field.
const MANAGERS: &[u8] = b",\"managedFields\":";

/// What is stored for an object.
pub(crate) fn encode(object: &Value) -> Content {
    encode_owned(object, None)
}

/// What is stored for an object of which the managers, where they are given as a text, are kept apart.
pub(crate) fn encode_owned(object: &Value, managers: Option<&[u8]>) -> Content {
    encode_parts(object, managers.unwrap_or_default(), Written { version: "", mark: 0 })
}

/// What is stored for an object of which only metadata has changed.
pub(crate) fn encode_again(object: &Value, before: &Stored<'_>) -> Content {
    encode_as(object, Written { version: before.version, mark: before.head.mark })
}

/// What is stored for a custom resource.
pub(crate) fn encode_as(object: &Value, written: Written<'_>) -> Content {
    encode_parts(object, &[], written)
}

fn encode_parts(object: &Value, managers: &[u8], written: Written<'_>) -> Content {
    let mut bytes = br#"{"metadata":{"#.to_vec();
    let deleting = is_deleting(object);
    let mut head = Head { splice: 0, annotations: 0, metadata_end: 0, deleting, mark: written.mark };
    let empty = Value::Null;
    let metadata = object.get("metadata").unwrap_or(&empty);
    let start = bytes.len();
    for name in BEFORE_SPLICE {
        if let Some(value) = metadata.get(name) {
            write_field(&mut bytes, start, name, value);
        }
    }
    head.splice = offset(&bytes);
    for name in AFTER_SPLICE {
        let Some(value) = metadata.get(name) else { continue };
        let value_at = write_field(&mut bytes, start, name, value);
        if name == "annotations" {
            head.annotations = value_at + 1;
        }
    }
    if !managers.is_empty() {
        bytes.extend_from_slice(MANAGERS);
        bytes.extend_from_slice(managers);
    }
    head.metadata_end = offset(&bytes);
    bytes.push(b'}');
    let fields = object.as_object().into_iter().flatten();
    // Many spaces have equal definitions: what they define is held once.
    let shares = object.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition");
    let mut segments = Vec::new();
    for (name, value) in fields.filter(|(name, _)| is_stored(name)) {
        let shared = shares && name == "spec";
        if shared {
            segments.push(Segment { bytes: std::mem::take(&mut bytes), shared: false });
        }
        // The metadata comes before every other field.
        bytes.push(b',');
        let start = bytes.len();
        write_field(&mut bytes, start, name, value);
        if shared {
            segments.push(Segment { bytes: std::mem::take(&mut bytes), shared: true });
        }
    }
    bytes.push(b'}');
    segments.push(Segment { bytes, shared: false });
    let mut content = Content { value: segments, ..Content::default() }.head(head.encode(written.version));
    content.labels = strings(metadata.get("labels"));
    content.owners = metadata::owners(metadata).map(|owner| owner.uid.to_owned()).collect();
    content.owners.sort_unstable();
    content.owners.dedup();
    content
}

/// Whether two objects, in their complete form, are stored alike but for the times at which their managers changed them.
pub(crate) fn same_but_for_times(old: &Value, new: &Value) -> bool {
    let fields =
        |object: &Value| object.as_object().map_or(0, |fields| fields.keys().filter(|name| is_stored(name)).count());
    let alike = |(name, value): (&String, &Value)| new.get(name) == Some(value);
    let mut stored = old.as_object().into_iter().flatten().filter(|(name, _)| is_stored(name));
    let metadata =
        |name: &str| old.get("metadata").and_then(|it| it.get(name)) == new.get("metadata").and_then(|it| it.get(name));
    fields(old) == fields(new)
        && stored.all(alike)
        && BEFORE_SPLICE.iter().chain(&AFTER_SPLICE).filter(|name| **name != "managedFields").all(|name| metadata(name))
        && same_managers(managers(old), managers(new))
}

/// A copy of an object without its managers, who often take more room than the rest.
pub(crate) fn without_managers(object: &Value) -> Value {
    let Value::Object(members) = object else { return object.clone() };
    let copied = members.iter().map(|(name, value)| {
        let value = match (name.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
                kept.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            _ => value.clone(),
        };
        (name.clone(), value)
    });
    copied.collect()
}

fn managers(object: &Value) -> Option<&[Value]> {
    object.get("metadata")?.get("managedFields")?.as_array().map(Vec::as_slice)
}

/// Whether managers own the same, whenever they came to own it.
fn same_managers(old: Option<&[Value]>, new: Option<&[Value]>) -> bool {
    let alike = |(was, is): (&Value, &Value)| {
        ["manager", "operation", "apiVersion", "subresource", "fieldsV1"]
            .iter()
            .all(|field| was.get(field) == is.get(field))
    };
    match (old, new) {
        (Some(old), Some(new)) => old.len() == new.len() && old.iter().zip(new).all(alike),
        (old, new) => old == new,
    }
}

/// Whether a field is stored as it is: what an object is follows from where it is stored.
fn is_stored(name: &str) -> bool {
    !matches!(name, "kind" | "apiVersion" | "metadata")
}

/// Where the next byte will be. Objects are far smaller than four gigabytes.
fn offset(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Writes a field, and says where its value begins.
fn write_field(bytes: &mut Vec<u8>, start: usize, name: &str, value: &Value) -> u32 {
    if bytes.len() > start {
        bytes.push(b',');
    }
    json::write_text(bytes, name);
    bytes.push(b':');
    let value_at = offset(bytes);
    json::write(bytes, value);
    value_at
}

fn strings(map: Option<&Value>) -> Vec<(String, String)> {
    let fields = map.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use orrery_store::{Batch, Expect, Key, Store};
    use serde_json::json;

    use super::*;

    async fn stored(object: &Value) -> std::sync::Arc<Object> {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let key = Key::parse("/configmaps/root/default/a").unwrap();
        store.commit(Batch::new().put(key.clone(), Expect::Absent, encode(object))).await.unwrap();
        store.get(&key).unwrap()
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn an_answer_is_the_stored_bytes_with_a_few_words_put_in() {
        let object = stored(&json!({
            "kind": "ConfigMap", "apiVersion": "v1", "data": {"k": "v"},
            "metadata": {"name": "a", "uid": "u-1", "labels": {"x": "y"}, "resourceVersion": "7", "annotations": {"b": "c"}},
        }))
        .await;
        let stored = Stored::of(&object).unwrap();
        let opening = Opening::named("ConfigMap", "v1");
        assert_eq!(
            written(|out| stored.write(out, &opening, None)),
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"u-1","resourceVersion":"1","labels":{"x":"y"},"annotations":{"b":"c"}},"data":{"k":"v"}}"#,
        );
        assert_eq!(
            written(|out| stored.write_partial(out, &Opening::bare(), Some("s"))),
            r#"{"metadata":{"name":"a","uid":"u-1","resourceVersion":"1","labels":{"x":"y"},"annotations":{"core.orrery.io/space":"s","b":"c"}}}"#,
        );
        assert_eq!(stored.uid(), "u-1");
        assert_eq!(object.labels().get("x"), Some("y"));
    }

    #[test]
    fn the_version_is_known_of_what_no_schema_has_marked() {
        let key = orrery_store::Key::new("ex.io", "hosts", "root", "", "a").unwrap();
        let content = encode_as(&json!({"metadata": {"name": "a", "uid": "1"}}), Written { version: "v1", mark: 0 });
        let object = Object::detached(key.clone(), Revision::ZERO, Some(content));
        let before = Stored::of(&object).unwrap();
        assert_eq!((before.version(), before.is_marked(0)), ("v1", true));
        let again = Object::detached(key, Revision::ZERO, Some(encode_again(&before.parse("", ""), &before)));
        assert_eq!(Stored::of(&again).unwrap().version(), "v1");
    }

    #[tokio::test]
    async fn managers_can_be_kept_apart() {
        let plain = json!({
            "data": {"managedFields": "x"},
            "metadata": {"name": "a", "uid": "u", "annotations": {"b": ",\"managedFields\":[]", "managedFields": "c"}},
        });
        let list = json!([{"manager": "m", "fieldsV1": {"f:data": {}}}]);
        let mut whole = plain.clone();
        whole["metadata"]["managedFields"] = list.clone();
        assert_eq!(encode_owned(&plain, Some(list.to_string().as_bytes())), encode(&whole));
        assert_eq!(encode_owned(&plain, None), encode(&plain));
        for (object, managers) in [(&whole, list.to_string()), (&plain, String::new())] {
            let object = stored(object).await;
            let (apart, text) = Stored::of(&object).unwrap().parse_apart("K", "v1");
            assert_eq!(std::str::from_utf8(text), Ok(managers.as_str()));
            let mut expected = plain.clone();
            expected["kind"] = "K".into();
            expected["apiVersion"] = "v1".into();
            expected["metadata"]["resourceVersion"] = "1".into();
            assert_eq!(apart, expected);
        }
    }

    #[tokio::test]
    async fn what_is_stored_already_is_known() {
        let object = json!({"data": {"k": "v"}, "metadata": {"name": "a", "uid": "u", "labels": {"x": "y"}}});
        let content = |object: &Value, managers: &str| encode_owned(object, Some(managers.as_bytes()));
        let mut whole = object.clone();
        whole["metadata"]["managedFields"] = json!([{"manager": "m", "time": "1"}]);
        let kept = stored(&whole).await;
        let same = |object: &Value, managers: &str| {
            let later = |_: &[u8], new: &[u8]| new.ends_with(br#""time":"2"}]"#);
            Stored::of(&kept).unwrap().is_same(&content(object, managers), later)
        };
        assert!(same(&object, r#"[{"manager":"m","time":"1"}]"#) && same(&object, r#"[{"manager":"m","time":"2"}]"#));
        assert!(!same(&object, r#"[{"manager":"m","time":"3"}]"#) && !same(&object, ""));
        for (path, value) in [("/data/k", "w"), ("/metadata/labels/x", "z"), ("/metadata/uid", "v")] {
            let mut changed = object.clone();
            *changed.pointer_mut(path).unwrap() = value.into();
            assert!(!same(&changed, r#"[{"manager":"m","time":"1"}]"#), "{path}");
        }
    }

    #[tokio::test]
    async fn a_space_is_put_in_where_there_are_no_annotations() {
        let object = stored(&json!({"metadata": {"name": "a", "uid": "u"}})).await;
        let stored = Stored::of(&object).unwrap();
        assert_eq!(
            written(|out| stored.write(out, &Opening::bare(), Some("s"))),
            r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1","annotations":{"core.orrery.io/space":"s"}}}"#,
        );
        assert_eq!(
            stored.parse("K", "v1"),
            json!({"kind": "K", "apiVersion": "v1", "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}})
        );
    }
}
