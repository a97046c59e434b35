//! The built-in functions.

mod compare;
mod element;
mod escape;

use crate::fmt;
use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    And,
    Call,
    Eq,
    Ge,
    Gt,
    Html,
    Index,
    Js,
    Le,
    Len,
    Lt,
    Ne,
    Not,
    Or,
    Print,
    Printf,
    Println,
    Slice,
    UrlQuery,
}

impl Builtin {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "and" => Self::And,
            "call" => Self::Call,
            "eq" => Self::Eq,
            "ge" => Self::Ge,
            "gt" => Self::Gt,
            "html" => Self::Html,
            "index" => Self::Index,
            "js" => Self::Js,
            "le" => Self::Le,
            "len" => Self::Len,
            "lt" => Self::Lt,
            "ne" => Self::Ne,
            "not" => Self::Not,
            "or" => Self::Or,
            "print" => Self::Print,
            "printf" => Self::Printf,
            "println" => Self::Println,
            "slice" => Self::Slice,
            "urlquery" => Self::UrlQuery,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Call => "call",
            Self::Eq => "eq",
            Self::Ge => "ge",
            Self::Gt => "gt",
            Self::Html => "html",
            Self::Index => "index",
            Self::Js => "js",
            Self::Le => "le",
            Self::Len => "len",
            Self::Lt => "lt",
            Self::Ne => "ne",
            Self::Not => "not",
            Self::Or => "or",
            Self::Print => "print",
            Self::Printf => "printf",
            Self::Println => "println",
            Self::Slice => "slice",
            Self::UrlQuery => "urlquery",
        }
    }

    /// How many arguments are needed, and whether more are welcome.
    pub(crate) fn parameters(self) -> (usize, bool) {
        match self {
            Self::Html | Self::Js | Self::Print | Self::Println | Self::UrlQuery => (0, true),
            Self::And | Self::Call | Self::Eq | Self::Index | Self::Or | Self::Printf | Self::Slice => (1, true),
            Self::Len | Self::Not => (1, false),
            Self::Ge | Self::Gt | Self::Le | Self::Lt | Self::Ne => (2, false),
        }
    }
}

/// Why a function gave no value.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reason, in Go's words.
    Refused(String),
    /// The result would be longer than allowed.
    TooLong,
}

impl Failure {
    /// The data holds no functions, so `call` never has anything to call.
    pub(crate) fn not_callable(value: &Value<'_>, callee: &str) -> Self {
        Self::Refused(match value {
            Value::Nil => "call of nil".to_owned(),
            _ => format!("non-function {callee} of type {}", value.type_name()),
        })
    }
}

impl From<fmt::TooLong> for Failure {
    fn from(_: fmt::TooLong) -> Self {
        Self::TooLong
    }
}

type Outcome<'a> = Result<Value<'a>, Failure>;

fn refuse<T>(reason: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Refused(reason.into()))
}

/// Calls a function with as many arguments as it needs; no string that it makes is longer than `limit`.
pub(crate) fn call<'a>(function: Builtin, arguments: &[Value<'a>], limit: usize) -> Outcome<'a> {
    use Builtin::*;
    match (function, arguments) {
        (Print, _) => Ok(Value::shared(fmt::print(arguments, limit)?)),
        (Println, _) => Ok(Value::shared(fmt::println(arguments, limit)?)),
        (Printf, [Value::Str(format), rest @ ..]) => Ok(Value::shared(fmt::printf(format, rest, limit)?)),
        (Html, _) => escape::html(arguments, limit),
        (Js, _) => escape::js(arguments, limit),
        (UrlQuery, _) => escape::urlquery(arguments, limit),
        (Len, [value]) => element::len(value),
        (Not, [value]) => Ok(Value::Bool(!value.truth())),
        (Index, [item, indexes @ ..]) => element::index(item, indexes),
        (Slice, [item, indexes @ ..]) => element::slice(item, indexes),
        (Eq, [first, others @ ..]) => Ok(Value::Bool(compare::equal_to_any(first, others)?)),
        (Ne, [a, b]) => Ok(Value::Bool(!compare::equal(a, b)?)),
        (Lt, [a, b]) => Ok(Value::Bool(compare::order(a, b)?.is_some_and(|order| order.is_lt()))),
        (Le, [a, b]) => Ok(Value::Bool(compare::order(a, b)?.is_some_and(|order| order.is_le()))),
        (Gt, [a, b]) => Ok(Value::Bool(compare::order(a, b)?.is_some_and(|order| order.is_gt()))),
        (Ge, [a, b]) => Ok(Value::Bool(compare::order(a, b)?.is_some_and(|order| order.is_ge()))),
        _ => refuse("cannot be called like this"),
    }
}
