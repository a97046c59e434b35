//! How the values of a kind are merged: what is one value, what has parts, and what tells the items of a list apart.

mod structural;

use hashbrown::HashMap;
use serde_json::Value;

pub(crate) use structural::{Building, Items};

use super::element::{self, Element, Scalar as Key};
use crate::{
    gotext,
    schema::{self, ListType, MapType, Schemas, Shape, StructRef, Type},
};

/// The types of kinds, as merging sees them.
#[derive(Debug)]
pub(crate) struct Types {
    atoms: Vec<Atom>,
}

/// A type of [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TypeRef(u32);

/// What a value may be. Most types allow one of the three.
#[derive(Clone, Debug, Default)]
pub(super) struct Atom {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<List>,
    pub(super) map: Option<Map>,
}

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Number,
    Text,
    Bool,
    Any,
}

#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) item: TypeRef,
    pub(super) relation: Relation,
}

/// What the items of a list are to each other.
#[derive(Clone, Debug)]
pub(super) enum Relation {
    /// Parts of one value.
    Atomic,
    /// Members of a set.
    Set,
    /// Told apart by these fields.
    Keyed(Vec<KeyField>),
}

/// A field that tells items apart.
#[derive(Clone, Debug)]
pub(super) struct KeyField {
    pub(super) name: Box<str>,
    /// What it is where it is not set.
    pub(super) default: Option<Value>,
}

#[derive(Clone, Debug)]
pub(super) struct Map {
    fields: HashMap<Box<str>, TypeRef>,
    /// The type of what is not among the fields; none if there can be nothing else.
    element: Option<TypeRef>,
    pub(super) atomic: bool,
}

/// One of the things a value may be, chosen for a value.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Scalar(Scalar),
    List(&'a List),
    Map(&'a Map),
}

/// What is below a map in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) ty: TypeRef,
    /// Whether the schema names the field, as opposed to allowing any key.
    pub(super) named: bool,
}

impl Atom {
    fn scalar(scalar: Scalar) -> Self {
        Self { scalar: Some(scalar), ..Self::default() }
    }

    /// What a value is taken for: what it looks like where that is allowed, and else what it should have been.
    pub(super) fn kind(&self, value: Option<&Value>) -> Kind<'_> {
        let fitting = match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) => self.scalar.map(Kind::Scalar),
            Some(Value::Array(_)) => self.list.as_ref().map(Kind::List),
            Some(Value::Object(_)) => self.map.as_ref().map(Kind::Map),
            Some(Value::Null) | None => None,
        };
        let usual = || self.map.as_ref().map(Kind::Map).or(self.scalar.map(Kind::Scalar));
        let last = || self.list.as_ref().map(Kind::List);
        fitting.or_else(usual).or_else(last).unwrap_or(Kind::Scalar(Scalar::Any))
    }
}

impl Kind<'_> {
    /// Whether two values of one type are taken for the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Map {
    /// The type of a field; none if there is no such field.
    pub(super) fn child(&self, name: &str) -> Option<Child> {
        let named = self.fields.get(name).map(|ty| Child { ty: *ty, named: true });
        named.or_else(|| self.element.map(|ty| Child { ty, named: false }))
    }
}

