//! Reads the text of an expression into a tree.
//!
//! Errors are worded as the reference implementation words them, because the answers of an API server carry them.

mod lexer;
mod macros;
mod unquote;

use lexer::{Kind, Token};

use crate::{
    ast::{Call, Element, Entry, Expr, ExprKind, Literal, Positions},
    error::{CompileError, Problem},
};

/// A longer expression is refused, in characters.
const MAX_LENGTH: usize = 100_000;
/// Deeper nesting is refused, so that no expression can exhaust the stack.
const MAX_DEPTH: usize = 250;
/// More open brackets and branches are refused: each costs the parser several calls.
const MAX_NESTING: usize = 80;
/// How the reference implementation lists what may begin a value.
const VALUE_STARTS: &str =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// Words that are kept for languages that may come.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// A parsed expression.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    pub(crate) positions: Positions,
}

/// Parses an expression.
pub(crate) fn parse(text: &str, names: bool) -> Result<Parsed, CompileError> {
    let length = text.chars().count();
    if length > MAX_LENGTH {
        let message = format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}");
        return Err(CompileError::new(text, vec![Problem::new(None, message)]));
    }
    let (tokens, problems) = lexer::tokens(text);
    let (positions, heights) = (Positions::default(), Vec::new());
    let mut parser = Parser { tokens, names, at: 0, nesting: 0, positions, heights, problems };
    let root = parser.whole();
    match root {
        Ok(root) if parser.problems.is_empty() => Ok(Parsed { root, positions: parser.positions }),
        _ => Err(CompileError::new(text, parser.problems)),
    }
}

/// The parser gave up; the problem is among those told.
struct Stop;

type Result<T, E = Stop> = std::result::Result<T, E>;

struct Parser {
    tokens: Vec<Token>,
    /// Whether there is `cel.bind`.
    names: bool,
    at: usize,
    /// How many brackets and branches are open.
    nesting: usize,
    positions: Positions,
    /// The height of the tree below each node.
    heights: Vec<usize>,
    problems: Vec<Problem>,
}

