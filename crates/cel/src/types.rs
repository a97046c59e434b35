//! The types of values, how they are written, and which fits where.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Anything; checked when it is met.
    Dyn,
    /// Anything, of values that are declared so; a program whose value it is says as much.
    Any,
    /// Of an expression that is wrong already.
    Error,
    /// `null`
    Null,
    /// `bool`
    Bool,
    /// A whole number with a sign.
    Int,
    /// A whole number without a sign.
    Uint,
    /// A floating-point number.
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// A span of time.
    Duration,
    /// A point in time.
    Timestamp,
    /// A list of one type.
    List(Arc<Type>),
    /// A map from one type to another.
    Map(Arc<Type>, Arc<Type>),
    /// The type of a type.
    Type(Arc<Type>),
    /// A value that may be absent.
    Optional(Arc<Type>),
    /// A type of a library without fields, such as `net.IP`.
    Opaque(&'static str),
    /// An object with fields.
    Struct(StructType),
    /// A type that is not known yet: a parameter of a function, or a variable of the checker.
    Param(u32),
}

/// An object type: its name and the types of its fields. Types of one name are the same.
#[derive(Clone, Debug)]
pub struct StructType {
    pub(crate) name: Arc<str>,
    /// None for types of libraries, which have functions but no fields.
    pub(crate) fields: Option<Arc<BTreeMap<String, Type>>>,
}

impl PartialEq for StructType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for StructType {}

impl StructType {
    /// A type without fields.
    pub(crate) fn opaque(name: &str) -> Self {
        Self { name: Arc::from(name), fields: None }
    }
}

impl Type {
    /// A list of a type.
    #[must_use]
    pub fn list(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    /// A map from a type to another.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// An object with fields, by the name of its type.
    #[must_use]
    pub fn object<'n>(name: &str, fields: impl IntoIterator<Item = (&'n str, Type)>) -> Self {
        let fields = fields.into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
        Self::Struct(StructType { name: Arc::from(name), fields: Some(Arc::new(fields)) })
    }

    /// A type of a library, by its name.
    #[must_use]
    pub fn library(name: &str) -> Self {
        Self::Struct(StructType::opaque(name))
    }

    /// A value that may be absent.
    #[must_use]
    pub fn optional(value: Type) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// What the type is called by programs at work, which differs from how it is written in a few cases.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Any => "google.protobuf.Any".to_owned(),
            Self::List(element) => format!("list({})", element.name()),
            Self::Map(key, value) => format!("map({}, {})", key.name(), value.name()),
            Self::Type(of) => format!("type({})", of.name()),
            Self::Optional(value) => format!("optional_type({})", value.name()),
            other => other.to_string(),
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || *self == Self::Error
    }

    /// Whether its values are all of one size.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Double | Self::Duration | Self::Int | Self::Timestamp | Self::Uint => true,
            Self::Optional(value) => value.is_scalar(),
            _ => false,
        }
    }

    fn parameters(&self) -> Vec<&Type> {
        match self {
            Self::List(a) | Self::Type(a) | Self::Optional(a) => vec![a],
            Self::Map(a, b) => vec![a, b],
            _ => Vec::new(),
        }
    }

    /// Whether `null` may stand for a value of it.
    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Optional(_) | Self::Opaque(_) | Self::Struct(_) | Self::Duration | Self::Timestamp | Self::Null
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Dyn => "dyn",
            Self::Any => "any",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::List(element) => return write!(f, "list({element})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
            Self::Type(of) => return write!(f, "type({of})"),
            Self::Optional(value) => return write!(f, "optional_type({value})"),
            Self::Opaque(name) => name,
            Self::Struct(object) => &object.name,
            Self::Param(_) => "dyn",
        };
        f.write_str(name)
    }
}

/// What the variables of the checker stand for so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    bound: HashMap<u32, Type>,
    next: u32,
}

impl Bindings {
    /// A type that is not known yet.
    pub(crate) fn fresh(&mut self) -> Type {
        self.next += 1;
        Type::Param(self.next)
    }

