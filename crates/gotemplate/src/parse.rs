//! Tokens into nodes, with Go's grammar and Go's messages.

mod number;
mod tokens;

use std::collections::HashMap;

use crate::ast::{self, Arm, Branch, Call, Command, List, Literal, Loop, Node, Pipe, Term, TermKind};
use crate::error::ParseError;
use crate::funcs::Builtin;
use crate::lex::{Keyword, Kind, Span, Token};
use crate::limits::Limits;
use crate::quote::{Shown, quote, unquote};
use tokens::Tokens;

/// The template itself and those that it defines.
#[derive(Debug)]
pub(crate) struct Definitions {
    pub(crate) root: Definition,
    others: HashMap<Box<[u8]>, Definition>,
}

impl Definitions {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Definition> {
        if *self.root.name == *name { Some(&self.root) } else { self.others.get(name) }
    }
}

#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: Box<[u8]>,
    pub(crate) body: List,
}

/// Parses `text` as the template called `name`.
pub(crate) fn parse(name: &str, text: &str, limits: &Limits) -> Result<Definitions, ParseError> {
    let refuse = |line, message| ParseError { template: name.to_owned(), line, message };
    let longest = limits.template_bytes.min(Limits::MAX_TEMPLATE_BYTES);
    if text.len() > longest {
        return Err(refuse(1, format!("the template is longer than the limit of {longest} bytes")));
    }
    let mut parser = Parser {
        name,
        text,
        tokens: Tokens::new(text),
        scope: Scope::default(),
        defined: HashMap::new(),
        nesting: 0,
        limit: limits.nesting,
    };
    match parser.whole() {
        Ok(root) => Ok(Definitions { root, others: parser.defined }),
        Err(refusal) => Err(refuse(refusal.line.unwrap_or(parser.tokens.line()), refusal.message)),
    }
}

struct Refusal {
    message: String,
    /// Unless set, the line of the token that was read last.
    line: Option<usize>,
}

type Parsed<T> = Result<T, Refusal>;

struct Parser<'t> {
    name: &'t str,
    text: &'t str,
    tokens: Tokens<'t>,
    scope: Scope<'t>,
    defined: HashMap<Box<[u8]>, Definition>,
    nesting: usize,
    limit: usize,
}

/// What one definition knows on its way through its actions.
#[derive(Default)]
struct Scope<'t> {
    /// The variables in scope; `$` always is and does not stand here.
    variables: Vec<&'t str>,
    /// How often each of them stands there.
    counts: HashMap<&'t str, usize>,
    range_depth: usize,
    /// Where the action began that is being parsed.
    action: Option<Span>,
}

impl<'t> Scope<'t> {
    fn declare(&mut self, name: &'t str) {
        self.variables.push(name);
        *self.counts.entry(name).or_default() += 1;
    }

    fn truncate(&mut self, length: usize) {
        for name in self.variables.drain(length..) {
            if let Some(count) = self.counts.get_mut(name) {
                *count -= 1;
            }
        }
    }

    fn knows(&self, name: &str) -> bool {
        name == "$" || self.counts.get(name).is_some_and(|&count| count > 0)
    }
}

/// What ended a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Terminator {
    End,
    Else,
}

impl Terminator {
    fn shown(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

enum Item {
    Node(Node),
    Terminator(Terminator),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    If,
    With,
    Range,
}

impl Control {
    fn word(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }

    /// For an if or with, what follows `else` in the same action when the chain goes on.
    fn keyword(self) -> Kind {
        Kind::Keyword(match self {
            Self::If => Keyword::If,
            Self::With => Keyword::With,
            Self::Range => Keyword::Range,
        })
    }
}

/// What a pipeline is for; the words appear in messages.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Purpose {
    words: &'static str,
    end: Kind,
}

impl Purpose {
    const PARENTHESIZED: Self = Self { words: "parenthesized pipeline", end: Kind::RightParen };

    fn action(words: &'static str) -> Self {
        Self { words, end: Kind::RightDelim }
    }
}

fn refuse<T>(message: impl Into<String>) -> Parsed<T> {
    Err(Refusal { message: message.into(), line: None })
}

fn quoted(text: &str) -> String {
    quote(text.as_bytes(), Shown::Printable)
}

impl<'t> Parser<'t> {
    fn whole(&mut self) -> Parsed<Definition> {
        let mut body = List::new();
        while self.tokens.peek().kind != Kind::Eof {
            if self.tokens.peek().kind == Kind::LeftDelim {
                let delimiter = self.tokens.next();
                let following = self.tokens.next_non_space();
                if following.kind == Kind::Keyword(Keyword::Define) {
                    self.definition()?;
                    continue;
                }
                self.tokens.give_back(following);
                self.tokens.give_back(delimiter);
            }
            match self.item()? {
                Item::Node(node) => body.push(node),
                Item::Terminator(terminator) => return refuse(format!("unexpected {}", terminator.shown())),
            }
        }
        self.resolved(self.name.as_bytes().into(), body)
    }