impl List {
    /// What tells an item from the others of its list; the error is worded for users.
    pub(super) fn element(&self, item: &Value) -> Result<Element, String> {
        self.check(item)?;
        let Relation::Keyed(keys) = &self.relation else { return Ok(Element::Value(Key(item.clone()))) };
        let found = keys.iter().filter_map(|key| Some((key.name.clone(), Key(key.of(item)?.clone()))));
        let mut found: Vec<_> = found.collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Element::Key(found.into()))
    }

    /// Whether something tells an item from the others of its list; the error is worded for users.
    pub(super) fn check(&self, item: &Value) -> Result<(), String> {
        let problem = match (&self.relation, item) {
            (Relation::Atomic, _) => "invalid indexing of non-associative list",
            (Relation::Set, Value::Object(_)) => "associative list without keys has an element that's a map type",
            (Relation::Set, Value::Array(_)) => "not supported: associative list with lists as elements",
            (Relation::Set, Value::Null) => "associative list without keys has an element that's an explicit null",
            (Relation::Set, _) => return Ok(()),
            (Relation::Keyed(keys), Value::Object(_)) => {
                if keys.iter().any(|key| key.of(item).is_some()) {
                    return Ok(());
                }
                let names: Vec<String> = keys.iter().map(|key| gotext::quote(&key.name)).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                    names.join(" ")
                ));
            }
            (Relation::Keyed(_), Value::Null) => "associative list with keys may not have a null element",
            (Relation::Keyed(_), _) => "associative list with keys may not have non-map elements",
        };
        Err(problem.to_owned())
    }

    /// Whether two items have the same element, if they have one.
    pub(super) fn same(&self, one: &Value, other: &Value) -> bool {
        match &self.relation {
            Relation::Atomic => false,
            Relation::Set => element::equal(one, other),
            Relation::Keyed(keys) => keys.iter().all(|key| match (key.of(one), key.of(other)) {
                (Some(one), Some(other)) => element::equal(one, other),
                (one, other) => one.is_none() && other.is_none(),
            }),
        }
    }

    /// Whether two lists have the same elements in the same order, and none twice. Of long lists nobody knows: it would take
    /// longer than to find out what they have in common.
    pub(super) fn in_step(&self, ones: &[Value], others: &[Value]) -> bool {
        if ones.len() != others.len() || ones.len() > FEW {
            return false;
        }
        let (Some(ones), Some(others)) = (self.names(ones), self.names(others)) else { return false };
        let same = |one: &[Option<&Value>], other: &[Option<&Value>]| {
            one.iter().zip(other).all(|pair| match pair {
                (Some(one), Some(other)) => element::equal(one, other),
                (one, other) => one.is_none() && other.is_none(),
            })
        };
        let width = self.width();
        let each = || ones.chunks(width);
        each().zip(others.chunks(width)).all(|(one, other)| same(one, other))
            && each().enumerate().all(|(at, one)| !each().take(at).any(|earlier| same(earlier, one)))
    }

    /// What tells the items apart, so many values for each; none if something does not.
    fn names<'a>(&'a self, items: &'a [Value]) -> Option<Vec<Option<&'a Value>>> {
        let mut names = Vec::with_capacity(items.len() * self.width());
        for item in items {
            match &self.relation {
                Relation::Keyed(keys) if item.is_object() => {
                    let start = names.len();
                    names.extend(keys.iter().map(|key| key.of(item)));
                    names[start..].iter().any(Option::is_some).then_some(())?;
                }
                _ => {
                    self.check(item).ok()?;
                    names.push(Some(item));
                }
            }
        }
        Some(names)
    }

    /// How many values tell an item apart.
    fn width(&self) -> usize {
        match &self.relation {
            Relation::Keyed(keys) => keys.len().max(1),
            Relation::Atomic | Relation::Set => 1,
        }
    }
}

/// So many items are compared each with each without being put in order.
pub(super) const FEW: usize = 16;

impl KeyField {
    /// What an item has in this field.
    fn of<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        item.get(self.name.as_ref()).or(self.default.as_ref())
    }
}

impl Types {
    /// The types of a registry.
    pub(crate) fn of(schemas: &Schemas) -> Self {
        let structs: Vec<StructRef> = schemas.references().collect();
        // A struct has the same number here as there; what else there is comes behind.
        let mut builder = Builder { schemas, atoms: vec![Atom::default(); structs.len()] };
        let any = builder.add(Atom::scalar(Scalar::Any));
        let common = Common {
            number: builder.add(Atom::scalar(Scalar::Number)),
            text: builder.add(Atom::scalar(Scalar::Text)),
            bool: builder.add(Atom::scalar(Scalar::Bool)),
            any,
            untyped: builder.untyped(),
        };
        for reference in structs {
            let atom = builder.structure(reference, &common);
            builder.atoms[reference.index()] = atom;
        }
        Self { atoms: builder.atoms }
    }

    /// The type of a struct of the registry these types were made of.
    pub(crate) fn structure(reference: StructRef) -> TypeRef {
        TypeRef(u32::try_from(reference.index()).unwrap_or(u32::MAX))
    }

    pub(super) fn atom(&self, ty: TypeRef) -> &Atom {
        &self.atoms[ty.0 as usize]
    }
}

/// Types that many fields share.
struct Common {
    number: TypeRef,
    text: TypeRef,
    bool: TypeRef,
    any: TypeRef,
    /// Any value, as a whole.
    untyped: TypeRef,
}

struct Builder<'a> {
    schemas: &'a Schemas,
    atoms: Vec<Atom>,
}

