//! JSON as Kubernetes clients send it: field order, repeated fields and the text of numbers are kept, and what is wrong is
//! said in the words of Go's decoder, which users know from other clusters.

use serde_json::{Map, Number, Value};

/// A JSON document as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was spelt.
    Number(Box<str>),
    /// A string; what is no Unicode has become U+FFFD.
    String(String),
    /// An array.
    Array(Vec<Node>),
    /// An object: its fields in order, repeated ones included.
    Object(Vec<(String, Node)>),
}

/// Why bytes are not JSON, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// The bytes end within a value.
    #[error("unexpected end of JSON input")]
    End,
    /// A byte is not allowed where it stands.
    #[error("invalid character {} {}", quote(*byte), context)]
    Character {
        /// The byte.
        byte: u8,
        /// Where it stands.
        context: &'static str,
    },
}

/// How deep arrays and objects may be nested. Go allows ten thousand levels; nothing real comes near a thousand, and every
/// level costs stack.
const MAX_DEPTH: usize = 1000;

/// Reads one JSON document.
pub fn parse(bytes: &[u8]) -> Result<Node, SyntaxError> {
    let mut parser = Parser { bytes, at: 0, depth: 0 };
    let node = parser.value("looking for beginning of value")?;
    match parser.peek() {
        None => Ok(node),
        Some(byte) => Err(SyntaxError::Character { byte, context: "after top-level value" }),
    }
}

impl Node {
    /// The last value of a field, which is the one that counts.
    pub fn get(&self, field: &str) -> Option<&Node> {
        match self {
            Self::Object(fields) => fields.iter().rev().find(|(name, _)| name == field).map(|(_, value)| value),
            _ => None,
        }
    }

    /// What Go calls this kind of value.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

impl From<Node> for Value {
    fn from(node: Node) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(value) => Self::Bool(value),
            Node::Number(text) => number(&text),
            Node::String(text) => Self::String(text),
            Node::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Node::Object(fields) => {
                Self::Object(fields.into_iter().map(|(name, value)| (name, value.into())).collect::<Map<_, _>>())
            }
        }
    }
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.to_string().into()),
            Value::String(text) => Self::String(text.clone()),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                Self::Object(fields.iter().map(|(name, value)| (name.clone(), value.into())).collect())
            }
        }
    }
}

/// A number from its text: an integer if it is spelt as one and fits, a floating-point number otherwise.
pub fn number(text: &str) -> Value {
    let integer = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    match integer {
        Ok(number) => Value::Number(number),
        Err(_) => text.parse().ok().and_then(Number::from_f64).map_or(Value::Null, Value::Number),
    }
}