    fn define(&mut self, name: Box<[u8]>, body: List) -> Parsed<()> {
        let definition = self.resolved(name.clone(), body)?;
        self.defined.insert(name, definition);
        Ok(())
    }

    /// What a name means once `body` is defined too: a blank definition gives way to another.
    fn resolved(&mut self, name: Box<[u8]>, body: List) -> Parsed<Definition> {
        let Some(existing) = self.defined.remove(&name) else {
            return Ok(Definition { name, body });
        };
        if ast::is_blank(&existing.body, self.text) {
            return Ok(Definition { name, body });
        }
        if ast::is_blank(&body, self.text) {
            return Ok(existing);
        }
        refuse(format!("template: multiple definition of template {}", quote(&name, Shown::Printable)))
    }

    fn definition(&mut self) -> Parsed<()> {
        const PURPOSE: &str = "define clause";
        let outer = std::mem::take(&mut self.scope);
        let token = self.tokens.next_non_space();
        let name = self.template_name(token, PURPOSE)?;
        self.expect(Kind::RightDelim, PURPOSE)?;
        let (body, terminator) = self.list()?;
        if terminator != Terminator::End {
            return refuse(format!("unexpected {} in {PURPOSE}", terminator.shown()));
        }
        self.define(name, body)?;
        self.scope = outer;
        Ok(())
    }