impl Parser {
    fn whole(&mut self) -> Result<Expr> {
        let root = self.expression()?;
        if self.peek().kind != Kind::End {
            let is_last = self.tokens[self.at + 1].kind == Kind::End;
            let what = if is_last { "extraneous" } else { "mismatched" };
            return self.syntax_error(format!("{what} input '{}' expecting <EOF>", self.peek().text));
        }
        Ok(root)
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn is(&self, symbol: &str) -> bool {
        self.peek().kind == Kind::Symbol && self.peek().text == symbol
    }

    /// Steps over a symbol if it is next, and gives its position.
    fn take(&mut self, symbol: &str) -> Option<u32> {
        if self.is(symbol) { Some(self.next().position) } else { None }
    }

    fn syntax_error<T>(&mut self, message: String) -> Result<T> {
        let position = self.peek().position;
        self.problems.push(Problem::new(Some(position), format!("Syntax error: {message}")));
        Err(Stop)
    }

    fn problem(&mut self, position: u32, message: impl Into<String>) {
        self.problems.push(Problem::new(Some(position), message));
    }

    /// Steps over a symbol that has to come. A single word too many or a bracket that is merely missing is told as such.
    fn expect(&mut self, symbol: &str) -> Result<u32> {
        if let Some(position) = self.take(symbol) {
            return Ok(position);
        }
        let found = self.peek().clone();
        let after = self.tokens.get(self.at + 1);
        let one_too_many = after.is_some_and(|after| after.kind == Kind::Symbol && after.text == symbol);
        let may_follow = found.kind == Kind::End
            || found.kind == Kind::Symbol
                && !matches!(found.text.as_str(), "{" | "(" | "!" | "true" | "false" | "null");
        let message = match symbol {
            _ if one_too_many => format!("extraneous input '{}' expecting '{symbol}'", found.text),
            ":" => format!("mismatched input '{}' expecting ':'", found.text),
            _ if may_follow => format!("missing '{symbol}' at '{}'", found.text),
            _ => format!("mismatched input '{}' expecting '{symbol}'", found.text),
        };
        self.syntax_error(message)
    }

    /// Makes a node at a position.
    fn make(&mut self, position: Option<u32>, kind: ExprKind) -> Result<Expr> {
        let height = 1 + children(&kind).into_iter().map(|child| self.heights[child.id]).max().unwrap_or(0);
        if height > MAX_DEPTH {
            self.problems.push(Problem::new(None, format!("expression recursion limit exceeded: {MAX_DEPTH}")));
            return Err(Stop);
        }
        let id = self.positions.add(position);
        self.heights.push(height);
        Ok(Expr { id, kind })
    }

    fn call(&mut self, position: Option<u32>, function: &str, args: Vec<Expr>) -> Result<Expr> {
        self.make(position, ExprKind::Call(Call { function: function.to_owned(), target: None, args }))
    }

    fn expression(&mut self) -> Result<Expr> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            self.problems.push(Problem::new(None, format!("expression recursion limit exceeded: {MAX_NESTING}")));
            return Err(Stop);
        }
        let condition = self.logical("||")?;
        let result = match self.take("?") {
            Some(position) => {
                let yes = self.logical("||")?;
                self.expect(":")?;
                let no = self.expression()?;
                self.call(Some(position), "_?_:_", vec![condition, yes, no])
            }
            None => Ok(condition),
        };
        self.nesting -= 1;
        result
    }

    /// Terms joined by `||`, or within those by `&&`, as a tree that is no deeper than it has to be.
    fn logical(&mut self, operator: &str) -> Result<Expr> {
        let mut terms = Vec::new();
        let mut operators = Vec::new();
        loop {
            terms.push(Some(if operator == "||" { self.logical("&&")? } else { self.binary(0)? }));
            match self.take(operator) {
                Some(position) => operators.push(position),
                None => break,
            }
        }
        let function = if operator == "||" { "_||_" } else { "_&&_" };
        self.balanced(function, &mut terms, &operators)
    }

    fn balanced(&mut self, function: &str, terms: &mut [Option<Expr>], operators: &[u32]) -> Result<Expr> {
        if let [term] = terms {
            return term.take().ok_or(Stop);
        }
        let middle = terms.len().div_ceil(2);
        let (left, right) = terms.split_at_mut(middle);
        let left = self.balanced(function, left, &operators[..middle - 1])?;
        let right = self.balanced(function, right, &operators[middle..])?;
        self.call(Some(operators[middle - 1]), function, vec![left, right])
    }

    /// Relations, sums and products, by how strongly their operators bind.
    fn binary(&mut self, level: usize) -> Result<Expr> {
        const LEVELS: &[&[&str]] = &[&["<", "<=", ">=", ">", "==", "!=", "in"], &["+", "-"], &["*", "/", "%"]];
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.is(operator)) {
            let position = self.next().position;
            let right = self.binary(level + 1)?;
            let function = if *operator == "in" { "@in".to_owned() } else { format!("_{operator}_") };
            left = self.call(Some(position), &function, vec![left, right])?;
        }
        Ok(left)
    }

    /// Signs cancel each other out by pairs; one before a number is part of it.
    fn unary(&mut self) -> Result<Expr> {
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            if !self.is(symbol) || symbol == "-" && self.is_negative_number() {
                continue;
            }
            let position = self.next().position;
            let mut count = 1;
            while self.is(symbol) && !(symbol == "-" && self.is_negative_number() && count % 2 == 0) {
                self.next();
                count += 1;
            }
            let operand = self.member()?;
            return if count % 2 == 0 { Ok(operand) } else { self.call(Some(position), function, vec![operand]) };
        }
        self.member()
    }

    fn is_negative_number(&self) -> bool {
        self.is("-") && self.tokens.get(self.at + 1).is_some_and(|next| matches!(next.kind, Kind::Int | Kind::Float))
    }

    fn member(&mut self) -> Result<Expr> {
        let mut expr = self.primary()?;
        loop {
            if self.is(".") {
                expr = self.selection(expr)?;
            } else if let Some(position) = self.take("[") {
                let function = if self.take("?").is_some() { "_[?_]" } else { "_[_]" };
                let index = self.expression()?;
                self.expect("]")?;
                expr = self.call(Some(position), function, vec![expr, index])?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn selection(&mut self, operand: Expr) -> Result<Expr> {
        let dot = self.next();
        let optional = self.take("?").is_some();
        let name = self.peek().clone();
        if !matches!(name.kind, Kind::Identifier | Kind::QuotedIdentifier) {
            return self.no_member(&dot, &name, optional);
        }
        self.next();
        if name.kind == Kind::QuotedIdentifier {
            self.problem(name.position, "unsupported syntax: '`'");
        }
        if optional {
            let field = self.make(Some(name.position), ExprKind::Literal(Literal::String(name.text)))?;
            return self.call(Some(dot.position), "_?._", vec![operand, field]);
        }
        match self.take("(").filter(|_| name.kind == Kind::Identifier) {
            Some(open) => {
                let args = self.arguments()?;
                self.member_call(open, &name.text, operand, args)
            }
            None => self.make(Some(dot.position), ExprKind::Select(Box::new(operand), name.text)),
        }
    }

    fn no_member(&mut self, dot: &Token, found: &Token, optional: bool) -> Result<Expr> {
        let text = if found.kind == Kind::End { "" } else { found.text.as_str() };
        let message = match text {
            "true" | "false" | "null" => format!("mismatched input '{text}' expecting IDENTIFIER"),
            _ if optional => format!("no viable alternative at input '.?{text}'"),
            _ => {
                let gap = " ".repeat((found.position.saturating_sub(dot.position + 1)) as usize);
                format!("no viable alternative at input '.{gap}{text}'")
            }
        };
        self.syntax_error(message)
    }

    /// Arguments up to the closing bracket.
    fn arguments(&mut self) -> Result<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take(")").is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.take(",").is_none() {
                break;
            }
        }
        self.expect(")")?;
        Ok(args)
    }

    fn primary(&mut self) -> Result<Expr> {
        let token = self.peek().clone();
        match (token.kind, token.text.as_str()) {
            (Kind::Identifier, _) | (Kind::Symbol, ".") => self.named(),
            (Kind::Symbol, "(") => {
                self.next();
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            (Kind::Symbol, "[") => self.list(),
            (Kind::Symbol, "{") => {
                let position = self.next().position;
                let entries = self.entries(false)?;
                self.make(Some(position), ExprKind::Map(entries))
            }
            (Kind::Symbol, "true" | "false" | "null" | "-")
            | (Kind::Int | Kind::Uint | Kind::Float | Kind::String | Kind::Bytes, _) => self.literal(),
            _ => {
                let starts = self.tokens.get(self.at + 1).is_some_and(starts_value);
                if !starts || token.kind == Kind::End {
                    return self.syntax_error(format!("mismatched input '{}' expecting {VALUE_STARTS}", token.text));
                }
                // One that is too many is passed over, so that what is wrong behind it is told too.
                let message = format!("Syntax error: extraneous input '{}' expecting {VALUE_STARTS}", token.text);
                self.problem(token.position, message);
                self.next();
                self.primary()
            }
        }
    }

    /// A name, a call of a function, or the literal of a struct.
    fn named(&mut self) -> Result<Expr> {
        let leading = self.take(".");
        let token = self.peek().clone();
        if token.kind != Kind::Identifier {
            let message = format!("no viable alternative at input '.{}'", token.text.replace("<EOF>", ""));
            return self.syntax_error(message);
        }
        self.next();
        let name = if leading.is_some() { format!(".{}", token.text) } else { token.text.clone() };
        if let Some((open, name)) = self.struct_name(&name) {
            let entries = self.entries(true)?;
            return self.make(Some(open), ExprKind::Struct(name, entries));
        }
        let position = leading.unwrap_or(token.position);
        let open = self.take("(");
        if RESERVED.contains(&token.text.as_str()) {
            self.problem(position, format!("reserved identifier: {}", token.text));
        }
        match open {
            Some(open) => {
                let args = self.arguments()?;
                self.global_call(open, &name, args)
            }
            None => self.make(Some(token.position), ExprKind::Ident(name)),
        }
    }

    /// The rest of a dotted name and the bracket after it, if that is what follows.
    fn struct_name(&mut self, first: &str) -> Option<(u32, String)> {
        let mut name = first.to_owned();
        let mut at = self.at;
        let symbol = |at: usize, symbol: &str| {
            self.tokens.get(at).is_some_and(|token| token.kind == Kind::Symbol && token.text == symbol)
        };
        while symbol(at, ".") && self.tokens.get(at + 1).is_some_and(|token| token.kind == Kind::Identifier) {
            name = format!("{name}.{}", self.tokens[at + 1].text);
            at += 2;
        }
        if !symbol(at, "{") {
            return None;
        }
        let position = self.tokens[at].position;
        self.at = at + 1;
        Some((position, name))
    }

    fn list(&mut self) -> Result<Expr> {
        let position = self.next().position;
        let mut elements = Vec::new();
        while !self.is("]") {
            let optional = self.take("?").is_some();
            elements.push(Element { value: self.expression()?, optional });
            if self.take(",").is_none() {
                break;
            }
        }
        self.expect("]")?;
        self.make(Some(position), ExprKind::List(elements))
    }

    /// Entries of a map or fields of a struct, up to the closing bracket.
    fn entries(&mut self, fields: bool) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        while !self.is("}") {
            let optional = self.take("?").is_some();
            let key = if fields { self.field_name()? } else { self.expression()? };
            self.expect(":")?;
            entries.push(Entry { key, value: self.expression()?, optional });
            if self.take(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        Ok(entries)
    }

    fn field_name(&mut self) -> Result<Expr> {
        let token = self.peek().clone();
        if token.kind != Kind::Identifier {
            return self.syntax_error(format!(
                "mismatched input '{}' expecting {{'?', IDENTIFIER, ESC_IDENTIFIER}}",
                token.text
            ));
        }
        self.next();
        self.make(Some(token.position), ExprKind::Literal(Literal::String(token.text)))
    }

    fn literal(&mut self) -> Result<Expr> {
        let first = self.next();
        let negative = first.text == "-" && first.kind == Kind::Symbol;
        let token = if negative { self.peek().clone() } else { first.clone() };
        if negative {
            if !matches!(token.kind, Kind::Int | Kind::Float) {
                return self.syntax_error(format!("no viable alternative at input '-{}'", token.text));
            }
            self.next();
        }
        let sign = if negative { "-" } else { "" };
        let literal = match literal(&token, sign) {
            Ok(literal) => literal,
            Err(message) => {
                self.problem(first.position, message);
                Literal::Null
            }
        };
        self.make(Some(first.position), ExprKind::Literal(literal))
    }
}

fn literal(token: &Token, sign: &str) -> Result<Literal, String> {
    let text = token.text.as_str();
    let (radix, digits) = match text.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, text),
    };
    match token.kind {
        Kind::Int => i64::from_str_radix(&format!("{sign}{digits}"), radix)
            .map(Literal::Int)
            .map_err(|_| "invalid int literal".to_owned()),
        Kind::Uint => u64::from_str_radix(digits.trim_end_matches(['u', 'U']), radix)
            .map(Literal::Uint)
            .map_err(|_| "invalid uint literal".to_owned()),
        Kind::Float => match format!("{sign}{text}").parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Literal::Double(value)),
            _ => Err("invalid double literal".to_owned()),
        },
        Kind::String => {
            let bytes = unquote::unquote(text, false)?;
            String::from_utf8(bytes).map(Literal::String).map_err(|_| "invalid unicode code point".to_owned())
        }
        Kind::Bytes => unquote::unquote(text, true).map(Literal::Bytes),
        _ => Ok(match text {
            "true" => Literal::Bool(true),
            "false" => Literal::Bool(false),
            _ => Literal::Null,
        }),
    }
}

/// The nodes directly below one.
fn children(kind: &ExprKind) -> Vec<&Expr> {
    match kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => Vec::new(),
        ExprKind::Select(operand, _) | ExprKind::Has(operand, _) => vec![operand],
        ExprKind::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        ExprKind::List(elements) => elements.iter().map(|element| &element.value).collect(),
        ExprKind::Map(entries) | ExprKind::Struct(_, entries) => {
            entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect()
        }
        ExprKind::Fold(fold) => vec![&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result],
    }
}

/// Whether a value can begin with a token.
fn starts_value(token: &Token) -> bool {
    match token.kind {
        Kind::Symbol => matches!(token.text.as_str(), "[" | "{" | "(" | "." | "-" | "!" | "true" | "false" | "null"),
        Kind::End => false,
        _ => true,
    }
}
