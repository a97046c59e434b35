//! The tree of an expression, and where each of its nodes stands in the text.

/// A node of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    /// Unique in its tree; see [`Positions`].
    pub(crate) id: usize,
    pub(crate) kind: ExprKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Literal(Literal),
    Ident(String),
    Select(Box<Expr>, String),
    /// `has(operand.field)`
    Has(Box<Expr>, String),
    Call(Call),
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// `Name{field: value}`
    Struct(String, Vec<Entry>),
    Fold(Box<Fold>),
}

/// A value that is written out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Operators have names such as `_+_`.
    pub(crate) function: String,
    pub(crate) target: Option<Box<Expr>>,
    pub(crate) args: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    /// `?value`: left out if there is none.
    pub(crate) optional: bool,
}

/// An entry of a map, or a field of a struct (then the key is a string).
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// What the macros over lists and maps stand for: a loop that carries one value along.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) range: Expr,
    /// An element of a list or a key of a map; with two variables the index of a list.
    pub(crate) variable: String,
    /// The element of a list or the value of a map.
    pub(crate) variable2: Option<String>,
    /// The name of what is carried along.
    pub(crate) carried: String,
    pub(crate) init: Expr,
    /// The loop goes on while this holds.
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// Where nodes begin in the text, in characters from its begin; by the number of the node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(Vec<Option<u32>>);

impl Positions {
    /// Numbers a new node.
    pub(crate) fn add(&mut self, position: Option<u32>) -> usize {
        self.0.push(position);
        self.0.len() - 1
    }

    /// Where a node begins; nothing for one that stands nowhere.
    pub(crate) fn of(&self, id: usize) -> Option<u32> {
        self.0.get(id).copied().flatten()
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Expr {
    /// A dotted name: `a.b.c`.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Ident(name) => Some(name.clone()),
            ExprKind::Select(operand, field) => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }

    /// The text of a string that is written out.
    pub(crate) fn as_string(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Literal(Literal::String(text)) => Some(text),
            _ => None,
        }
    }
}