    /// Whether one type fits where another is wanted. What that says about unknown types is kept only if it fits.
    pub(crate) fn assign(&mut self, one: &Type, other: &Type) -> bool {
        let before = self.bound.clone();
        let fits = self.fits(one, other);
        if !fits {
            self.bound = before;
        }
        fits
    }

    /// The same for several at once.
    pub(crate) fn assign_all(&mut self, ones: &[Type], others: &[Type]) -> bool {
        let before = self.bound.clone();
        let fits = ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| self.fits(one, other));
        if !fits {
            self.bound = before;
        }
        fits
    }

    /// A type with all that is known about it; what is still unknown can be anything in the end.
    pub(crate) fn resolve(&self, of: &Type, at_the_end: bool) -> Type {
        let inner = |of: &Arc<Type>| Arc::new(self.resolve(of, at_the_end));
        match of {
            Type::Param(number) => match self.bound.get(number) {
                Some(bound) => self.resolve(bound, at_the_end),
                None if at_the_end => Type::Dyn,
                None => of.clone(),
            },
            Type::List(element) => Type::List(inner(element)),
            Type::Map(key, value) => Type::Map(inner(key), inner(value)),
            Type::Type(of) => Type::Type(inner(of)),
            Type::Optional(value) => Type::Optional(inner(value)),
            other => other.clone(),
        }
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Param(number) = other {
            let (valid, known) = self.substitute(one, *number);
            if valid || known {
                return valid;
            }
        }
        if let Type::Param(number) = one {
            return self.substitute(other, *number).0;
        }
        if one.is_dyn_or_error() || other.is_dyn_or_error() {
            return true;
        }
        if *one == Type::Null {
            return other.is_nullable();
        }
        if *other == Type::Null {
            return one.is_nullable();
        }
        match (one, other) {
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(_), Type::List(_))
            | (Type::Map(..), Type::Map(..))
            | (Type::Optional(_), Type::Optional(_)) => {
                let pairs: Vec<(Type, Type)> =
                    one.parameters().into_iter().cloned().zip(other.parameters().into_iter().cloned()).collect();
                pairs.iter().all(|(one, other)| self.fits(one, other))
            }
            _ => one == other,
        }
    }

    /// Whether an unknown type can be this one, and whether something was known about it.
    fn substitute(&mut self, of: &Type, unknown: u32) -> (bool, bool) {
        if *of == Type::Param(unknown) {
            return (true, true);
        }
        if let Some(bound) = self.bound.get(&unknown).cloned() {
            if bound == *of {
                return (true, true);
            }
            if !self.fits(of, &bound) {
                return (false, true);
            }
            let general = most_general(of, &bound).clone();
            if !self.occurs(unknown, &general) {
                self.bound.insert(unknown, general);
            }
            return (true, true);
        }
        if self.occurs(unknown, of) {
            return (false, false);
        }
        self.bound.insert(unknown, of.clone());
        (true, false)
    }

    /// Whether an unknown type is part of another.
    fn occurs(&self, unknown: u32, within: &Type) -> bool {
        match within {
            Type::Param(number) if *number == unknown => true,
            Type::Param(number) => self.bound.get(number).is_some_and(|bound| self.occurs(unknown, bound)),
            other => other.parameters().into_iter().any(|inner| self.occurs(unknown, inner)),
        }
    }
}

/// The more general of two types that fit each other.
pub(crate) fn most_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_as_general(one, other) { one } else { other }
}

fn is_as_general(one: &Type, other: &Type) -> bool {
    let is_open = |of: &Type| of.is_dyn() || matches!(of, Type::Param(_));
    if is_open(one) {
        return true;
    }
    if is_open(other) {
        return false;
    }
    match (one, other) {
        (Type::Type(_), Type::Type(_)) => true,
        (Type::List(_), Type::List(_)) | (Type::Map(..), Type::Map(..)) | (Type::Optional(_), Type::Optional(_)) => {
            one.parameters().into_iter().zip(other.parameters()).all(|(one, other)| is_as_general(one, other))
        }
        _ => one == other,
    }
}
