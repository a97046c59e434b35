//! Strings in double quotes, with the escapes of RFC 9535.

use super::{ParseError, Parser, Problem};

impl Parser<'_> {
    /// The rest of a string whose opening quote was taken, up to and with the closing one.
    pub(super) fn string(&mut self) -> Result<String, ParseError> {
        let mut string = String::new();
        loop {
            let start = self.position;
            match self.bump() {
                None => return self.fail(Problem::MissingQuote),
                Some('"') => return Ok(string),
                Some('\\') => string.push(self.escape(start)?),
                Some(c @ '\0'..' ') => return self.fail_at(start, Problem::ControlCharacter(c)),
                Some(c) => string.push(c),
            }
        }
    }

    /// The character behind a backslash that stands at `start`.
    fn escape(&mut self, start: usize) -> Result<char, ParseError> {
        let Some(c) = self.bump() else {
            return self.fail(Problem::EscapeAtEnd);
        };
        Ok(match c {
            '"' | '\\' | '/' => c,
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode_escape(start),
            _ => return self.fail_at(start, Problem::UnknownEscape(c)),
        })
    }

    /// Four digits, or two times four for a character beyond the first 65,536.
    fn unicode_escape(&mut self, start: usize) -> Result<char, ParseError> {
        let first = self.four_digits(start)?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        let unpaired = Problem::UnpairedSurrogate(first);
        if first >= 0xDC00 || !self.text[self.position..].starts_with("\\u") {
            return self.fail_at(start, unpaired);
        }
        self.position += 2;
        match self.four_digits(start)? {
            second @ 0xDC00..=0xDFFF => {
                let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                char::from_u32(code).map_or_else(|| self.fail_at(start, unpaired), Ok)
            }
            _ => self.fail_at(start, unpaired),
        }
    }

    fn four_digits(&mut self, start: usize) -> Result<u32, ParseError> {
        let digits = self.text.get(self.position..self.position + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                self.position += 4;
                Ok(code)
            }
            None => self.fail_at(start, Problem::BadUnicodeEscape),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::subset::Path;

    #[track_caller]
    fn check(string: &str, meaning: &str) {
        assert_eq!(Path::parse(&format!("$[{string}]")).unwrap().segments(), [meaning]);
    }

    #[track_caller]
    fn refused(string: &str, error: &str) {
        assert_eq!(Path::parse(&format!("$[{string}]")).unwrap_err().to_string(), error, "{string}");
    }

    #[test]
    fn the_escapes_of_the_rfc_are_understood() {
        check(r#""\b\f\n\r\t\/\\\"""#, "\x08\x0c\n\r\t/\\\"");
        check(r#""\u0041\u00e9\uD83D\uDE00""#, "Aé😀");
        check(r#""it's 界""#, "it's 界");
    }

    #[test]
    fn other_escapes_are_refused_where_they_stand() {
        refused(r#""a\x41""#, "syntax error at 4: unknown escape, a backslash before 'x'");
        refused(r#""\'""#, r"syntax error at 3: unknown escape, a backslash before '\''");
        refused(r#""\v""#, "syntax error at 3: unknown escape, a backslash before 'v'");
        refused(r#""\u12""#, "syntax error at 3: expected four hexadecimal digits after \\u");
        refused(r#""\u+123""#, "syntax error at 3: expected four hexadecimal digits after \\u");
        refused(r#""\ud83d""#, "syntax error at 3: unpaired surrogate \\ud83d");
        refused(r#""\ud83d\u0041""#, "syntax error at 3: unpaired surrogate \\ud83d");
        refused(r#""\udc00""#, "syntax error at 3: unpaired surrogate \\udc00");
        refused("\"a\nb\"", "syntax error at 4: control character '\\n' must be escaped");
    }
}
