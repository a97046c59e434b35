//! The subset in a CustomTransform's `spec.remove`: `$`, then any number of `.name` and `["string"]`.
//!
//! Names and strings are those of RFC 9535, except that strings stand in double quotes only. There is no white space, index,
//! wildcard, slice, filter or descent.

mod string;

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

/// A path to one member of an object, through objects only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    segments: Vec<String>,
}

impl Path {
    /// Parses a path such as `$.metadata.labels["example.com/x"]`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Parser { text, position: 0 }.path()
    }

    /// The names on the way, outermost first.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Whether this is `$` alone, which nothing can be removed by.
    pub fn is_whole_object(&self) -> bool {
        self.segments.is_empty()
    }

    /// Takes the member that the path leads to out of `object`; what is around it stays, even when empty.
    ///
    /// Arrays are not entered, and a path that leads nowhere removes nothing.
    pub fn remove_from(&self, object: &mut Value) -> Option<Value> {
        let (last, way) = self.segments.split_last()?;
        let parent = way.iter().try_fold(object, |value, name| value.as_object_mut()?.get_mut(name))?;
        parent.as_object_mut()?.remove(last)
    }
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// There is no text at all.
    Empty,
    /// Something else than expected at a position, counted in bytes from zero.
    Syntax {
        /// Where the problem is.
        position: usize,
        /// What the problem is.
        problem: Problem,
    },
}

/// What is wrong at a position. A character that is missing because the text ends is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A path begins with `$`.
    MissingRoot,
    /// After a dot comes a name.
    ExpectedName(Option<char>),
    /// After a bracket comes a double quote.
    ExpectedQuote(Option<char>),
    /// After a string comes a bracket.
    MissingBracket(Option<char>),
    /// A string does not end.
    MissingQuote,
    /// The text ends after a backslash.
    EscapeAtEnd,
    /// A backslash before a character that means nothing there.
    UnknownEscape(char),
    /// `\u` without four hexadecimal digits.
    BadUnicodeEscape,
    /// Half of a pair of surrogates.
    UnpairedSurrogate(u32),
    /// A control character that would have to be escaped.
    ControlCharacter(char),
    /// Something that begins no segment.
    Junk(char),
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("EOF"),
            Self::Syntax { position, problem } => write!(f, "syntax error at {position}: {problem}"),
        }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let got = |expectation: &str, c: &Option<char>| format!("{expectation}, got {}", quoted(c.unwrap_or('\0')));
        f.write_str(&match self {
            Self::MissingRoot => "missing root identifier (dollar sign)".to_owned(),
            Self::ExpectedName(c) => got("expected member-name-shorthand", c),
            Self::ExpectedQuote(c) => got("expected open quote", c),
            Self::MissingBracket(c) => got("missing close bracket", c),
            Self::MissingQuote => "missing close quote".to_owned(),
            Self::EscapeAtEnd => "escape-EOF".to_owned(),
            Self::UnknownEscape(c) => format!("unknown escape, a backslash before {}", quoted(*c)),
            Self::BadUnicodeEscape => "expected four hexadecimal digits after \\u".to_owned(),
            Self::UnpairedSurrogate(code) => format!("unpaired surrogate \\u{code:04x}"),
            Self::ControlCharacter(c) => format!("control character {} must be escaped", quoted(*c)),
            Self::Junk(c) => format!("extra junk {} after last segment", quoted(*c)),
        })
    }
}

impl std::error::Error for ParseError {}

/// A character in single quotes, escaped when it cannot be shown.
fn quoted(c: char) -> String {
    match c {
        '\'' | '\\' => format!("'\\{c}'"),
        '\n' => "'\\n'".to_owned(),
        '\r' => "'\\r'".to_owned(),
        '\t' => "'\\t'".to_owned(),
        '\0'..' ' | '\x7f' => format!("'\\x{:02x}'", u32::from(c)),
        _ => format!("'{c}'"),
    }
}

