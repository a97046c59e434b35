//! Reads a set of fields from the text of `fieldsV1`, without making values of it first.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::{FieldSet, MAX_DEPTH, Node, SELF};
use crate::apply::element::{Element, ElementError};

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Below { depth: 0 }.deserialize(deserializer).map(|(set, _)| set)
    }
}

/// What is below a field: the fields there, and whether the field itself is in the set.
struct Below {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Below {
    type Value = (FieldSet, bool);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Below {
    type Value = (FieldSet, bool);

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a set of fields")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok((FieldSet::default(), true))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        if self.depth > MAX_DEPTH {
            return Err(A::Error::custom("a set of fields is nested too deep"));
        }
        let mut nodes = Vec::new();
        let mut itself = false;
        while let Some(step) = members.next_key()? {
            match step {
                Step::Itself => {
                    itself = true;
                    members.next_value::<IgnoredAny>()?;
                }
                Step::Unknown => {
                    members.next_value::<IgnoredAny>()?;
                }
                Step::Known(element) => {
                    let (below, member) = members.next_value_seed(Below { depth: self.depth + 1 })?;
                    nodes.push(Node { element, member, below });
                }
            }
        }
        let itself = itself || nodes.is_empty();
        Ok((FieldSet::from_nodes(nodes), itself))
    }
}

/// A key of the text.
enum Step {
    Itself,
    /// A later version may know what it is.
    Unknown,
    Known(Element),
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Step;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a field")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Step, E> {
                if text == SELF {
                    return Ok(Step::Itself);
                }
                match Element::parse(text) {
                    Ok(element) => Ok(Step::Known(element)),
                    Err(ElementError::Unknown) => Ok(Step::Unknown),
                    Err(ElementError::Malformed) => Err(E::custom("a field is not one")),
                }
            }
        }
        deserializer.deserialize_str(Text)
    }
}
