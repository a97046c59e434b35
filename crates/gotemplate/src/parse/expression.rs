//! What stands inside an action: pipelines, commands, operands and terms.

use super::{Control, Parsed, Parser, number, quoted, refuse};
use crate::ast::{Command, Literal, Pipe, Term, TermKind};
use crate::funcs::Builtin;
use crate::lex::{Keyword, Kind, Span};
use crate::quote::unquote;

/// What a pipeline is for; the words appear in messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Purpose {
    words: &'static str,
    end: Kind,
}

impl Purpose {
    const PARENTHESIZED: Self = Self { words: "parenthesized pipeline", end: Kind::RightParen };

    pub(super) fn action(words: &'static str) -> Self {
        Self { words, end: Kind::RightDelim }
    }
}

impl Parser<'_> {
    pub(super) fn pipe(&mut self, purpose: Purpose) -> Parsed<Pipe> {
        let position = self.tokens.peek_non_space().span.start;
        let mut pipe = Pipe { position, variables: Vec::new(), assigns: false, commands: Vec::new() };
        self.declarations(&mut pipe, purpose)?;
        loop {
            let token = self.tokens.next_non_space();
            match token.kind {
                kind if kind == purpose.end => {
                    check_complete(&pipe, purpose)?;
                    return Ok(pipe);
                }
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Field
                | Kind::Identifier
                | Kind::Keyword(Keyword::Dot | Keyword::Nil)
                | Kind::LeftParen
                | Kind::Number
                | Kind::RawString
                | Kind::String
                | Kind::Variable => {
                    self.tokens.give_back(token);
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(token, purpose.words),
            }
        }
    }

    /// The variables before `:=` or `=`. A variable that is followed by neither begins the first command.
    fn declarations(&mut self, pipe: &mut Pipe, purpose: Purpose) -> Parsed<()> {
        loop {
            let variable = self.tokens.peek_non_space();
            if variable.kind != Kind::Variable {
                return Ok(());
            }
            self.tokens.next();
            let adjacent = self.tokens.peek();
            let next = self.tokens.peek_non_space();
            let comma = next.kind == Kind::Char && next.span.of(self.text) == ",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                if adjacent.kind == Kind::Space {
                    self.tokens.give_back(adjacent);
                }
                self.tokens.give_back(variable);
                return Ok(());
            }
            self.tokens.next_non_space();
            pipe.variables.push(variable.span);
            self.scope.declare(variable.span.of(self.text));
            if !comma {
                pipe.assigns = next.kind == Kind::Assign;
                return Ok(());
            }
            if purpose.words != Control::Range.word() || pipe.variables.len() > 1 {
                return refuse(format!("too many declarations in {}", purpose.words));
            }
            if !matches!(self.tokens.peek_non_space().kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                return refuse("range can only initialize variables");
            }
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        let position = self.tokens.peek_non_space().span.start;
        let mut terms = Vec::new();
        loop {
            self.tokens.peek_non_space();
            terms.extend(self.operand()?);
            let token = self.tokens.next();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelim | Kind::RightParen => self.tokens.give_back(token),
                Kind::Pipe => {}
                _ => return self.unexpected(token, "operand"),
            }
            break;
        }
        if terms.is_empty() { refuse("empty command") } else { Ok(Command { position, terms }) }
    }

    /// A term and the fields that follow it without a blank.
    fn operand(&mut self) -> Parsed<Option<Term>> {
        let Some(term) = self.term()? else {
            return Ok(None);
        };
        let first = self.tokens.peek();
        if first.kind != Kind::Field {
            return Ok(Some(term));
        }
        let mut fields = first.span;
        while self.tokens.peek().kind == Kind::Field {
            fields.end = self.tokens.next().span.end;
        }
        let position = fields.start;
        let source = Span { start: term.source.start, end: fields.end };
        Ok(Some(match term.kind {
            TermKind::Field | TermKind::Variable => Term { position, source, kind: term.kind },
            TermKind::Bool(_) | TermKind::Str(_) | TermKind::Number(_) | TermKind::Nil | TermKind::Dot => {
                return refuse(format!("unexpected . after term {}", quoted(term.source.of(self.text))));
            }
            _ => Term { position, source, kind: TermKind::Chain { base: Box::new(term), fields } },
        }))
    }

    fn term(&mut self) -> Parsed<Option<Term>> {
        let token = self.tokens.next_non_space();
        let source = token.span.of(self.text);
        let kind = match token.kind {
            Kind::Keyword(Keyword::Dot) => TermKind::Dot,
            Kind::Keyword(Keyword::Nil) => TermKind::Nil,
            Kind::Identifier => match Builtin::named(source) {
                Some(function) => TermKind::Function(function),
                None => return refuse(format!("function {} not defined", quoted(source))),
            },
            Kind::Variable if self.scope.knows(source) => TermKind::Variable,
            Kind::Variable => return refuse(format!("undefined variable {}", quoted(source))),
            Kind::Field => TermKind::Field,
            Kind::Bool => TermKind::Bool(source == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                TermKind::Number(number::constant(source, token.kind).or_else(refuse)?)
            }
            Kind::LeftParen => TermKind::Pipe(Box::new(
                self.deeper("max expression depth exceeded", |parser| parser.pipe(Purpose::PARENTHESIZED))?,
            )),
            Kind::String | Kind::RawString => TermKind::Str(string(token.span, source)?),
            _ => {
                self.tokens.give_back(token);
                return Ok(None);
            }
        };
        Ok(Some(Term { position: token.span.start, source: token.span, kind }))
    }
}

fn string(span: Span, source: &str) -> Parsed<Literal> {
    if !source.contains(['\\', '\r']) {
        return Ok(Literal::Plain(Span { start: span.start + 1, end: span.end - 1 }));
    }
    match unquote(source) {
        Some(bytes) => Ok(Literal::Decoded(bytes.into())),
        None => refuse("invalid syntax"),
    }
}

/// A pipeline must do something, and only its first command may be a plain value.
fn check_complete(pipe: &Pipe, purpose: Purpose) -> Parsed<()> {
    if pipe.commands.is_empty() {
        return refuse(format!("missing value for {}", purpose.words));
    }
    for (i, command) in pipe.commands.iter().enumerate().skip(1) {
        let plain = matches!(
            command.terms.first().map(|term| &term.kind),
            Some(TermKind::Bool(_) | TermKind::Dot | TermKind::Nil | TermKind::Number(_) | TermKind::Str(_))
        );
        if plain {
            return refuse(format!("non executable command in pipeline stage {}", i + 1));
        }
    }
    Ok(())
}
