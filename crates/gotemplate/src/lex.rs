//! Cuts a template into tokens, one at a time, so that the parser's errors name the line it had reached.

use crate::quote::{Shown, quote};
use crate::unicode::{is_alphanumeric, is_printable};

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const COMMENT_START: &str = "/*";
const COMMENT_END: &str = "*/";

/// A piece of the template's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        // A template longer than `Limits::MAX_TEMPLATE_BYTES` never gets here.
        Self { start: start as u32, end: end as u32 }
    }

    pub(crate) fn of(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What stands for a token that could not be read; the lexer holds the message.
    Error,
    Eof,
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Assign,
    Declare,
    Pipe,
    LeftParen,
    RightParen,
    /// Any other printable character, such as a comma.
    Char,
    CharConstant,
    Number,
    Complex,
    String,
    RawString,
    Bool,
    Identifier,
    Variable,
    /// A name with its dot: `.name`.
    Field,
    Keyword(Keyword),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Dot,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    position: usize,
    state: State,
    paren_depth: usize,
    error: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// At a left delimiter.
    Open,
    Action,
    Done,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, position: 0, state: State::Text, paren_depth: 0, error: None }
    }

    /// The message of the error token, once one was returned.
    pub(crate) fn error(&self) -> &str {
        self.error.as_deref().unwrap_or_default()
    }

    /// The next token; after the end or an error, always the end.
    pub(crate) fn next(&mut self) -> Token {
        loop {
            let token = match self.state {
                State::Text => self.text_or_end(),
                State::Open => self.open(),
                State::Action => Some(self.action()),
                State::Done => Some(self.token(Kind::Eof, self.position)),
            };
            if let Some(token) = token {
                return token;
            }
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += c.len_utf8();
        Some(c)
    }

    fn token(&self, kind: Kind, start: usize) -> Token {
        Token { kind, span: Span::new(start, self.position) }
    }

    fn fail(&mut self, start: usize, message: impl Into<String>) -> Token {
        self.state = State::Done;
        self.error = Some(message.into());
        self.token(Kind::Error, start)
    }

    /// Text up to the next action, without the white space that the action's marker trims away.
    fn text_or_end(&mut self) -> Option<Token> {
        let start = self.position;
        let Some(length) = find_left(self.rest()) else {
            self.position = self.text.len();
            self.state = State::Done;
            return (start < self.position).then(|| self.token(Kind::Text, start));
        };
        self.position += length;
        self.state = State::Open;
        let after_delimiter = &self.rest()[LEFT.len()..];
        let mut text = &self.text[start..self.position];
        if has_left_trim(after_delimiter) {
            text = text.trim_end_matches(is_space);
        }
        (!text.is_empty()).then(|| Token { kind: Kind::Text, span: Span::new(start, start + text.len()) })
    }

    fn open(&mut self) -> Option<Token> {
        let start = self.position;
        let trim = if has_left_trim(&self.rest()[LEFT.len()..]) { 2 } else { 0 };
        if self.rest()[LEFT.len() + trim..].starts_with(COMMENT_START) {
            self.position += LEFT.len() + trim;
            return self.comment();
        }
        self.position += LEFT.len();
        self.state = State::Action;
        self.paren_depth = 0;
        let token = self.token(Kind::LeftDelim, start);
        self.position += trim;
        Some(token)
    }

    fn comment(&mut self) -> Option<Token> {
        let start = self.position;
        let inside = COMMENT_START.len();
        let Some(length) = self.rest()[inside..].find(COMMENT_END) else {
            return Some(self.fail(start, "unclosed comment"));
        };
        self.position += inside + length + COMMENT_END.len();
        let Some(trims) = closes(self.rest()) else {
            return Some(self.fail(start, "comment ends before closing delimiter"));
        };
        self.close(trims);
        None
    }

    /// Passes over a right delimiter, and the white space after it when it trims.
    fn close(&mut self, trims: bool) {
        if trims {
            self.position += 2;
        }
        self.position += RIGHT.len();
        if trims {
            let rest = self.rest();
            self.position += rest.len() - rest.trim_start_matches(is_space).len();
        }
        self.state = State::Text;
    }

    fn action(&mut self) -> Token {
        let start = self.position;
        if let Some(trims) = closes(self.rest()) {
            return self.right_delimiter(start, trims);
        }
        let Some(c) = self.bump() else {
            return self.fail(start, "unclosed action");
        };
        match c {
            _ if is_space(c) => self.space(start),
            '=' => self.token(Kind::Assign, start),
            ':' if self.bump() == Some('=') => self.token(Kind::Declare, start),
            ':' => self.fail(start, "expected :="),
            '|' => self.token(Kind::Pipe, start),
            '"' => self.quoted(start, '"', Kind::String, "unterminated quoted string"),
            '\'' => self.quoted(start, '\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw_string(start),
            '$' => self.name_after_sigil(start, Kind::Variable, Kind::Variable),
            // At the very end of the text a dot counts as the beginning of a number.
            '.' if self.peek().is_some_and(|next| !next.is_ascii_digit()) => {
                self.name_after_sigil(start, Kind::Field, Kind::Keyword(Keyword::Dot))
            }
            '.' | '+' | '-' | '0'..='9' => self.number(start),
            '(' => {
                self.paren_depth += 1;
                self.token(Kind::LeftParen, start)
            }
            ')' if self.paren_depth == 0 => self.fail(start, "unexpected right paren"),
            ')' => {
                self.paren_depth -= 1;
                self.token(Kind::RightParen, start)
            }
            _ if is_alphanumeric(c) => self.word(start),
            _ if c.is_ascii() && is_printable(c) => self.token(Kind::Char, start),
            _ => self.fail(start, format!("unrecognized character in action: {}", describe(c))),
        }
    }

    fn right_delimiter(&mut self, start: usize, trims: bool) -> Token {
        if self.paren_depth > 0 {
            return self.fail(start, "unclosed left paren");
        }
        let delimiter = start + if trims { 2 } else { 0 };
        let token = Token { kind: Kind::RightDelim, span: Span::new(delimiter, delimiter + RIGHT.len()) };
        self.close(trims);
        token
    }

    /// White space, except the one blank that belongs to a trimming right delimiter.
    fn space(&mut self, start: usize) -> Token {
        loop {
            if closes(self.rest()) == Some(true) {
                break;
            }
            match self.peek() {
                Some(c) if is_space(c) => self.position += 1,
                _ => break,
            }
        }
        self.token(Kind::Space, start)
    }

    fn word(&mut self, start: usize) -> Token {
        if let Some(bad) = self.skip_alphanumeric() {
            return bad(self, start);
        }
        let kind = match &self.text[start..self.position] {
            "true" | "false" => Kind::Bool,
            "block" => Kind::Keyword(Keyword::Block),
            "break" => Kind::Keyword(Keyword::Break),
            "continue" => Kind::Keyword(Keyword::Continue),
            "define" => Kind::Keyword(Keyword::Define),
            "else" => Kind::Keyword(Keyword::Else),
            "end" => Kind::Keyword(Keyword::End),
            "if" => Kind::Keyword(Keyword::If),
            "nil" => Kind::Keyword(Keyword::Nil),
            "range" => Kind::Keyword(Keyword::Range),
            "template" => Kind::Keyword(Keyword::Template),
            "with" => Kind::Keyword(Keyword::With),
            _ => Kind::Identifier,
        };
        self.token(kind, start)
    }

    /// A variable or field, whose dollar or dot was taken; alone, that sign has a meaning of its own.
    fn name_after_sigil(&mut self, start: usize, named: Kind, alone: Kind) -> Token {
        if self.at_terminator() {
            return self.token(alone, start);
        }
        match self.skip_alphanumeric() {
            Some(bad) => bad(self, start),
            None => self.token(named, start),
        }
    }

    /// Passes over the rest of a name. When something follows that cannot, returns how to report it.
    fn skip_alphanumeric(&mut self) -> Option<fn(&mut Self, usize) -> Token> {
        while self.peek().is_some_and(is_alphanumeric) {
            self.bump();
        }
        if self.at_terminator() {
            return None;
        }
        Some(|lexer, start| {
            let bad = lexer.peek().map(describe).unwrap_or_default();
            lexer.fail(start, format!("bad character {bad}"))
        })
    }

    /// Whether the character here may follow a name.
    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(c) => is_space(c) || self.rest().starts_with(RIGHT),
        }
    }

    fn quoted(&mut self, start: usize, quote: char, kind: Kind, unterminated: &str) -> Token {
        loop {
            match self.bump() {
                Some('\\') => {
                    if matches!(self.bump(), None | Some('\n')) {
                        return self.fail(start, unterminated);
                    }
                }
                None | Some('\n') => return self.fail(start, unterminated),
                Some(c) if c == quote => return self.token(kind, start),
                Some(_) => {}
            }
        }
    }

    fn raw_string(&mut self, start: usize) -> Token {
        match self.rest().find('`') {
            Some(length) => {
                self.position += length + 1;
                self.token(Kind::RawString, start)
            }
            None => self.fail(start, "unterminated raw quoted string"),
        }
    }

    /// Anything that looks like a number; whether it is one, the parser decides.
    fn number(&mut self, start: usize) -> Token {
        self.position = start;
        if !self.scan_number() {
            return self.bad_number(start);
        }
        if !matches!(self.peek(), Some('+' | '-')) {
            return self.token(Kind::Number, start);
        }
        if !self.scan_number() || !self.text[..self.position].ends_with('i') {
            return self.bad_number(start);
        }
        self.token(Kind::Complex, start)
    }

    fn bad_number(&mut self, start: usize) -> Token {
        let seen = quote(&self.text.as_bytes()[start..self.position], Shown::Printable);
        self.fail(start, format!("bad number syntax: {seen}"))
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEXADECIMAL: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            // A leading 0 alone does not mean octal: it may begin a float.
            if self.accept("xX") {
                digits = HEXADECIMAL;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits {
            DECIMAL => "eE",
            HEXADECIMAL => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.bump();
            return false;
        }
        true
    }

    fn accept(&mut self, any_of: &str) -> bool {
        let accepted = self.peek().is_some_and(|c| any_of.contains(c));
        if accepted {
            self.position += 1;
        }
        accepted
    }

    fn accept_run(&mut self, any_of: &str) {
        while self.accept(any_of) {}
    }
}