impl Builder<'_> {
    fn add(&mut self, atom: Atom) -> TypeRef {
        self.atoms.push(atom);
        TypeRef(u32::try_from(self.atoms.len() - 1).unwrap_or(u32::MAX))
    }

    fn untyped(&mut self) -> TypeRef {
        let itself = TypeRef(u32::try_from(self.atoms.len()).unwrap_or(u32::MAX));
        self.add(Atom {
            scalar: Some(Scalar::Any),
            list: Some(List { item: itself, relation: Relation::Atomic }),
            map: Some(Map { fields: HashMap::new(), element: Some(itself), atomic: true }),
        })
    }

    fn structure(&mut self, reference: StructRef, common: &Common) -> Atom {
        let schemas = self.schemas;
        let described = schemas.get(reference);
        let mut fields = HashMap::with_capacity(described.fields.len());
        // Who owns what is told in the object, but is no part of it that anybody owns.
        for field in described.fields.iter().filter(|field| field.name.as_ref() != "managedFields") {
            let ty = match (&field.ty.shape, field.map) {
                (Shape::List(item), _) => self.list(item, field.list, &field.keys, common),
                (Shape::Map(value), Some(MapType::Atomic)) => {
                    let element = Some(self.ty(value, common));
                    self.add(Atom {
                        map: Some(Map { fields: HashMap::new(), element, atomic: true }),
                        ..Atom::default()
                    })
                }
                (Shape::Struct(inner), Some(relation)) => {
                    let mut atom = self.structure(*inner, common);
                    if let Some(map) = &mut atom.map {
                        map.atomic = relation == MapType::Atomic;
                    }
                    self.add(atom)
                }
                _ => self.ty(&field.ty, common),
            };
            fields.insert(field.name.clone(), ty);
        }
        // A struct without fields may hold anything.
        let element = described.fields.is_empty().then_some(common.untyped);
        Atom { map: Some(Map { fields, element, atomic: described.atomic }), ..Atom::default() }
    }

    fn list(&mut self, item: &Type, relation: ListType, keys: &[Box<str>], common: &Common) -> TypeRef {
        let ty = self.ty(item, common);
        let relation = match relation {
            ListType::Atomic => Relation::Atomic,
            ListType::Set => Relation::Set,
            ListType::Map => {
                let default = |name: &str| match &item.shape {
                    Shape::Struct(inner) => {
                        let field = self.schemas.get(*inner).field(name)?;
                        let empty = || field.empty_by_default.then(|| schema::zero(&field.ty));
                        field.default.clone().or_else(empty)
                    }
                    _ => None,
                };
                let key = |name: &str| KeyField { name: name.into(), default: default(name) };
                Relation::Keyed(keys.iter().map(|name| key(name)).collect())
            }
        };
        self.add(Atom { list: Some(List { item: ty, relation }), ..Atom::default() })
    }

    fn ty(&mut self, ty: &Type, common: &Common) -> TypeRef {
        match &ty.shape {
            Shape::Bool => common.bool,
            Shape::Int32 | Shape::Int64 | Shape::Float64 => common.number,
            Shape::String | Shape::Bytes | Shape::Duration => common.text,
            Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString => common.any,
            Shape::Raw => common.untyped,
            Shape::Struct(reference) => Types::structure(*reference),
            Shape::List(item) => self.list(item, ListType::Atomic, &[], common),
            Shape::Map(value) => {
                let element = Some(self.ty(value, common));
                self.add(Atom { map: Some(Map { fields: HashMap::new(), element, atomic: false }), ..Atom::default() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    fn at(path: &[&str]) -> Atom {
        let registry = Registry::kubernetes();
        let pods = registry.resource("", "v1", "pods").unwrap();
        let types = pods.schemas.merging();
        let mut ty = Types::structure(pods.schema);
        for name in path {
            let atom = types.atom(ty);
            ty = match (&atom.map, &atom.list) {
                (Some(map), _) => map.child(name).unwrap().ty,
                (_, Some(list)) => list.item,
                _ => panic!("nothing below {name}"),
            };
        }
        types.atom(ty).clone()
    }

    #[test]
    fn keys_have_the_defaults_of_the_schema() {
        let list = at(&["spec", "containers", "", "ports"]).list.unwrap();
        let element = list.element(&json!({"containerPort": 80, "name": "x"})).unwrap();
        assert_eq!(element.to_string(), r#"[containerPort=80,protocol="TCP"]"#);
        let list = at(&["spec", "containers"]).list.unwrap();
        assert_eq!(list.element(&json!({"image": "x"})).unwrap().to_string(), r#"[name=""]"#);
        let list = at(&["spec", "imagePullSecrets"]).list.unwrap();
        assert_eq!(list.element(&json!({})).unwrap().to_string(), r#"[name=""]"#);
        let registry = Registry::kubernetes();
        let accounts = registry.resource("", "v1", "serviceaccounts").unwrap();
        let types = accounts.schemas.merging();
        let secrets = types.atom(Types::structure(accounts.schema)).map.as_ref().unwrap().child("secrets").unwrap().ty;
        assert_eq!(
            types.atom(secrets).list.as_ref().unwrap().element(&json!({"kind": "x"})),
            Err(r#"associative list with keys has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)"#.into())
        );
    }

    #[test]
    fn what_is_replaced_as_a_whole_is_known() {
        assert!(at(&["spec", "nodeSelector"]).map.unwrap().atomic);
        assert!(!at(&["metadata", "labels"]).map.unwrap().atomic);
        assert!(at(&["spec", "containers", "", "env", "", "valueFrom", "fieldRef"]).map.unwrap().atomic);
        assert!(matches!(at(&["metadata", "finalizers"]).list.unwrap().relation, Relation::Set));
        assert!(matches!(at(&["spec", "containers", "", "args"]).list.unwrap().relation, Relation::Atomic));
        let volumes = Registry::kubernetes();
        let volumes = volumes.resource("", "v1", "persistentvolumes").unwrap();
        let types = volumes.schemas.merging();
        let below = |ty, name: &str| types.atom(ty).map.as_ref().unwrap().child(name).unwrap().ty;
        let claim = below(below(Types::structure(volumes.schema), "spec"), "claimRef");
        assert!(!types.atom(claim).map.as_ref().unwrap().atomic, "a claim is merged although references are not");
    }
}
