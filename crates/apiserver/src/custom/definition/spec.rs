//! The spec of a definition.
//!
//! Messages speak of a form in which what all versions have in common stands once: `spec.validation` for schemas that are the same,
//! `spec.versions[i].schema` for others, and likewise with subresources, columns and selectable fields.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors, Options, columns, conversion, dump, has, invalid, list, names, part, required, schema, selectable,
    subresources, text, truth,
};
use crate::{
    field::{FieldError, Path},
    format, gotext,
};

/// What all versions have in common.
struct Common {
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable: bool,
}

impl Common {
    fn of(versions: &[Value]) -> Self {
        let same = |name: &str| versions.iter().all(|version| version.get(name) == versions[0].get(name));
        Self {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

/// Judges the spec.
pub(super) fn validate(spec: &Value, options: &Options, errors: &mut Errors) {
    group(text(spec, "group"), errors);
    scope(text(spec, "scope"), errors);
    let versions = list(spec, "versions");
    let common = Common::of(versions);
    let preserves = truth(spec, "preserveUnknownFields");
    for (at, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
        if !has(part(version, "schema"), "openAPIV3Schema") {
            if options.schemas {
                errors.push(required(&path, ""));
            } else if !preserves && truth(version, "served") {
                errors.push(required(&path, "because otherwise all fields are pruned"));
            }
        }
    }
    let (mut has_defaults, mut has_extensions) = (false, false);
    for version in versions {
        super::options::each(part(part(version, "schema"), "openAPIV3Schema"), &mut |schema| {
            has_defaults |= has(schema, "default");
            has_extensions |= schema::has_extension(schema);
        });
    }
    if has_defaults && preserves {
        errors.push(invalid(
            "spec.preserveUnknownFields",
            true,
            "must be false in order to use defaults in the schema",
        ));
    }
    let structural = options.structural || !preserves || has_defaults || has_extensions;
    let judging = schema::Judging { options, structural, any_cost: false };
    for (at, version) in versions.iter().enumerate() {
        self::version(version, &format!("spec.versions[{at}]"), &common, &judging, errors);
    }
    version_list(versions, &common, errors);
    let wanted = part(spec, "names");
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(wanted, name).is_empty() {
            errors.push(required(&format!("spec.names.{name}"), ""));
        }
    }
    names::validate(wanted, "spec.names", errors);
    if let Some(first) = versions.first() {
        shared(first, versions, &common, &judging, errors);
    }
    let strategy = text(part(spec, "conversion"), "strategy");
    if has(spec, "conversion") && strategy != "None" && preserves {
        errors.push(invalid(
            "spec.conversion.strategy",
            strategy,
            "must be None if spec.preserveUnknownFields is true",
        ));
    }
    conversion::validate(part(spec, "conversion"), options.known_review, errors);
}

fn group(group: &str, errors: &mut Errors) {
    let faults = format::dns_subdomain(group);
    if group.is_empty() {
        errors.push(required("spec.group", ""));
    } else if !faults.is_empty() {
        errors.push(invalid("spec.group", group, &faults.join(",")));
    } else if !group.contains('.') {
        errors.push(invalid("spec.group", group, "should be a domain with at least one dot"));
    } else if group == "orrery.io" || group.ends_with(".orrery.io") {
        errors.push(invalid("spec.group", group, "is kept for the program's own kinds"));
    }
}

fn scope(scope: &str, errors: &mut Errors) {
    match scope {
        "" => errors.push(required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let path = Path::ROOT.child("spec.scope");
            errors.push(FieldError::not_supported_text(&path, other, &["Cluster", "Namespaced"]));
        }
    }
}

/// What a version has for itself.
fn version(version: &Value, path: &str, common: &Common, judging: &schema::Judging<'_>, errors: &mut Errors) {
    let name = text(version, "name");
    let faults = format::dns_1035_label(name);
    if !faults.is_empty() {
        errors.push(invalid(&format!("{path}.name"), name, &faults.join(",")));
    }
    deprecation(version, path, errors);
    let schema = part(part(version, "schema"), "openAPIV3Schema");
    let resources = part(version, "subresources");
    if !common.schema && schema.is_object() {
        let any_cost = judging.options.unchanged.contains(name);
        let judging = schema::Judging { any_cost, ..*judging };
        let has_status = subresources::has_status(resources);
        schema::validate(schema, &format!("{path}.schema.openAPIV3Schema"), has_status, &judging, errors);
    }
    if !common.subresources {
        subresources::validate(resources, &format!("{path}.subresources"), errors);
    }
    if !common.columns {
        printed(version, &format!("{path}.additionalPrinterColumns"), errors);
    }
    if !common.selectable && !list(version, "selectableFields").is_empty() {
        let selectable = format!("{path}.selectableFields");
        if common.schema || !schema.is_object() {
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            errors.push(invalid(&selectable, "", detail));
        } else {
            selectable::validate(list(version, "selectableFields"), schema, &selectable, errors);
        }
    }
}

fn deprecation(version: &Value, path: &str, errors: &mut Errors) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut add = |detail: &str| errors.push(invalid(&format!("{path}.deprecationWarning"), warning, detail));
    if !truth(version, "deprecated") {
        return add("can only be set for deprecated versions");
    }
    if warning.len() > 256 {
        add("must be <= 256 characters long");
    }
    if warning.is_empty() {
        add("must not be an empty string");
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, character)| !gotext::is_print(*character)) {
        add(&format!("must only contain printable UTF-8 characters; non-printable character found at index {at}"));
    }
}