struct Parser<'t> {
    text: &'t str,
    position: usize,
}

impl Parser<'_> {
    fn path(mut self) -> Result<Path, ParseError> {
        if self.text.is_empty() {
            return Err(ParseError::Empty);
        }
        if !self.accept('$') {
            return self.fail(Problem::MissingRoot);
        }
        let mut segments = Vec::new();
        while let Some(c) = self.peek() {
            segments.push(match c {
                '.' => self.name()?,
                '[' => self.member()?,
                _ => return self.fail(Problem::Junk(c)),
            });
        }
        Ok(Path { segments })
    }

    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += c.len_utf8();
        Some(c)
    }

    fn accept(&mut self, wanted: char) -> bool {
        let accepted = self.peek() == Some(wanted);
        if accepted {
            self.position += wanted.len_utf8();
        }
        accepted
    }

    fn fail<T>(&self, problem: Problem) -> Result<T, ParseError> {
        self.fail_at(self.position, problem)
    }

    fn fail_at<T>(&self, position: usize, problem: Problem) -> Result<T, ParseError> {
        Err(ParseError::Syntax { position, problem })
    }

    /// `.name`
    fn name(&mut self) -> Result<String, ParseError> {
        self.bump();
        let start = self.position;
        if !self.peek().is_some_and(begins_name) {
            return self.fail(Problem::ExpectedName(self.peek()));
        }
        while self.peek().is_some_and(|c| begins_name(c) || c.is_ascii_digit()) {
            self.bump();
        }
        Ok(self.text[start..self.position].to_owned())
    }

    /// `["string"]`
    fn member(&mut self) -> Result<String, ParseError> {
        self.bump();
        if !self.accept('"') {
            return self.fail(Problem::ExpectedQuote(self.peek()));
        }
        let name = self.string()?;
        if !self.accept(']') {
            return self.fail(Problem::MissingBracket(self.peek()));
        }
        Ok(name)
    }
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_removal(path: &str, object: Value, left: Value) {
        let mut object = object;
        Path::parse(path).unwrap().remove_from(&mut object);
        assert_eq!(object, left, "{path}");
    }

    #[test]
    fn a_member_is_removed_and_its_parents_stay() {
        check_removal("$.a", json!({"a": 1, "b": 2}), json!({"b": 2}));
        check_removal("$.a.b", json!({"a": {"b": [1]}}), json!({"a": {}}));
        check_removal(r#"$.a["x.y/z"]"#, json!({"a": {"x.y/z": 1, "c": 2}}), json!({"a": {"c": 2}}));
        check_removal(r#"$[""]"#, json!({"": 1}), json!({}));
    }

    #[test]
    fn a_path_that_leads_nowhere_removes_nothing() {
        for path in ["$.x", "$.x.y", "$.a.b.c", "$.list.a", "$", "$.null.a"] {
            let object = json!({"a": {"b": "text"}, "list": [{"a": 1}], "null": null});
            check_removal(path, object.clone(), object);
        }
    }

    #[test]
    fn what_was_removed_is_returned() {
        let mut object = json!({"a": {"b": 1}});
        let path = Path::parse("$.a.b").unwrap();
        assert_eq!(path.remove_from(&mut object), Some(json!(1)));
        assert_eq!(path.remove_from(&mut object), None);
    }

    #[test]
    fn the_whole_object_is_recognised() {
        assert!(Path::parse("$").unwrap().is_whole_object());
        assert!(!Path::parse(r#"$[""]"#).unwrap().is_whole_object());
    }

    #[test]
    fn characters_in_messages_are_escaped() {
        for (c, shown) in [('\0', r"'\x00'"), ('\'', r"'\''"), ('\n', r"'\n'"), ('é', "'é'"), ('\x7f', r"'\x7f'")] {
            assert_eq!(quoted(c), shown);
        }
    }
}
