//! The token stream with what the parser has looked at and given back.

use crate::lex::{Kind, Lexer, Span, Token};

pub(super) struct Tokens<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// Given back, the next one last.
    returned: Vec<Token>,
    /// The token that the lexer made last: its line is the one that errors name.
    latest: Span,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, lexer: Lexer::new(text), returned: Vec::with_capacity(4), latest: Span::default() }
    }

    pub(super) fn next(&mut self) -> Token {
        self.returned.pop().unwrap_or_else(|| {
            let token = self.lexer.next();
            self.latest = token.span;
            token
        })
    }

    pub(super) fn peek(&mut self) -> Token {
        let token = self.next();
        self.returned.push(token);
        token
    }

    pub(super) fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    /// Drops the blanks here and shows what follows them.
    pub(super) fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.returned.push(token);
        token
    }

    pub(super) fn give_back(&mut self, token: Token) {
        self.returned.push(token);
    }

    pub(super) fn latest(&self) -> Span {
        self.latest
    }

    /// The line of the token that was read last.
    pub(super) fn line(&self) -> usize {
        self.line_of(self.latest)
    }

    pub(super) fn line_of(&self, span: Span) -> usize {
        1 + self.text.as_bytes()[..span.start as usize].iter().filter(|&&byte| byte == b'\n').count()
    }

    pub(super) fn error(&self) -> &str {
        self.lexer.error()
    }
}
