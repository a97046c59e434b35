//! The attributes of a CloudEvent, read from MQTT user properties or from a structured JSON event.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor},
};

use super::{DecodeError, data::Data};
use crate::packet::Text as Property;

/// The prefix every attribute has as a user property.
const PREFIX: &str = "ce-";

/// The attributes that mean something to us; others are ignored.
#[derive(Debug, Default)]
pub(super) struct Attributes<'a> {
    pub(super) specversion: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) source: Option<Cow<'a, str>>,
    pub(super) r#type: Option<Cow<'a, str>>,
    pub(super) time: Option<Cow<'a, str>>,
    pub(super) resource_id: Option<Cow<'a, str>>,
    pub(super) resource_version: Option<Cow<'a, str>>,
    pub(super) deletion_timestamp: Option<Cow<'a, str>>,
    pub(super) cluster: Option<Cow<'a, str>>,
    pub(super) original_source: Option<Cow<'a, str>>,
    pub(super) sequence: Option<Cow<'a, str>>,
    pub(super) status_hash: Option<Cow<'a, str>>,
    pub(super) metadata: Option<Cow<'a, str>>,
    pub(super) epoch: Option<Cow<'a, str>>,
    pub(super) unknown: Option<Cow<'a, str>>,
    pub(super) others: Option<Cow<'a, str>>,
    pub(super) after: Option<Cow<'a, str>>,
    pub(super) upto: Option<Cow<'a, str>>,
}

impl<'a> Attributes<'a> {
    /// Reads the user properties of a message in binary mode.
    pub(super) fn from_properties(properties: &'a [(Property, Property)]) -> Result<Self, DecodeError> {
        let mut attributes = Self::default();
        for (name, value) in properties {
            let Some(name) = name.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX)).map(|_| name)
            else {
                continue;
            };
            let Some(slot) = attributes.slot(&name[PREFIX.len()..]) else { continue };
            store(slot, Cow::Borrowed(value)).map_err(|()| DecodeError::Repeated(name.to_string()))?;
        }
        Ok(attributes)
    }

    /// Where an attribute belongs, whatever the case of its name.
    fn slot(&mut self, name: &str) -> Option<&mut Option<Cow<'a, str>>> {
        /// The longest name below.
        const LONGEST: usize = 19;
        let mut lower = [0; LONGEST];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        Some(match &*lower {
            b"specversion" => &mut self.specversion,
            b"id" => &mut self.id,
            b"source" => &mut self.source,
            b"type" => &mut self.r#type,
            b"time" => &mut self.time,
            b"resourceid" | b"specresourceid" => &mut self.resource_id,
            // The design document spells the last one without its second "r".
            b"resourceversion" | b"specresourceversion" | b"specresouceversion" => &mut self.resource_version,
            b"deletiontimestamp" => &mut self.deletion_timestamp,
            b"clustername" => &mut self.cluster,
            b"originalsource" => &mut self.original_source,
            b"sequenceid" => &mut self.sequence,
            b"statushash" => &mut self.status_hash,
            b"metadata" => &mut self.metadata,
            b"epoch" => &mut self.epoch,
            b"resourceunknown" => &mut self.unknown,
            b"othersources" => &mut self.others,
            b"listedafter" => &mut self.after,
            b"listedupto" => &mut self.upto,
            _ => return None,
        })
    }
}

/// Two different values for one attribute cannot both be meant.
fn store<'a>(slot: &mut Option<Cow<'a, str>>, value: Cow<'a, str>) -> Result<(), ()> {
    match slot {
        Some(known) if *known != value => Err(()),
        _ => {
            *slot = Some(value);
            Ok(())
        }
    }
}

/// A whole event in structured mode.
#[derive(Debug, Default)]
pub(super) struct Structured<'a> {
    pub(super) attributes: Attributes<'a>,
    pub(super) data: Option<Data>,
}

impl<'de> Deserialize<'de> for Structured<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Event;

        impl<'de> Visitor<'de> for Event {
            type Value = Structured<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a CloudEvent")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut event = Structured::default();
                while let Some(Text(name)) = map.next_key()? {
                    if name == "data" {
                        event.data = map.next_value()?;
                        continue;
                    }
                    let Some(slot) = event.attributes.slot(&name) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    let Some(value) = map.next_value::<Scalar<'de>>()?.0 else { continue };
                    store(slot, value).map_err(|()| A::Error::custom(format_args!("{name:?} is given twice")))?;
                }
                Ok(event)
            }
        }

        deserializer.deserialize_map(Event)
    }
}

/// Text, borrowed where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Characters;

        impl<'de> Visitor<'de> for Characters {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Characters)
    }
}

/// The value of an attribute: text, or a number or flag as text. Null is the same as absent.
pub(super) struct Scalar<'a>(pub(super) Option<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;

        impl<'de> Visitor<'de> for Value {
            type Value = Scalar<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a number")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Scalar(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Scalar(Some(Cow::Owned(number.to_string()))))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Scalar(Some(Cow::Owned(number.to_string()))))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Scalar(Some(Cow::Owned(format!("{number:?}")))))
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(Scalar(Some(Cow::Owned(flag.to_string()))))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Scalar(None))
            }
        }

        deserializer.deserialize_any(Value)
    }
}
