//! What expressions of an admission policy get wrong about the kinds that the policy is for.

use orrery_cel::Type;
use serde_json::Value;

use super::{
    expressions::Admission,
    validate::check::{list, part, text, texts},
};
use crate::{
    registry::{Registry, Resource},
    schema::{Schemas, Shape, StructRef, Type as FieldType},
};

/// How many kinds expressions are checked for.
const MOST_KINDS: usize = 10;

/// Something that is wrong with an expression.
pub(crate) struct Warning {
    /// The field of the policy.
    pub(crate) field: String,
    /// For each kind, what is wrong.
    pub(crate) text: String,
}

/// Checks the expressions of a policy for the kinds it names.
pub(crate) fn warnings(registry: &Registry, policy: &Value) -> Vec<Warning> {
    let spec = part(policy, "spec");
    let params = parameters(registry, spec).map(type_of);
    let kinds: Vec<(String, Admission)> = kinds(registry, spec)
        .into_iter()
        .map(|resource| {
            let name = format!("{}/{}, Kind={}", resource.group, resource.version, resource.kind);
            let mut admission = Admission::of_type(&type_of(resource), params.as_ref());
            for variable in list(spec, "variables") {
                let path = crate::field::Path::ROOT;
                admission.variable(text(variable, "name"), text(variable, "expression"), &path, &mut Vec::new());
            }
            (name, admission)
        })
        .collect();
    let mut warnings = Vec::new();
    for (at, validation) in list(spec, "validations").iter().enumerate() {
        for name in ["expression", "messageExpression"] {
            let expression = text(validation, name);
            if name == "messageExpression" && expression.is_empty() {
                continue;
            }
            let problems = kinds.iter().filter_map(|(kind, admission)| {
                admission.problem(expression).map(|problem| format!("{kind}: {problem}\n"))
            });
            let problems: Vec<String> = problems.collect();
            if !problems.is_empty() {
                let field = format!("spec.validations[{at}].{name}");
                warnings.push(Warning { field, text: problems.join("\n") });
            }
        }
    }
    warnings
}

/// The kind of the parameters, if it is known.
fn parameters<'a>(registry: &'a Registry, spec: &Value) -> Option<&'a Resource> {
    let kind = spec.get("paramKind")?;
    let version = text(kind, "apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    registry.kind(group, version, text(kind, "kind")).map(|resource| &**resource)
}

/// The kinds that the rules of a policy name, sorted.
fn kinds<'a>(registry: &'a Registry, spec: &Value) -> Vec<&'a Resource> {
    let mut found: Vec<&Resource> = Vec::new();
    for rule in list(part(spec, "matchConstraints"), "resourceRules") {
        let sorted = |name: &str| {
            let mut all = texts(rule, name);
            all.sort_unstable();
            all
        };
        let (groups, versions) = (sorted("apiGroups"), sorted("apiVersions"));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        let mut count = 0;
        for group in groups {
            for version in &versions {
                for resource in sorted("resources") {
                    for resource in named(registry, group, version, &resource.to_lowercase()) {
                        if !found.iter().any(|known| std::ptr::eq(*known, resource)) {
                            found.push(resource);
                        }
                        count += 1;
                        if count == MOST_KINDS {
                            return in_order(found);
                        }
                    }
                }
            }
        }
    }
    in_order(found)
}

fn in_order(mut found: Vec<&Resource>) -> Vec<&Resource> {
    let key = |resource: &Resource| (resource.group.clone(), resource.version.clone(), resource.kind.clone());
    found.sort_by_cached_key(|resource| key(resource));
    found
}

/// Resources by the name of many or of one; those of all groups where none is named.
fn named<'a>(registry: &'a Registry, group: &str, version: &str, name: &str) -> Vec<&'a Resource> {
    let groups = registry.groups().iter().filter(|known| group.is_empty() || known.name == group);
    let resources = groups.filter_map(|group| group.version(version)).flat_map(|version| &version.resources);
    resources
        .filter(|resource| resource.plural == name || resource.singular == name)
        .map(|resource| &**resource)
        .collect()
}

/// What objects of a resource are to expressions.
fn type_of(resource: &Resource) -> Type {
    let mut within = Vec::new();
    object(&resource.schemas, resource.schema, &resource.kind, &mut within)
}

/// An object; within itself, one of which nothing is known.
fn object(schemas: &Schemas, of: StructRef, name: &str, within: &mut Vec<StructRef>) -> Type {
    if within.contains(&of) {
        return Type::object(name, []);
    }
    within.push(of);
    // What holds any JSON in a schema of a definition has no type at all.
    let definition = schemas.get(of).name.starts_with("io.k8s.apiextensions-apiserver.");
    let fields = schemas.get(of).fields.iter().filter(|field| !definition || !is_raw(&field.ty)).filter_map(|field| {
        let of = value(schemas, &field.ty, &format!("{name}.{}", field.name), within)?;
        Some((orrery_cel::escape(&field.name)?, of))
    });
    let fields: Vec<(String, Type)> = fields.collect();
    within.pop();
    Type::object(name, fields.iter().map(|(name, of)| (name.as_str(), of.clone())))
}

/// Whether a value, or each of a list, is any JSON.
fn is_raw(of: &FieldType) -> bool {
    match &of.shape {
        Shape::Raw => true,
        Shape::List(element) => is_raw(element),
        _ => false,
    }
}

/// What a value is to expressions; nothing if they cannot see it.
fn value(schemas: &Schemas, of: &FieldType, name: &str, within: &mut Vec<StructRef>) -> Option<Type> {
    Some(match &of.shape {
        Shape::Bool => Type::Bool,
        Shape::Int32 | Shape::Int64 => Type::Int,
        Shape::Float64 => Type::Double,
        Shape::String | Shape::Duration => Type::String,
        Shape::Bytes => Type::Bytes,
        Shape::Time | Shape::MicroTime => Type::Timestamp,
        Shape::Raw => Type::object(name, []),
        Shape::Quantity => return None,
        Shape::IntOrString => Type::Dyn,
        Shape::Struct(of) => object(schemas, *of, name, within),
        Shape::List(element) => Type::list(value(schemas, element, &format!("{name}.@idx"), within)?),
        Shape::Map(element) => Type::map(Type::String, value(schemas, element, &format!("{name}.@elem"), within)?),
    })
}
