//! JSON that YAML reads as JSON does, which most is: then it need not be read as YAML, which takes far longer.
//!
//! Left out is whatever the two may read differently: escapes, numbers with a fraction, keys that repeat or are very long.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads such a text; none if it is another.
pub(super) fn parse(text: &[u8]) -> Option<Value> {
    let plain = |byte: &u8| matches!(byte, b'\n' | b'\r' | b' '..=b'~');
    let odd = |pair: &[u8]| matches!(pair, [b'\\', b'u' | b'/']);
    let reads_alike =
        text.first() == Some(&b'{') && text.iter().all(plain) && !(text.contains(&b'\\') && text.windows(2).any(odd));
    reads_alike.then(|| serde_json::from_slice::<Plain>(text).ok()).flatten().map(|Plain(value)| value)
}

/// The longest key that YAML reads without another mark, with room to spare.
const LONGEST_KEY: usize = 1000;

struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("what YAML reads as JSON does")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map(Value::from).map_err(|_| E::custom("a very large number"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Plain(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Plain(value))) = fields.next_entry::<String, Plain>()? {
            if name.len() > LONGEST_KEY || members.insert(name, value).is_some() {
                return Err(A::Error::custom("a key that is very long, or there twice"));
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_yaml_may_read_differently_is_left_to_it() {
        let text = r#"{"a": [1, -2, "x\"y", null, true, {}], "b": {"a": "\n"}}"#;
        assert_eq!(parse(text.as_bytes()), serde_json::from_str(text).ok());
        let long = format!(r#"{{"{}":1}}"#, "k".repeat(LONGEST_KEY + 1));
        for odd in [
            "[]",
            "a: b",
            r#"{"a":1,"a":1}"#,
            r#"{"a":[{"b":1,"b":2}]}"#,
            r#"{"a":1.5}"#,
            r#"{"a":1e3}"#,
            r#"{"a":18446744073709551615}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":"\/"}"#,
            "{\"a\":\t1}",
            "{\"a\":\"é\"}",
            "{",
            long.as_str(),
        ] {
            assert_eq!(parse(odd.as_bytes()), None, "{odd}");
        }
    }
}