    fn template_name(&mut self, token: Token, purpose: &str) -> Parsed<Box<[u8]>> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, purpose);
        }
        match unquote(token.span.of(self.text)) {
            Some(name) => Ok(name.into()),
            None => refuse("invalid syntax"),
        }
    }

    /// Nodes up to an end or else.
    fn list(&mut self) -> Parsed<(List, Terminator)> {
        self.deeper("the actions are nested deeper than the limit", |parser| {
            let mut nodes = List::new();
            while parser.tokens.peek_non_space().kind != Kind::Eof {
                match parser.item()? {
                    Item::Node(node) => nodes.push(node),
                    Item::Terminator(terminator) => return Ok((nodes, terminator)),
                }
            }
            refuse("unexpected EOF")
        })
    }

    fn deeper<T>(&mut self, too_deep: &str, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == self.limit {
            return refuse(too_deep);
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn item(&mut self) -> Parsed<Item> {
        let token = self.tokens.next_non_space();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text(token.span))),
            Kind::LeftDelim => {
                self.scope.action = Some(token.span);
                let item = self.action()?;
                self.scope.action = None;
                Ok(item)
            }
            _ => self.unexpected(token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Item> {
        let token = self.tokens.next_non_space();
        let node = match token.kind {
            Kind::Keyword(Keyword::Block) => self.block()?,
            Kind::Keyword(Keyword::Break) => self.jump("{{break}}", Node::Break)?,
            Kind::Keyword(Keyword::Continue) => self.jump("{{continue}}", Node::Continue)?,
            Kind::Keyword(Keyword::Else) => return self.otherwise(),
            Kind::Keyword(Keyword::End) => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Item::Terminator(Terminator::End));
            }
            Kind::Keyword(Keyword::If) => Node::If(self.branch(Control::If)?),
            Kind::Keyword(Keyword::Range) => self.range()?,
            Kind::Keyword(Keyword::Template) => self.call()?,
            Kind::Keyword(Keyword::With) => Node::With(self.branch(Control::With)?),
            _ => {
                self.tokens.give_back(token);
                Node::Action(self.pipe(Purpose::action("command"))?)
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, shown: &str, node: Node) -> Parsed<Node> {
        self.expect(Kind::RightDelim, shown)?;
        if self.scope.range_depth == 0 {
            return refuse(format!("{shown} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    /// An else; what follows it in the same action, if anything, is left for the control that it belongs to.
    fn otherwise(&mut self) -> Parsed<Item> {
        let next = self.tokens.peek_non_space().kind;
        if !matches!(next, Kind::Keyword(Keyword::If | Keyword::With)) {
            self.expect(Kind::RightDelim, "else")?;
        }
        Ok(Item::Terminator(Terminator::Else))
    }

    /// An if or with, and all that its elses chain to it.
    fn branch(&mut self, control: Control) -> Parsed<Branch> {
        let variables = self.scope.variables.len();
        let mut arms = Vec::with_capacity(1);
        let otherwise = loop {
            let (arm, terminator) = self.arm(control)?;
            arms.push(arm);
            if terminator == Terminator::End {
                break None;
            }
            if self.tokens.peek().kind != control.keyword() {
                break Some(self.else_list()?);
            }
            self.tokens.next();
        };
        self.scope.truncate(variables);
        Ok(Branch { arms, otherwise })
    }

    fn range(&mut self) -> Parsed<Node> {
        let variables = self.scope.variables.len();
        let (arm, terminator) = self.arm(Control::Range)?;
        let otherwise = match terminator {
            Terminator::End => None,
            Terminator::Else => Some(self.else_list()?),
        };
        self.scope.truncate(variables);
        Ok(Node::Range(Loop { arm, otherwise }))
    }

    fn arm(&mut self, control: Control) -> Parsed<(Arm, Terminator)> {
        let pipe = self.pipe(Purpose::action(control.word()))?;
        let is_range = usize::from(control == Control::Range);
        self.scope.range_depth += is_range;
        let (list, terminator) = self.list()?;
        self.scope.range_depth -= is_range;
        Ok((Arm { pipe, list }, terminator))
    }

    fn else_list(&mut self) -> Parsed<List> {
        let (list, terminator) = self.list()?;
        if terminator != Terminator::End {
            return refuse(format!("expected end; found {}", terminator.shown()));
        }
        Ok(list)
    }

    /// A block defines a template and calls it at once.
    fn block(&mut self) -> Parsed<Node> {
        const PURPOSE: &str = "block clause";
        let token = self.tokens.next_non_space();
        let name = self.template_name(token, PURPOSE)?;
        let pipe = self.pipe(Purpose::action(PURPOSE))?;
        let outer = std::mem::take(&mut self.scope);
        let opened = self.tokens.latest();
        let (body, terminator) = self.list()?;
        if terminator != Terminator::End {
            let message = format!("unexpected {} in {PURPOSE}", terminator.shown());
            return Err(Refusal { message, line: Some(self.tokens.line_of(opened)) });
        }
        self.define(name.clone(), body)?;
        self.scope = outer;
        Ok(Node::Template(Call { position: token.span.start, name, pipe: Some(pipe) }))
    }

    fn call(&mut self) -> Parsed<Node> {
        const PURPOSE: &str = "template clause";
        let token = self.tokens.next_non_space();
        let name = self.template_name(token, PURPOSE)?;
        let next = self.tokens.next_non_space();
        let pipe = if next.kind == Kind::RightDelim {
            None
        } else {
            self.tokens.give_back(next);
            Some(self.pipe(Purpose::action(PURPOSE))?)
        };
        Ok(Node::Template(Call { position: token.span.start, name, pipe }))
    }

    fn pipe(&mut self, purpose: Purpose) -> Parsed<Pipe> {
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

    fn expect(&mut self, kind: Kind, purpose: &str) -> Parsed<()> {
        let token = self.tokens.next_non_space();
        if token.kind == kind { Ok(()) } else { self.unexpected(token, purpose) }
    }

    fn unexpected<T>(&self, token: Token, purpose: &str) -> Parsed<T> {
        match token.kind {
            Kind::Error => refuse(self.lexical_error(token)),
            Kind::Eof => refuse(format!("unexpected EOF in {purpose}")),
            Kind::Keyword(_) => refuse(format!("unexpected <{}> in {purpose}", token.span.of(self.text))),
            _ => refuse(format!("unexpected {} in {purpose}", abbreviated(token.span.of(self.text)))),
        }
    }

    /// The lexer's message, with the line where the action began when that is another one.
    fn lexical_error(&self, token: Token) -> String {
        let message = self.tokens.error();
        let began = self.scope.action.map(|span| self.tokens.line_of(span));
        match began {
            Some(line) if line != self.tokens.line_of(token.span) => {
                let link = if message.ends_with(" action") { "" } else { " in action" };
                format!("{message}{link} started at {}:{line}", self.name)
            }
            _ => message.to_owned(),
        }
    }
}

/// A token as errors quote it: at most ten characters.
fn abbreviated(text: &str) -> String {
    if text.len() <= 10 {
        return quoted(text);
    }
    let cut: String = text.chars().take(10).collect();
    format!("{}...", quoted(&cut))
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
