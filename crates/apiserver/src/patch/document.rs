//! A JSON document of which only what a patch goes through is read. The rest stays as it was written, and so does what the
//! patch brings: whoever reads the result sees numbers in the form they were sent in.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A value of a document.
#[derive(Clone, Debug)]
pub(crate) enum Document {
    /// As it was written.
    Text(Box<RawValue>),
    /// An object that was gone through.
    Fields(BTreeMap<String, Document>),
    /// A list that was gone through.
    Items(Vec<Document>),
}

impl Document {
    /// A document of which the text is known to be JSON; none if it cannot be read all the same.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text).into_owned();
        serde_json::from_str(&text).ok().map(Self::Text)
    }

    pub(super) fn null() -> Self {
        Self::Text(RawValue::NULL.to_owned())
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Text(text) if text.get() == "null")
    }

    /// The text of a string.
    pub(super) fn string(&self) -> Option<String> {
        match self {
            Self::Text(text) => serde_json::from_str(text.get()).ok(),
            _ => None,
        }
    }

    /// The fields of an object; none if it is something else.
    pub(super) fn fields(&mut self) -> Option<&mut BTreeMap<String, Document>> {
        if let Self::Text(text) = self {
            let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text.get()).ok()?;
            *self = Self::Fields(fields.into_iter().map(|(name, text)| (name, Self::Text(text))).collect());
        }
        match self {
            Self::Fields(fields) => Some(fields),
            _ => None,
        }
    }

    /// The items of a list; none if it is something else.
    pub(super) fn items(&mut self) -> Option<&mut Vec<Document>> {
        if let Self::Text(text) = self {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text.get()).ok()?;
            *self = Self::Items(items.into_iter().map(Self::Text).collect());
        }
        match self {
            Self::Items(items) => Some(items),
            _ => None,
        }
    }

    /// Whether two values are written alike, but for white space and the order of fields.
    pub(super) fn equals(&mut self, other: &mut Self) -> bool {
        if self.fields().is_some() {
            let (Some(these), Some(those)) = (self.fields(), other.fields()) else { return false };
            return these.len() == those.len()
                && these.iter_mut().all(|(name, value)| those.get_mut(name).is_some_and(|other| value.equals(other)));
        }
        if self.items().is_some() {
            let (Some(these), Some(those)) = (self.items(), other.items()) else { return false };
            return these.len() == those.len() && these.iter_mut().zip(those).all(|(value, other)| value.equals(other));
        }
        match (self, other) {
            (Self::Text(this), Self::Text(that)) => this.get() == that.get(),
            _ => false,
        }
    }

    /// The text of the document, as the real server writes it: without white space, and safe within HTML.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => compact(text.get(), out),
            Self::Fields(fields) => {
                out.push(b'{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    compact(&serde_json::Value::from(name.as_str()).to_string(), out);
                    out.push(b':');
                    value.write_to(out);
                }
                out.push(b'}');
            }
            Self::Items(items) => {
                out.push(b'[');
                for (index, value) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    value.write_to(out);
                }
                out.push(b']');
            }
        }
    }
}

/// Writes JSON without the white space between its parts.
fn compact(text: &str, out: &mut Vec<u8>) {
    let (mut quoted, mut escaped) = (false, false);
    for character in text.chars() {
        if quoted {
            quoted = escaped || character != '"';
            escaped = !escaped && character == '\\';
            match character {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
                }
                other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        } else if !character.is_ascii_whitespace() {
            quoted = character == '"';
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_gone_through_stays_as_it_was_written() {
        let mut document = Document::parse(br#"{"b": {"z": 1.0, "a": 1e1}, "a": {"z": "<\" x>", "b": 2}}"#).unwrap();
        let fields = document.fields().unwrap();
        assert!(fields.get_mut("a").unwrap().fields().is_some());
        let text = String::from_utf8(document.write()).unwrap();
        assert_eq!(text, r#"{"a":{"b":2,"z":"\u003c\" x\u003e"},"b":{"z":1.0,"a":1e1}}"#);
    }

    #[test]
    fn values_are_equal_that_are_written_alike() {
        for (one, other, equal) in [
            (r#"{"a": 1, "b": [true, null]}"#, r#"{"b":[true,null],"a":1}"#, true),
            ("1", "1.0", false),
            (r#""a""#, r#""\u0061""#, false),
            ("[1, 2]", "[2, 1]", false),
            ("{}", "[]", false),
        ] {
            let parse = |text: &str| Document::parse(text.as_bytes()).unwrap();
            assert_eq!(parse(one).equals(&mut parse(other)), equal, "{one} {other}");
        }
    }
}
