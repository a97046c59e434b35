//! The query of an address, read as Go reads it.

use std::borrow::Cow;

use crate::{gotext, status::Status};

/// The parameters of a query, in order.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query. What is not properly escaped is left out, and so is anything with a semicolon.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let decoded = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name, true)?.into_owned(), unescape(value, true)?.into_owned()))
        });
        Self(decoded.collect())
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that counts as set unless it says otherwise.
    pub fn flag(&self, name: &str) -> bool {
        self.optional_flag(name).unwrap_or(false)
    }

    /// A flag that makes a difference also when it is absent.
    pub fn optional_flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number, in the words of Go if it is none.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        self.get(name).map(|text| parse_integer(text).map_err(Status::bad_request)).transpose()
    }
}

/// A whole number as Go's `strconv.ParseInt` reads it.
fn parse_integer(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let problem = if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        "invalid syntax"
    } else {
        match text.parse() {
            Ok(number) => return Ok(number),
            Err(_) => "value out of range",
        }
    };
    Err(format!("strconv.ParseInt: parsing {}: {problem}", gotext::quote(text)))
}

/// Takes percent escapes out; `None` if one is broken. In a query a plus is a space.
pub(crate) fn unescape(text: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    let escaped = text.contains('%') || (plus_is_space && text.contains('+'));
    if !escaped {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' if plus_is_space => b' ',
            _ => byte,
        });
    }
    Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_go_does() {
        let query = Query::parse("a=1&a=2&b&c=x%20y+z&d=%zz&e=1;f=2&&g=");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!([query.get("b"), query.get("c"), query.get("g")], [Some(""), Some("x y z"), Some("")]);
        assert_eq!([query.get("d"), query.get("e"), query.get("f")], [None, None, None]);
    }

    #[test]
    fn flags_and_numbers() {
        let query = Query::parse("a&b=maybe&c=0&d=FALSE&n=-5&x=&y=9223372036854775808");
        assert_eq!(["a", "b", "c", "d", "z"].map(|name| query.flag(name)), [true, true, false, false, false]);
        assert_eq!(query.integer("n").unwrap(), Some(-5));
        assert_eq!(query.integer("x").unwrap_err().message(), r#"strconv.ParseInt: parsing "": invalid syntax"#);
        let out_of_range = r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#;
        assert_eq!(query.integer("y").unwrap_err().message(), out_of_range);
    }
}
