//! The parsed template: what the parser makes and the executor walks.

mod show;

use crate::funcs::Builtin;
use crate::lex::Span;

pub(crate) use show::Show;

pub(crate) type List = Vec<Node>;

#[derive(Debug)]
pub(crate) enum Node {
    Text(Span),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Loop),
    Template(Call),
    Break,
    Continue,
}

/// Lists of nodes of which at most one is run: that of the first arm whose pipeline holds, or what stands behind else.
#[derive(Debug)]
pub(crate) struct Branch {
    /// The first, and one more for each `else if` or `else with`.
    pub(crate) arms: Vec<Arm>,
    pub(crate) otherwise: Option<List>,
}

#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) pipe: Pipe,
    pub(crate) list: List,
}

#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) arm: Arm,
    /// What is run when there is nothing to range over.
    pub(crate) otherwise: Option<List>,
}

/// `{{template "name" pipe}}`; also what remains of a block where it stands.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) position: u32,
    pub(crate) name: Box<[u8]>,
    pub(crate) pipe: Option<Pipe>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) position: u32,
    /// The variables that take the result: at most one, and two for a range.
    pub(crate) variables: Vec<Span>,
    /// Whether the variables exist already (`=`) or begin here (`:=`).
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Command>,
}

/// A function with its arguments, or a value alone: a stage of a pipeline.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) position: u32,
    /// The first is what to run; there is always one.
    pub(crate) terms: Vec<Term>,
}

#[derive(Debug)]
pub(crate) struct Term {
    /// Where errors about this term point: for a path such as `.a.b`, at its second name.
    pub(crate) position: u32,
    /// How it was written, which is how errors show it (except for pipes and chains).
    pub(crate) source: Span,
    pub(crate) kind: TermKind,
}

#[derive(Debug)]
pub(crate) enum TermKind {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Str(Literal),
    /// `.a.b`: the source holds the names.
    Field,
    /// `$x.a.b`: the source holds the variable's name and then those of the fields.
    Variable,
    Function(Builtin),
    /// A pipeline in parentheses.
    Pipe(Box<Pipe>),
    /// Fields of the result of a term that is neither a field nor a variable.
    Chain {
        base: Box<Term>,
        fields: Span,
    },
}

/// A numeric constant, already with the type that Go's rules for untyped constants give it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    /// An integer that only an unsigned type could hold: an error once it is used.
    Overflow,
    Float(f64),
    Complex(f64, f64),
}

/// What a string constant means.
#[derive(Debug)]
pub(crate) enum Literal {
    /// Written without escapes: the text between its quotes.
    Plain(Span),
    Decoded(Box<[u8]>),
}

/// The names in a path such as `.a.b` or `.c`.
pub(crate) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').skip(1)
}

/// Whether running the nodes could never write anything but white space.
pub(crate) fn is_blank(list: &[Node], text: &str) -> bool {
    list.iter().all(|node| matches!(node, Node::Text(span) if span.of(text).trim().is_empty()))
}
