//! Splits the text of an expression into tokens, and tells what is none as the reference implementation does.

use crate::error::Problem;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An operator or a bracket; its text says which. `in`, `true`, `false` and `null` are among them.
    Symbol,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    /// `` `name` ``
    QuotedIdentifier,
    End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// In characters from the begin of the text.
    pub(crate) position: u32,
}

const SYMBOLS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%",
];
const WORDS: &[&str] = &["in", "true", "false", "null"];

/// All tokens with an end, and what could not be read.
pub(crate) fn tokens(text: &str) -> (Vec<Token>, Vec<Problem>) {
    let mut lexer = Lexer { characters: text.chars().collect(), position: 0 };
    let mut tokens = Vec::new();
    let mut problems = Vec::new();
    while lexer.skip_blanks() {
        let start = lexer.position;
        match lexer.longest() {
            Ok((kind, end)) => {
                lexer.position = end;
                tokens.push(Token { kind, text: lexer.text(start, end), position: start as u32 });
            }
            Err(failed_at) => {
                // The character that does not fit is part of what is skipped.
                let end = (failed_at + 1).min(lexer.characters.len());
                let message = format!("Syntax error: token recognition error at: '{}'", lexer.text(start, end));
                problems.push(Problem::new(Some(start as u32), message));
                lexer.position = end.max(start + 1);
            }
        }
    }
    let position = lexer.characters.len() as u32;
    tokens.push(Token { kind: Kind::End, text: "<EOF>".to_owned(), position });
    (tokens, problems)
}

struct Lexer {
    characters: Vec<char>,
    position: usize,
}

impl Lexer {
    fn at(&self, position: usize) -> Option<char> {
        self.characters.get(position).copied()
    }

    fn text(&self, start: usize, end: usize) -> String {
        self.characters[start..end].iter().collect()
    }

    /// Steps over blanks and comments; says whether something follows.
    fn skip_blanks(&mut self) -> bool {
        loop {
            match self.at(self.position) {
                Some('\t' | ' ' | '\r' | '\n' | '\u{c}') => self.position += 1,
                Some('/') if self.at(self.position + 1) == Some('/') => {
                    while self.at(self.position).is_some_and(|c| c != '\n') {
                        self.position += 1;
                    }
                }
                next => return next.is_some(),
            }
        }
    }

    /// The longest token at the current position and its end, or where reading failed.
    fn longest(&self) -> Result<(Kind, usize), usize> {
        let start = self.position;
        let first = self.at(start).unwrap_or_default();
        let mut failed_at = start;
        let mut best: Option<(Kind, usize)> = None;
        let mut offer = |kind, found: Result<usize, usize>| match found {
            Ok(end) if best.is_none_or(|(_, longest)| end > longest) => best = Some((kind, end)),
            Ok(_) => {}
            Err(at) => failed_at = failed_at.max(at),
        };
        if first.is_ascii_digit() || first == '.' {
            let (kind, end) = self.number(start);
            offer(kind, end);
        }
        if let Some((kind, quote)) = self.string_prefix(start) {
            offer(kind, self.string(quote, false));
            offer(kind, self.string(quote, true));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let end = self.run(start, |c| c.is_ascii_alphanumeric() || c == '_');
            let is_word = WORDS.contains(&self.text(start, end).as_str());
            offer(if is_word { Kind::Symbol } else { Kind::Identifier }, Ok(end));
        }
        if first == '`' {
            offer(Kind::QuotedIdentifier, self.quoted_identifier(start));
        }
        for symbol in SYMBOLS {
            let matched =
                symbol.chars().enumerate().take_while(|(offset, c)| self.at(start + offset) == Some(*c)).count();
            offer(Kind::Symbol, if matched == symbol.len() { Ok(start + matched) } else { Err(start + matched) });
        }
        best.ok_or(failed_at)
    }

    fn run(&self, from: usize, belongs: impl Fn(char) -> bool) -> usize {
        (from..).find(|&at| !self.at(at).is_some_and(&belongs)).unwrap_or(from)
    }