/// Blank, tab, carriage return and newline: what may be trimmed, and what separates arguments.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Where the next action begins; most text has no brace at all.
fn find_left(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let brace = from + text[from..].find('{')?;
        if text[brace..].starts_with(LEFT) {
            return Some(brace);
        }
        from = brace + 1;
    }
}

/// Whether the text after a left delimiter begins with a marker that trims.
fn has_left_trim(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-') && chars.next().is_some_and(is_space)
}

/// Whether `text` begins with a right delimiter, and if so, whether that one trims.
fn closes(text: &str) -> Option<bool> {
    if text.starts_with(RIGHT) {
        return Some(false);
    }
    let marked = text.strip_prefix(is_space)?.strip_prefix('-')?;
    marked.starts_with(RIGHT).then_some(true)
}

/// A character by its number and, when it can be shown, by itself.
fn describe(c: char) -> String {
    let code = u32::from(c);
    if is_printable(c) { format!("U+{code:04X} '{c}'") } else { format!("U+{code:04X}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds and texts of all tokens of a template, the error message last when there is one.
    fn tokens(text: &str) -> Vec<String> {
        let mut lexer = Lexer::new(text);
        let mut seen = Vec::new();
        loop {
            let token = lexer.next();
            match token.kind {
                Kind::Eof => return seen,
                Kind::Error => {
                    seen.push(format!("error: {}", lexer.error()));
                    return seen;
                }
                kind => seen.push(format!("{kind:?} {:?}", token.span.of(text))),
            }
        }
    }

    #[test]
    fn white_space_is_trimmed_on_the_marked_sides() {
        assert_eq!(
            tokens("a \n{{- 3 -}}\t b"),
            ["Text \"a\"", "LeftDelim \"{{\"", "Number \"3\"", "RightDelim \"}}\"", "Text \"b\""]
        );
        assert_eq!(tokens("a {{/* c */ -}} b"), ["Text \"a \"", "Text \"b\""]);
    }

    #[test]
    fn errors_say_what_was_found() {
        assert_eq!(tokens("{{.a-b}}").last().unwrap(), "error: bad character U+002D '-'");
        assert_eq!(tokens("{{\u{1}}}").last().unwrap(), "error: unrecognized character in action: U+0001");
        assert_eq!(tokens("{{(1}}").last().unwrap(), "error: unclosed left paren");
        assert_eq!(tokens("{{1x}}").last().unwrap(), "error: bad number syntax: \"1x\"");
        assert_eq!(tokens("{{/* a */ b}}"), ["error: comment ends before closing delimiter"]);
    }
}