fn version_list(versions: &[Value], common: &Common, errors: &mut Errors) {
    let name_of = |version: &Value| text(version, "name").to_owned();
    let mut names = HashSet::new();
    let repeated = !versions.iter().all(|version| names.insert(text(version, "name")));
    let shown = || {
        dump::versions(
            versions,
            &[
                ("schema", common.schema),
                ("subresources", common.subresources),
                ("additionalPrinterColumns", common.columns),
                ("selectableFields", common.selectable),
            ],
        )
    };
    let path = Path::ROOT.child("spec.versions");
    if repeated {
        errors.push(FieldError::invalid_shown(&path, &shown(), "must contain unique version names"));
    }
    if versions.iter().filter(|version| truth(version, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid_shown(&path, &shown(), detail));
    }
    let first = versions.first().map(name_of).unwrap_or_default();
    let faults = format::dns_1035_label(&first);
    if !first.is_empty() && !faults.is_empty() {
        errors.push(invalid("spec.version", first, &faults.join(",")));
    }
}

/// What all versions share.
fn shared(first: &Value, versions: &[Value], common: &Common, judging: &schema::Judging<'_>, errors: &mut Errors) {
    let schema = part(part(first, "schema"), "openAPIV3Schema");
    if common.schema && schema.is_object() {
        let has_status = versions.iter().any(|version| subresources::has_status(part(version, "subresources")));
        let any_cost = judging.options.unchanged.contains(text(first, "name"));
        let judging = schema::Judging { any_cost, ..*judging };
        schema::validate(schema, "spec.validation.openAPIV3Schema", has_status, &judging, errors);
    }
    if common.subresources {
        subresources::validate(part(first, "subresources"), "spec.subresources", errors);
    }
    if common.columns {
        printed(first, "spec.additionalPrinterColumns", errors);
    }
    let fields = list(first, "selectableFields");
    if common.selectable && !fields.is_empty() {
        if common.schema && has(first, "schema") {
            selectable::validate(fields, schema, "spec.selectableFields", errors);
        } else {
            let detail = "may only be set when validations.schema is included";
            errors.push(invalid("spec.selectableFields", "", detail));
        }
    }
}

fn printed(version: &Value, path: &str, errors: &mut Errors) {
    for (at, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        columns::validate(column, &format!("{path}[{at}]"), errors);
    }
}

/// Judges what must stay as it was.
pub(super) fn unchanged(new: &Value, old: &Value, established: bool, errors: &mut Errors) {
    let mut check = |path: &str, new: &str, old: &str| {
        if new != old {
            errors.push(invalid(path, new, "field is immutable"));
        }
    };
    let (names, old_names) = (part(new, "names"), part(old, "names"));
    if established {
        check("spec.scope", text(new, "scope"), text(old, "scope"));
        check("spec.names.kind", text(names, "kind"), text(old_names, "kind"));
    }
    check("spec.group", text(new, "group"), text(old, "group"));
    check("spec.names.plural", text(names, "plural"), text(old_names, "plural"));
}
