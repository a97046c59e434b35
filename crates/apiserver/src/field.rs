//! Paths of fields and what is wrong with their values, worded as clients of Kubernetes know it.

use std::fmt;

use serde_json::Value;

/// The way to a field, built on the stack while an object is walked.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    part: Part<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    Root,
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub const ROOT: Path<'static> = Path { parent: None, part: Part::Root };

    /// A field below.
    pub fn child(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), part: Part::Child(name) }
    }

    /// An item below.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), part: Part::Index(index) }
    }

    /// A key of a map below.
    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), part: Part::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(out)?;
        }
        match self.part {
            Part::Root => Ok(()),
            Part::Child(name) if self.parent.is_none_or(|parent| matches!(parent.part, Part::Root)) => {
                out.write_str(name)
            }
            Part::Child(name) => write!(out, ".{name}"),
            Part::Index(index) => write!(out, "[{index}]"),
            Part::Key(key) => write!(out, "[{key}]"),
        }
    }
}

/// One thing that is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Where, such as `spec.containers[0].name`.
    pub field: String,
    /// Which sort of wrong.
    pub kind: FieldErrorKind,
    /// What stands behind the field in messages: the sort, the value and the detail.
    pub body: String,
}

/// The sorts of wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// Something the value names does not exist.
    NotFound,
    /// A value is missing.
    Required,
    /// A value that must be unique is there twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// Not one of the values that are listed.
    NotSupported,
    /// A value that is not allowed here.
    Forbidden,
    /// A text or list of bytes that is too long.
    TooLong,
    /// A list with too many items.
    TooMany,
    /// A value of another type.
    TypeInvalid,
    /// Not the caller's fault.
    Internal,
}

impl FieldErrorKind {
    /// The `reason` of a cause in a `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.body)
    }
}

impl FieldError {
    /// A value is missing.
    pub fn required(path: &Path<'_>, detail: &str) -> Self {
        Self::without_value(path, FieldErrorKind::Required, detail)
    }

    /// A value is not allowed here.
    pub fn forbidden(path: &Path<'_>, detail: &str) -> Self {
        Self::without_value(path, FieldErrorKind::Forbidden, detail)
    }

    /// A value is malformed.
    pub fn invalid(path: &Path<'_>, value: impl Into<Value>, detail: &str) -> Self {
        Self::with_value(path, FieldErrorKind::Invalid, &value.into(), detail)
    }

    /// A value is malformed, with the value as it is to be shown.
    pub fn invalid_shown(path: &Path<'_>, shown: &str, detail: &str) -> Self {
        let kind = FieldErrorKind::Invalid;
        Self { field: path.to_string(), kind, body: joined(&format!("{}: {shown}", kind.words()), detail) }
    }

    /// A value is there twice, with the value as it is to be shown.
    pub fn duplicate_shown(path: &Path<'_>, shown: &str) -> Self {
        let kind = FieldErrorKind::Duplicate;
        Self { field: path.to_string(), kind, body: format!("{}: {shown}", kind.words()) }
    }

    /// A value is malformed, and too long or too secret to be shown.
    pub fn invalid_unshown(path: &Path<'_>, detail: &str) -> Self {
        Self::without_value(path, FieldErrorKind::Invalid, detail)
    }

    /// The server cannot judge a value.
    pub fn internal(path: &Path<'_>, detail: &str) -> Self {
        Self::without_value(path, FieldErrorKind::Internal, detail)
    }

    /// Says more about what is wrong.
    pub fn with_detail(self, detail: &str) -> Self {
        Self { body: joined(&self.body, detail), ..self }
    }

    /// A value is not one of those listed, with the value as it is to be shown.
    pub fn not_supported_shown(path: &Path<'_>, shown: &str, supported: &[&str]) -> Self {
        let kind = FieldErrorKind::NotSupported;
        Self { field: path.to_string(), kind, body: joined(&format!("{}: {shown}", kind.words()), &listed(supported)) }
    }

    /// A value that is none of the supported ones, where Go has it as text and not as a type of its own.
    pub fn not_supported_text(path: &Path<'_>, value: &str, supported: &[&str]) -> Self {
        Self::not_supported_shown(path, &quote(value), supported)
    }

    /// A value is there twice.
    pub fn duplicate(path: &Path<'_>, value: impl Into<Value>) -> Self {
        Self::with_value(path, FieldErrorKind::Duplicate, &value.into(), "")
    }

    /// What a value names does not exist.
    pub fn not_found(path: &Path<'_>, value: impl Into<Value>) -> Self {
        Self::with_value(path, FieldErrorKind::NotFound, &value.into(), "")
    }

    /// A value is not one of those listed. To Go such a value has a type of its own, and is shown as JSON.
    pub fn not_supported(path: &Path<'_>, value: impl Into<Value>, supported: &[&str]) -> Self {
        Self::not_supported_shown(path, &json(&value.into()), supported)
    }

    /// A value is longer than it may be, in bytes.
    pub fn too_long(path: &Path<'_>, most: usize) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        Self::without_value(path, FieldErrorKind::TooLong, &format!("may not be more than {most} {unit}"))
    }

    /// A list has more items than it may have.
    pub fn too_many(path: &Path<'_>, actual: usize, most: usize) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        Self::with_value(path, FieldErrorKind::TooMany, &actual.into(), &format!("must have at most {most} {unit}"))
    }

    /// A sort of wrong whose message shows no value.
    fn without_value(path: &Path<'_>, kind: FieldErrorKind, detail: &str) -> Self {
        Self { field: path.to_string(), kind, body: joined(kind.words(), detail) }
    }

    /// A sort of wrong whose message shows the value.
    fn with_value(path: &Path<'_>, kind: FieldErrorKind, value: &Value, detail: &str) -> Self {
        let shown = match value {
            Value::String(text) => quote(text),
            other => json(other),
        };
        Self { field: path.to_string(), kind, body: joined(&format!("{}: {shown}", kind.words()), detail) }
    }
}

fn listed(supported: &[&str]) -> String {
    if supported.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = supported.iter().map(|value| quote(value)).collect();
    format!("supported values: {}", quoted.join(", "))
}

fn joined(head: &str, detail: &str) -> String {
    if detail.is_empty() { head.to_owned() } else { format!("{head}: {detail}") }
}

/// JSON as Go writes it, with the characters escaped that mean something in HTML.
pub(crate) fn json(value: &Value) -> String {
    let mut value = value.clone();
    crate::custom::numbers::write_plainly(&mut value);
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Text in double quotes as Go prints it.
pub fn quote(text: &str) -> String {
    crate::gotext::quote(text)
}
