//! Checks that text is JSON, with the messages Kubernetes clients know.

use std::fmt;

/// Nesting beyond this is refused.
const MAX_DEPTH: usize = 10_000;

/// Why text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SyntaxError {
    /// The text ends too early.
    End,
    /// A byte does not belong where it stands.
    Byte(u8, &'static str),
    /// A word is not the one that began.
    Literal { found: u8, word: &'static str, expected: u8 },
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => out.write_str("unexpected end of JSON input"),
            Self::Byte(byte, context) => write!(out, "invalid character {} {context}", quoted(*byte)),
            Self::Literal { found, word, expected } => {
                write!(out, "invalid character {} in literal {word} (expecting {})", quoted(*found), quoted(*expected))
            }
        }
    }
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        other => {
            let text = crate::field::quote(char::from(other).encode_utf8(&mut [0; 4]));
            format!("'{}'", &text[1..text.len() - 1])
        }
    }
}

/// How many bytes at the beginning stand for themselves in a string: no quotes, backslashes or control characters.
///
/// Eight are looked at together: a subtraction sets the highest bit of a byte that was too small.
pub(crate) fn plain(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = 0x80 * ONES;
    let repeated = |byte: u8| u64::from(byte) * ONES;
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut length = 0;
    for chunk in text.chunks_exact(8) {
        let Ok(bytes) = chunk.try_into() else { break };
        let word = u64::from_ne_bytes(bytes);
        let low = word.wrapping_sub(repeated(b' ')) & !word & HIGH;
        if low | has_zero(word ^ repeated(b'"')) | has_zero(word ^ repeated(b'\\')) != 0 {
            break;
        }
        length += 8;
    }
    let rest = text[length..].iter();
    length + rest.take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..b' ')).count()
}

/// Checks one JSON value with nothing but white space around it.
pub(super) fn check(text: &[u8]) -> Result<(), SyntaxError> {
    let mut scanner = Scanner { text, at: 0, open: Vec::new() };
    scanner.document()
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The brackets that are open.
    open: Vec<u8>,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), SyntaxError> {
        loop {
            if self.value()? {
                continue;
            }
            if !self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Reads the beginning of a value; true where an object or list was opened and a value must follow.
    fn value(&mut self) -> Result<bool, SyntaxError> {
        let byte = self.token()?;
        match byte {
            b'{' => {
                self.opened(byte)?;
                if self.peek()? == b'}' {
                    self.close();
                    return Ok(false);
                }
                self.key()?;
                Ok(true)
            }
            b'[' => {
                self.opened(byte)?;
                if self.peek()? == b']' {
                    self.close();
                    return Ok(false);
                }
                Ok(true)
            }
            b'"' => self.string().map(|()| false),
            b't' => self.literal("true").map(|()| false),
            b'f' => self.literal("false").map(|()| false),
            b'n' => self.literal("null").map(|()| false),
            b'-' | b'0'..=b'9' => self.number(byte).map(|()| false),
            other => Err(SyntaxError::Byte(other, "looking for beginning of value")),
        }
    }

    /// Reads what follows a value; true where another value must follow.
    fn after_value(&mut self) -> Result<bool, SyntaxError> {
        loop {
            let Some(open) = self.open.last().copied() else {
                return match self.skip_space() {
                    None => Ok(false),
                    Some(byte) => Err(SyntaxError::Byte(byte, "after top-level value")),
                };
            };
            match (open, self.token()?) {
                (b'{', b',') => {
                    self.key()?;
                    return Ok(true);
                }
                (b'[', b',') => return Ok(true),
                (b'{', b'}') | (b'[', b']') => {
                    self.open.pop();
                }
                (b'{', byte) => return Err(SyntaxError::Byte(byte, "after object key:value pair")),
                (_, byte) => return Err(SyntaxError::Byte(byte, "after array element")),
            }
        }
    }

    fn opened(&mut self, byte: u8) -> Result<(), SyntaxError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(SyntaxError::Byte(byte, "exceeded max depth"));
        }
        self.open.push(byte);
        Ok(())
    }

    fn close(&mut self) {
        self.at += 1;
        self.open.pop();
    }

    fn key(&mut self) -> Result<(), SyntaxError> {
        match self.token()? {
            b'"' => self.string()?,
            other => return Err(SyntaxError::Byte(other, "looking for beginning of object key string")),
        }
        match self.token()? {
            b':' => Ok(()),
            other => Err(SyntaxError::Byte(other, "after object key")),
        }
    }

    fn string(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.at += plain(self.text.get(self.at..).unwrap_or_default());
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(SyntaxError::Byte(byte, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    other => return Err(SyntaxError::Byte(other, "in string escape code")),
                },
                low if low < 0x20 => return Err(SyntaxError::Byte(low, "in string literal")),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &'static str) -> Result<(), SyntaxError> {
        for expected in &word.as_bytes()[1..] {
            let found = self.next()?;
            if found != *expected {
                return Err(SyntaxError::Literal { found, word, expected: *expected });
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<(), SyntaxError> {
        let mut first = first;
        if first == b'-' {
            first = self.next()?;
            if !first.is_ascii_digit() {
                return Err(SyntaxError::Byte(first, "in numeric literal"));
            }
        }
        if first != b'0' {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn some_digits(&mut self, context: &'static str) -> Result<(), SyntaxError> {
        let byte = self.next()?;
        if !byte.is_ascii_digit() {
            return Err(SyntaxError::Byte(byte, context));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Result<u8, SyntaxError> {
        let byte = self.text.get(self.at).copied().ok_or(SyntaxError::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn token(&mut self) -> Result<u8, SyntaxError> {
        let byte = self.skip_space().ok_or(SyntaxError::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn peek(&mut self) -> Result<u8, SyntaxError> {
        self.skip_space().ok_or(SyntaxError::End)
    }

    fn skip_space(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }
}