/// A byte as Go quotes it: every byte is taken for a character of its own.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = crate::gotext::quote(&char::from(byte).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn unexpected(&self, context: &'static str) -> SyntaxError {
        match self.bytes.get(self.at) {
            Some(&byte) => SyntaxError::Character { byte, context },
            None => SyntaxError::End,
        }
    }

    fn value(&mut self, context: &'static str) -> Result<Node, SyntaxError> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Node::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Node::Bool(true)),
            Some(b'f') => self.literal("false", Node::Bool(false)),
            Some(b'n') => self.literal("null", Node::Null),
            _ => Err(self.unexpected(context)),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Node, SyntaxError>) -> Result<Node, SyntaxError> {
        if self.depth == MAX_DEPTH {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.depth += 1;
        self.at += 1;
        let node = read(self);
        self.depth -= 1;
        node
    }

    fn object(&mut self) -> Result<Node, SyntaxError> {
        let mut fields = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Node::Object(fields));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let name = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.at += 1;
            fields.push((name, self.value("looking for beginning of value")?));
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Node::Object(fields));
                }
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<Node, SyntaxError> {
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Node::Array(items));
        }
        loop {
            items.push(self.value("looking for beginning of value")?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Node::Array(items));
                }
                _ => return Err(self.unexpected("after array element")),
            }
        }
    }

    fn literal(&mut self, word: &'static str, node: Node) -> Result<Node, SyntaxError> {
        let contexts: &[&'static str] = match word {
            "true" => &["in literal true (expecting 'r')", "in literal true (expecting 'u')", "in literal true (expecting 'e')"],
            "false" => &[
                "in literal false (expecting 'a')",
                "in literal false (expecting 'l')",
                "in literal false (expecting 's')",
                "in literal false (expecting 'e')",
            ],
            _ => &["in literal null (expecting 'u')", "in literal null (expecting 'l')", "in literal null (expecting 'l')"],
        };
        self.at += 1;
        for (expected, context) in word.bytes().skip(1).zip(contexts) {
            if self.bytes.get(self.at) != Some(&expected) {
                return Err(self.unexpected(context));
            }
            self.at += 1;
        }
        Ok(node)
    }

    fn number(&mut self) -> Result<Node, SyntaxError> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = String::from_utf8_lossy(&self.bytes[start..self.at]);
        Ok(Node::Number(text.into()))
    }

    fn some_digits(&mut self, context: &'static str) -> Result<(), SyntaxError> {
        match self.bytes.get(self.at) {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            _ => Err(self.unexpected(context)),
        }
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let mut text = String::new();
        let mut run = self.at;
        loop {
            match self.bytes.get(self.at) {
                None => return Err(SyntaxError::End),
                Some(b'"') => {
                    text.push_str(&String::from_utf8_lossy(&self.bytes[run..self.at]));
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    text.push_str(&String::from_utf8_lossy(&self.bytes[run..self.at]));
                    self.at += 1;
                    text.push(self.escape()?);
                    run = self.at;
                }
                Some(0..0x20) => return Err(self.unexpected("in string literal")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let escaped = match self.bytes.get(self.at) {
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            Some(&byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(escaped)
    }

    /// The four digits after `\u`; a surrogate needs its other half, and half a pair is no character.
    fn unicode_escape(&mut self) -> Result<char, SyntaxError> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let after = self.at;
        if self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                let joined = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        self.at = after;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_digits(&mut self) -> Result<u32, SyntaxError> {
        let mut number = 0;
        for _ in 0..4 {
            let digit = self.bytes.get(self.at).and_then(|&byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            number = number * 16 + digit;
            self.at += 1;
        }
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let got = parse(text.as_bytes()).map_or_else(|error| error.to_string(), |node| Value::from(node).to_string());
        assert_eq!(got, expected, "{text}");
    }

    #[test]
    fn documents_are_read() {
        check(r#" {"b":[1,-2.5e1,true,null],"a":"x\u00e9\ud83d\ude00\n"} "#, r#"{"a":"xé😀\n","b":[1,-25.0,true,null]}"#);
        check(r#""\ud800""#, "\"\u{fffd}\"");
        check(r#""\ud800\u0041""#, "\"\u{fffd}A\"");
        check(r#"{"a":1,"a":2}"#, r#"{"a":2}"#);
        check("18446744073709551615", "18446744073709551615");
    }

    #[test]
    fn order_repetition_and_spelling_are_kept() {
        let node = parse(br#"{"b":1.0,"a":2,"b":3}"#).unwrap();
        let fields: Vec<_> = ["b", "a", "b"].into_iter().zip(["1.0", "2", "3"]).collect();
        let expected = fields.iter().map(|(name, text)| ((*name).to_owned(), Node::Number((*text).into()))).collect();
        assert_eq!(node, Node::Object(expected));
        assert_eq!(node.get("b"), Some(&Node::Number("3".into())));
    }

    #[test]
    fn errors_are_go_errors() {
        check("", "unexpected end of JSON input");
        check("{", "unexpected end of JSON input");
        check("{x", "invalid character 'x' looking for beginning of object key string");
        check(r#"{"a" 1"#, "invalid character '1' after object key");
        check(r#"{"a":01}"#, "invalid character '1' after object key:value pair");
        check("[1 2]", "invalid character '2' after array element");
        check("{} {", "invalid character '{' after top-level value");
        check("NaN", "invalid character 'N' looking for beginning of value");
        check("nul", "unexpected end of JSON input");
        check("nulL", "invalid character 'L' in literal null (expecting 'l')");
        check("-x", "invalid character 'x' in numeric literal");
        check("1.x", "invalid character 'x' after decimal point in numeric literal");
        check("1ex", "invalid character 'x' in exponent of numeric literal");
        check(r#""\x""#, "invalid character 'x' in string escape code");
        check("\"a\tb\"", r"invalid character '\t' in string literal");
        check(r#""\u12x4""#, "invalid character 'x' in \\u hexadecimal character escape");
        check("'", r"invalid character '\'' looking for beginning of value");
        check("é", "invalid character 'Ã' looking for beginning of value");
        check(&"[".repeat(MAX_DEPTH + 1), "invalid character '[' exceeded max depth");
    }
}