    fn number(&self, start: usize) -> (Kind, Result<usize, usize>) {
        let digits = |from: usize| self.run(from, |c| c.is_ascii_digit());
        let unsigned = |end: usize| match self.at(end) {
            Some('u' | 'U') => (Kind::Uint, Ok(end + 1)),
            _ => (Kind::Int, Ok(end)),
        };
        if self.at(start) == Some('0') && self.at(start + 1) == Some('x') {
            let end = self.run(start + 2, |c| c.is_ascii_hexdigit());
            return if end > start + 2 { unsigned(end) } else { (Kind::Int, Ok(start + 1)) };
        }
        let whole = digits(start);
        let fraction = if self.at(whole) == Some('.') { digits(whole + 1) } else { whole };
        let has_fraction = fraction > whole + 1;
        let mantissa = if has_fraction { fraction } else { whole };
        if mantissa == start {
            return (Kind::Float, Err(start));
        }
        let exponent = match self.at(mantissa) {
            Some('e' | 'E') => {
                let sign = usize::from(matches!(self.at(mantissa + 1), Some('+' | '-')));
                Some(digits(mantissa + 1 + sign)).filter(|end| *end > mantissa + 1 + sign)
            }
            _ => None,
        };
        match exponent {
            Some(end) => (Kind::Float, Ok(end)),
            None if has_fraction => (Kind::Float, Ok(mantissa)),
            None => unsigned(whole),
        }
    }

    /// The kind of a string that begins here, and where its first quote stands.
    fn string_prefix(&self, start: usize) -> Option<(Kind, usize)> {
        let mut at = start;
        let is_bytes = matches!(self.at(at), Some('b' | 'B'));
        at += usize::from(is_bytes);
        at += usize::from(matches!(self.at(at), Some('r' | 'R')));
        let kind = if is_bytes { Kind::Bytes } else { Kind::String };
        matches!(self.at(at), Some('"' | '\'')).then_some((kind, at))
    }

    /// The end of a string whose quote, one or three, is at an offset.
    fn string(&self, quote: usize, triple: bool) -> Result<usize, usize> {
        let mark = self.at(quote).unwrap_or_default();
        let raw = quote > 0 && matches!(self.at(quote - 1), Some('r' | 'R'));
        let is_mark = |at: usize| (at..at + if triple { 3 } else { 1 }).all(|at| self.at(at) == Some(mark));
        let width = if triple { 3 } else { 1 };
        if !is_mark(quote) {
            return Err((quote..quote + width).find(|&at| self.at(at) != Some(mark)).unwrap_or(quote));
        }
        let mut at = quote + width;
        loop {
            match self.at(at) {
                None => return Err(at),
                Some(_) if is_mark(at) => return Ok(at + width),
                Some('\\') if !raw => at = self.escape(at)?,
                Some('\n' | '\r') if !triple => return Err(at),
                Some(_) => at += 1,
            }
        }
    }

    /// Steps over an escape sequence.
    fn escape(&self, backslash: usize) -> Result<usize, usize> {
        let digits = |count: usize, fits: fn(char) -> bool| {
            let from = backslash + 2;
            match (from..from + count).find(|&at| !self.at(at).is_some_and(fits)) {
                Some(at) => Err(at),
                None => Ok(from + count),
            }
        };
        match self.at(backslash + 1) {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(backslash + 2),
            Some('x' | 'X') => digits(2, |c| c.is_ascii_hexdigit()),
            Some('u') => digits(4, |c| c.is_ascii_hexdigit()),
            Some('U') => digits(8, |c| c.is_ascii_hexdigit()),
            Some('0'..='3') => digits(2, |c| matches!(c, '0'..='7')),
            _ => Err(backslash + 1),
        }
    }

    fn quoted_identifier(&self, start: usize) -> Result<usize, usize> {
        let end = self.run(start + 1, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' '));
        if end > start + 1 && self.at(end) == Some('`') { Ok(end + 1) } else { Err(end) }
    }
}
