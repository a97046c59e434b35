//! Formats of names that Kubernetes knows, and what is wrong with a text that has another.

use super::{Outcome, Run, no_overload, url::Url};
use crate::{time, value::Value};

/// A format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFormat(&'static Format);

#[derive(Debug, PartialEq, Eq)]
struct Format {
    name: &'static str,
    kind: Kind,
    /// The length of the pattern behind it, by which it costs.
    pattern: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Label,
    LabelPrefix,
    Subdomain,
    SubdomainPrefix,
    Label1035,
    Label1035Prefix,
    QualifiedName,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

const FORMATS: &[Format] = &[
    Format { name: "dns1123Label", kind: Kind::Label, pattern: 30 },
    Format { name: "dns1123Subdomain", kind: Kind::Subdomain, pattern: 60 },
    Format { name: "dns1035Label", kind: Kind::Label1035, pattern: 30 },
    Format { name: "qualifiedName", kind: Kind::QualifiedName, pattern: 60 },
    Format { name: "dns1123LabelPrefix", kind: Kind::LabelPrefix, pattern: 30 },
    Format { name: "dns1123SubdomainPrefix", kind: Kind::SubdomainPrefix, pattern: 60 },
    Format { name: "dns1035LabelPrefix", kind: Kind::Label1035Prefix, pattern: 30 },
    Format { name: "labelValue", kind: Kind::LabelValue, pattern: 40 },
    Format { name: "uri", kind: Kind::Uri, pattern: 1100 },
    Format { name: "uuid", kind: Kind::Uuid, pattern: 73 },
    Format { name: "byte", kind: Kind::Byte, pattern: 83 },
    Format { name: "date", kind: Kind::Date, pattern: 89 },
    Format { name: "datetime", kind: Kind::DateTime, pattern: 89 },
];

impl NamedFormat {
    fn find(name: &str) -> Option<Self> {
        FORMATS.iter().find(|format| format.name == name).map(Self)
    }

    /// The length of the pattern behind it.
    pub(crate) fn pattern_length(self) -> u64 {
        self.0.pattern
    }

    fn problems(self, text: &str) -> Vec<String> {
        let plain = |holds: bool, message: &str| if holds { Vec::new() } else { vec![message.to_owned()] };
        match self.0.kind {
            Kind::Label => label(text),
            Kind::LabelPrefix => label(&without_dash(text)),
            Kind::Subdomain => subdomain(text),
            Kind::SubdomainPrefix => subdomain(&without_dash(text)),
            Kind::Label1035 => label_1035(text),
            Kind::Label1035Prefix => label_1035(&without_dash(text)),
            Kind::QualifiedName => qualified_name(text),
            Kind::LabelValue => label_value(text),
            Kind::Uri => Url::parse(text).err().into_iter().collect(),
            Kind::Uuid => plain(is_uuid(text), "does not match the UUID format"),
            Kind::Byte => plain(is_base64(text), "invalid base64"),
            Kind::Date => plain(time::parse_date(text).is_some(), "invalid date"),
            Kind::DateTime => plain(time::parse_timestamp(text).is_ok(), "invalid datetime"),
        }
    }
}

pub(super) const TABLE: &[(&str, Run)] = &[
    ("format.named", |args| match args {
        [Value::String(name)] => {
            let found = NamedFormat::find(name.as_ref()).map(|format| std::sync::Arc::new(Value::Format(format)));
            Ok(Value::Optional(found))
        }
        _ => no_overload(),
    }),
    ("validate", |args| match args {
        [Value::Format(format), Value::String(text)] => {
            let problems = format.problems(text.as_ref());
            if problems.is_empty() {
                return Ok(Value::Optional(None));
            }
            Ok(Value::some(Value::list(problems.into_iter().map(Value::text).collect())))
        }
        _ => no_overload(),
    }),
    ("format.dns1123Label", |_| constant("dns1123Label")),
    ("format.dns1123Subdomain", |_| constant("dns1123Subdomain")),
    ("format.dns1035Label", |_| constant("dns1035Label")),
    ("format.qualifiedName", |_| constant("qualifiedName")),
    ("format.dns1123LabelPrefix", |_| constant("dns1123LabelPrefix")),
    ("format.dns1123SubdomainPrefix", |_| constant("dns1123SubdomainPrefix")),
    ("format.dns1035LabelPrefix", |_| constant("dns1035LabelPrefix")),
    ("format.labelValue", |_| constant("labelValue")),
    ("format.uri", |_| constant("uri")),
    ("format.uuid", |_| constant("uuid")),
    ("format.byte", |_| constant("byte")),
    ("format.date", |_| constant("date")),
    ("format.datetime", |_| constant("datetime")),
];

fn constant(name: &str) -> Outcome<'static> {
    NamedFormat::find(name).map_or_else(no_overload, |format| Ok(Value::Format(format)))
}

/// A prefix may end in a dash, because something follows.
fn without_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) => format!("{rest}a"),
        None => text.to_owned(),
    }
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} bytes"))
}

fn is_label(text: &str, first: fn(u8) -> bool) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| first(*b))
        && bytes.last().is_some_and(|b| inner(*b))
        && bytes.iter().all(|b| inner(*b) || *b == b'-')
}

fn label(text: &str) -> Vec<String> {
    let form = !is_label(text, |b| b.is_ascii_lowercase() || b.is_ascii_digit());
    too_long(text, 63)
        .into_iter()
        .chain(form.then(|| {
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
             with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned()
        }))
        .collect()
}

fn subdomain(text: &str) -> Vec<String> {
    let form = !text.split('.').all(|part| is_label(part, |b| b.is_ascii_lowercase() || b.is_ascii_digit()));
    too_long(text, 253)
        .into_iter()
        .chain(form.then(|| {
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
             and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned()
        }))
        .collect()
}

fn label_1035(text: &str) -> Vec<String> {
    let form = !is_label(text, |b| b.is_ascii_lowercase());
    too_long(text, 63)
        .into_iter()
        .chain(form.then(|| {
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation \
             is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned()
        }))
        .collect()
}

fn is_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at_ends = [bytes.first(), bytes.last()].into_iter().all(|b| b.is_some_and(u8::is_ascii_alphanumeric));
    at_ends && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn qualified_name(text: &str) -> Vec<String> {
    const FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                        character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let parts: Vec<&str> = text.split('/').collect();
    let mut problems = Vec::new();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(subdomain(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else {
        problems.extend(too_long(name, 63).map(|problem| format!("name part {problem}")));
    }
    if !is_qualified(name) {
        problems.push(format!("name part {FORM}"));
    }
    problems
}

fn label_value(text: &str) -> Vec<String> {
    let form = !text.is_empty() && !is_qualified(text);
    too_long(text, 63)
        .into_iter()
        .chain(form.then(|| {
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
             and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned()
        }))
        .collect()
}

fn is_uuid(text: &str) -> bool {
    let hex: String = text.chars().filter(|c| *c != '-').collect();
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit()) && matches!(groups[..], [32] | [8, 4, 4, 4, 12])
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}
