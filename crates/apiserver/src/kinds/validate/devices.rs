//! Rules for devices and claims to them.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors, affinity,
    check::{self, faults, list, maybe_text, members, number, part, required, text, texts},
    disks, expressions, shown, templates,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// The longest name of an attribute or capacity, with its domain.
const LONGEST_KEY: usize = 63 + 1 + 32;
/// The longest parameters that only a driver understands, in bytes.
const LONGEST_PARAMETERS: usize = 10 << 10;
/// The longest data in a status that only a driver understands, in bytes.
const LONGEST_DATA: usize = 10 << 10;
const LONGEST_EXPRESSION: usize = 10 << 10;

/// A rule for the items of a list.
type Each<'a> = &'a dyn Fn(&Value, &Path<'_>, &mut Errors);

/// A list with a bound.
fn bounded(all: &[Value], most: usize, path: &Path<'_>, errors: &mut Errors, each: Each<'_>) {
    for (at, item) in all.iter().enumerate() {
        each(item, &path.index(at), errors);
    }
    if all.len() > most {
        errors.push(FieldError::too_many(path, all.len(), most));
    }
}

/// A list with a bound of items whose names differ.
fn named(all: &[Value], most: usize, key: &str, path: &Path<'_>, errors: &mut Errors, each: Each<'_>) {
    bounded(all, most, path, errors, each);
    let mut seen = HashSet::new();
    for (at, item) in all.iter().enumerate() {
        if !seen.insert(text(item, key)) {
            let here = path.index(at);
            errors.push(FieldError::duplicate(&here.child(key), text(item, key)));
        }
    }
}

/// A list with a bound of texts that differ.
fn distinct(
    holder: &Value,
    field: &str,
    most: usize,
    path: &Path<'_>,
    errors: &mut Errors,
    each: &dyn Fn(&str, &Path<'_>, &mut Errors),
) {
    let (all, path) = (texts(holder, field), path.child(field));
    for (at, item) in all.iter().enumerate() {
        each(item, &path.index(at), errors);
    }
    if all.len() > most {
        errors.push(FieldError::too_many(&path, all.len(), most));
    }
    let mut seen = HashSet::new();
    for (at, item) in all.iter().enumerate().filter(|(_, item)| !seen.insert(*item)) {
        errors.push(FieldError::duplicate(&path.index(at), *item));
    }
}

/// Judges a claim.
pub(super) fn claim_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (claim, path) = (part(spec, "devices"), path.child("devices"));
    named(list(claim, "requests"), 32, "name", &path.child("requests"), errors, &request);
    bounded(list(claim, "constraints"), 32, &path.child("constraints"), errors, &|constraint, path, errors| {
        request_names(constraint, claim, path, errors);
        let given = ["matchAttribute", "distinctAttribute"]
            .into_iter()
            .find_map(|field| Some((field, maybe_text(constraint, field)?)));
        match given {
            Some((field, name)) => full_name(name, &path.child(field), errors),
            None => errors.push(FieldError::required(&path.child("matchAttribute"), "")),
        }
    });
    bounded(list(claim, "config"), 32, &path.child("config"), errors, &|config, path, errors| {
        request_names(config, claim, path, errors);
        configuration(config, path, errors);
    });
}

/// Judges a template of claims.
pub(super) fn claim_template(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    templates::metadata(part(spec, "metadata"), &path.child("metadata"), errors);
    claim_spec(part(spec, "spec"), &path.child("spec"), errors);
}

/// Judges a class of devices.
pub(super) fn class(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    bounded(list(spec, "selectors"), 32, &path.child("selectors"), errors, &selector);
    bounded(list(spec, "config"), 32, &path.child("config"), errors, &configuration);
}

fn request(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(request, "name");
    faults(format::dns_label(name), name, &path.child("name"), errors);
    let alternatives = list(request, "firstAvailable");
    if !alternatives.is_empty() {
        named(alternatives, 8, "name", &path.child("firstAvailable"), errors, &|alternative, path, errors| {
            let name = text(alternative, "name");
            faults(format::dns_label(name), name, &path.child("name"), errors);
            exact_request(alternative, path, errors);
        });
    }
    if let Some(exactly) = request.get("exactly") {
        exact_request(exactly, &path.child("exactly"), errors);
    }
    match (alternatives.is_empty(), request.get("exactly")) {
        (true, None) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required";
            errors.push(FieldError::required(path, detail));
        }
        (false, Some(_)) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.push(FieldError::invalid(path, Value::Null, detail));
        }
        _ => {}
    }
}

fn exact_request(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::required_as(request, "deviceClassName", format::dns_subdomain, path, errors);
    bounded(list(request, "selectors"), 32, &path.child("selectors"), errors, &selector);
    let count = number(request, "count").unwrap_or(0);
    match text(request, "allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.push(FieldError::invalid(&path.child("count"), count, detail));
        }
        "ExactCount" if count <= 0 => {
            errors.push(FieldError::invalid(&path.child("count"), count, check::ABOVE_ZERO));
        }
        "All" | "ExactCount" => {}
        other => {
            errors.push(FieldError::not_supported(&path.child("allocationMode"), other, &["All", "ExactCount"]));
        }
    }
    let tolerations = path.child("tolerations");
    for (at, toleration) in list(request, "tolerations").iter().enumerate() {
        self::toleration(toleration, &tolerations.index(at), errors);
    }
}

fn toleration(toleration: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::written_as(toleration, "key", format::qualified_name, path, errors);
    let value = text(toleration, "value");
    match text(toleration, "operator") {
        "Exists" if !value.is_empty() => {
            errors.push(FieldError::invalid(&path.child("value"), value, "must be empty for operator `Exists`"));
        }
        "Exists" => {}
        "Equal" => faults(format::label_value(value), value, &path.child("value"), errors),
        "" => errors.push(FieldError::required(&path.child("operator"), "")),
        other => errors.push(FieldError::not_supported(&path.child("operator"), other, &["Equal", "Exists"])),
    }
    check::one_of(toleration, "effect", &["NoExecute", "NoSchedule"], path, errors);
}

/// What selects devices.
fn selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    match selector.get("cel") {
        None => errors.push(FieldError::required(&path.child("cel"), "")),
        Some(cel) => {
            let (expression, field) = (text(cel, "expression"), path.child("cel.expression"));
            if expression.len() > LONGEST_EXPRESSION {
                errors.push(FieldError::too_long(&field, LONGEST_EXPRESSION));
            } else {
                expressions::device_selector(expression, &field, errors);
            }
        }
    }
}

/// Names of requests of the claim, perhaps with one of their alternatives.
fn request_names(holder: &Value, claim: &Value, path: &Path<'_>, errors: &mut Errors) {
    distinct(holder, "requests", 32, path, errors, &|name, path, errors| request_name(name, claim, path, errors));
}

fn request_name(name: &str, claim: &Value, path: &Path<'_>, errors: &mut Errors) {
    let unknown =
        "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 {
        errors.push(FieldError::invalid(path, name, unknown));
        return;
    }
    for part in &parts {
        faults(format::dns_label(part), part, path, errors);
    }
    let known = list(claim, "requests").iter().any(|request| {
        let alternatives = list(request, "firstAvailable");
        let alternative = |wanted: &&str| alternatives.iter().any(|alternative| text(alternative, "name") == *wanted);
        text(request, "name") == parts[0] && parts.get(1).is_none_or(alternative)
    });
    if !known {
        errors.push(FieldError::invalid(path, name, unknown));
    }
}

fn configuration(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    match config.get("opaque") {
        None => errors.push(FieldError::required(&path.child("opaque"), "")),
        Some(opaque) => {
            let path = path.child("opaque");
            disks::driver_name(opaque, "driver", &path, errors);
            raw_object(opaque.get("parameters"), LONGEST_PARAMETERS, &path.child("parameters"), errors);
        }
    }
}

/// Any object in JSON.
fn raw_object(raw: Option<&Value>, most: usize, path: &Path<'_>, errors: &mut Errors) {
    match raw {
        None | Some(Value::Null) => errors.push(FieldError::required(path, "")),
        Some(raw) if raw.to_string().len() > most => errors.push(FieldError::too_long(path, most)),
        Some(Value::Object(_)) => {}
        Some(_) => errors.push(FieldError::invalid(path, "<value omitted>", "must be a valid JSON object")),
    }
}

/// The name of an attribute or capacity, perhaps with a domain.
fn device_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, "name required"));
        return;
    }
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [name] => identifier(name, path, errors),
        [domain, name] => {
            if domain.is_empty() {
                errors.push(FieldError::required(path, "the domain must not be empty"));
            } else {
                disks::driver(domain, path, errors);
            }
            if name.is_empty() {
                errors.push(FieldError::required(path, "the name must not be empty"));
            } else {
                identifier(name, path, errors);
            }
        }
        _ => {}
    }
}

/// The name of an attribute or capacity with a domain.
fn full_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    device_name(name, path, errors);
    if !name.is_empty() && !name.contains('/') {
        errors.push(FieldError::invalid(path, name, "must include a domain"));
    }
}

fn identifier(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.len() > 32 {
        errors.push(FieldError::too_long(path, 32));
    }
    faults(format::identifier(name), name, path, errors);
}

fn pool_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if name.len() > 253 {
        errors.push(FieldError::too_long(path, 253));
    }
    for part in name.split('/') {
        faults(format::dns_subdomain(part), part, path, errors);
    }
}

/// Judges devices that a driver offers; `old` is what it offered before.
pub(super) fn slice(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    disks::driver_name(spec, "driver", path, errors);
    let (pool, pool_path) = (part(spec, "pool"), path.child("pool"));
    pool_name(text(pool, "name"), &pool_path.child("name"), errors);
    let slices = number(pool, "resourceSliceCount").unwrap_or(0);
    if slices <= 0 {
        errors.push(FieldError::invalid(&pool_path.child("resourceSliceCount"), slices, check::ABOVE_ZERO));
    }
    if let Some(generation) = number(pool, "generation").filter(|generation| *generation < 0) {
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&pool_path.child("generation"), generation, detail));
    }
    if let Some(old) = old {
        check::unchanged(pool, part(old, "pool"), "name", "", &pool_path, errors);
        check::unchanged(spec, old, "driver", "", path, errors);
        check::unchanged(spec, old, "nodeName", Value::Null, path, errors);
    }
    slice_nodes(spec, path, errors);
    named(list(spec, "devices"), 128, "name", &path.child("devices"), errors, &device);
}

fn slice_nodes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut given = Vec::new();
    match maybe_text(spec, "nodeName") {
        Some("") => {
            let detail = "must be either unset or set to a non-empty string";
            errors.push(FieldError::invalid(&path.child("nodeName"), "", detail));
        }
        Some(name) => {
            given.push("`nodeName`");
            faults(format::dns_subdomain(name), name, &path.child("nodeName"), errors);
        }
        None => {}
    }
    if let Some(selector) = spec.get("nodeSelector") {
        given.push("`nodeSelector`");
        affinity::node_selector(selector, &path.child("nodeSelector"), errors);
        let terms = list(selector, "nodeSelectorTerms");
        if terms.len() != 1 {
            let shown: Vec<String> =
                terms.iter().map(|term| shown::internal("io.k8s.api.core.v1.NodeSelectorTerm", term)).collect();
            let shown = if terms.is_empty() { "null".to_owned() } else { format!("[{}]", shown.join(",")) };
            let field = path.child("nodeSelector.nodeSelectorTerms");
            errors.push(FieldError::invalid_shown(&field, &shown, "must have exactly one node selector term"));
        }
    }
    match spec.get("allNodes") {
        Some(Value::Bool(true)) => given.push("`allNodes`"),
        Some(_) => {
            let detail = "must be either unset or set to true";
            errors.push(FieldError::invalid(&path.child("allNodes"), false, detail));
        }
        None => {}
    }
    let wanted = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match given.len() {
        0 => errors.push(FieldError::required(path, wanted)),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            errors.push(FieldError::invalid(path, shown, &format!("{wanted}, but multiple fields are set")));
        }
    }
}

fn device(device: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(device, "name");
    faults(format::dns_label(name), name, &path.child("name"), errors);
    let said = members(device, "attributes").count() + members(device, "capacity").count();
    if said > 32 {
        let detail = "the total number of attributes and capacities must not exceed 32";
        errors.push(FieldError::invalid(path, said, detail));
    }
    let attributes = path.child("attributes");
    for (key, value) in members(device, "attributes") {
        let short = shortened(key);
        let here = attributes.key(&short);
        device_name(key, &here, errors);
        attribute(value, &here, errors);
    }
    let capacity = path.child("capacity");
    for (key, _) in members(device, "capacity") {
        device_name(key, &capacity.key(&shortened(key)), errors);
    }
    bounded(list(device, "taints"), 4, &path.child("taints"), errors, &taint);
}

/// A key of which only the beginning and the end are shown where it is too long.
fn shortened(key: &str) -> String {
    if key.len() <= LONGEST_KEY {
        return key.to_owned();
    }
    let room = LONGEST_KEY - 3;
    let (head, tail) = (key.floor_char_boundary(room.div_ceil(2)), key.ceil_char_boundary(key.len() - room / 2));
    format!("{}...{}", &key[..head], &key[tail..])
}

fn attribute(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(value, "string").len() > 64 {
        errors.push(FieldError::too_long(&path.child("string"), 64));
    }
    if let Some(version) = maybe_text(value, "version") {
        let field = path.child("version");
        if !is_version(version) {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            errors.push(FieldError::invalid(&field, version, detail));
        }
        if version.len() > 64 {
            errors.push(FieldError::too_long(&field, 64));
        }
    }
    let given = ["bool", "int", "string", "version"].iter().filter(|name| value.get(**name).is_some()).count();
    match given {
        0 => errors.push(FieldError::required(path, "exactly one value must be specified")),
        1 => {}
        _ => {
            let field = |name: &str| value.get(name).cloned().unwrap_or(Value::Null);
            let shown = format!(
                "{{\"IntValue\":{},\"BoolValue\":{},\"StringValue\":{},\"VersionValue\":{}}}",
                field("int"),
                field("bool"),
                field("string"),
                field("version")
            );
            errors.push(FieldError::invalid_shown(path, &shown, "exactly one value must be specified"));
        }
    }
}

/// Whether text is a version as semver.org describes it.
fn is_version(text: &str) -> bool {
    let word = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let plain = |part: &str| digits(part) && (part == "0" || !part.starts_with('0'));
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (numbers, early) = text.split_once('-').map_or((text, None), |(numbers, early)| (numbers, Some(early)));
    let numbers: Vec<&str> = numbers.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|number| plain(number))
        && early.is_none_or(|early| early.split('.').all(|part| word(part) && (plain(part) || !digits(part))))
        && build.is_none_or(|build| build.split('.').all(word))
}

fn taint(taint: &Value, path: &Path<'_>, errors: &mut Errors) {
    let key = text(taint, "key");
    faults(format::qualified_name(key), key, &path.child("key"), errors);
    check::written_as(taint, "value", format::label_value, path, errors);
    check::required_one_of(taint, "effect", &["NoExecute", "NoSchedule"], path, errors);
}

/// Judges what became of a claim.
pub(super) fn claim_status(new: &Value, old: &Value, errors: &mut Errors) {
    let (status, before) = (part(new, "status"), part(old, "status"));
    let claim = part(part(new, "spec"), "devices");
    let path = Path::ROOT.child("status");
    let reserved = path.child("reservedFor");
    named(list(status, "reservedFor"), 256, "uid", &reserved, errors, &|user, path, errors| {
        for name in ["resource", "name", "uid"] {
            required(user, name, path, errors);
        }
    });
    let results = list(part(part(status, "allocation"), "devices"), "results");
    bounded(list(status, "devices"), usize::MAX, &path.child("devices"), errors, &|device, path, errors| {
        device_status(device, results, path, errors);
    });
    if !list(status, "reservedFor").is_empty() {
        let deleting = part(new, "metadata").get("deletionTimestamp").is_some();
        let more = list(status, "reservedFor").iter().any(|user| !list(before, "reservedFor").contains(user));
        if status.get("allocation").is_none() {
            errors.push(FieldError::forbidden(&reserved, "may not be specified when `allocated` is not set"));
        } else if deleting && more {
            let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(FieldError::forbidden(&reserved, detail));
        }
    }
    let here = path.child("allocation");
    match (status.get("allocation"), before.get("allocation")) {
        (Some(now), Some(before)) if now != before => {
            let shown = shown::internal("io.k8s.api.resource.v1.AllocationResult", now);
            errors.push(FieldError::invalid_shown(&here, &shown, "field is immutable"));
        }
        (Some(now), None) => allocation(now, claim, &here, errors),
        _ => {}
    }
}

fn allocation(result: &Value, claim: &Value, path: &Path<'_>, errors: &mut Errors) {
    let devices = part(result, "devices");
    let here = path.child("devices");
    bounded(list(devices, "results"), 32, &here.child("results"), errors, &|result, path, errors| {
        request_name(text(result, "request"), claim, &path.child("request"), errors);
        device_place(result, path, errors);
    });
    bounded(list(devices, "config"), 64, &here.child("config"), errors, &|config, path, errors| {
        check::required_one_of(config, "source", &["FromClaim", "FromClass"], path, errors);
        request_names(config, claim, path, errors);
        configuration(config, path, errors);
    });
    if let Some(selector) = result.get("nodeSelector") {
        affinity::node_selector(selector, &path.child("nodeSelector"), errors);
    }
}

/// The driver, pool and name of a device.
fn device_place(holder: &Value, path: &Path<'_>, errors: &mut Errors) {
    disks::driver_name(holder, "driver", path, errors);
    pool_name(text(holder, "pool"), &path.child("pool"), errors);
    let name = text(holder, "device");
    faults(format::dns_label(name), name, &path.child("device"), errors);
}

fn device_status(device: &Value, results: &[Value], path: &Path<'_>, errors: &mut Errors) {
    device_place(device, path, errors);
    let place = |holder: &Value| ["driver", "pool", "device"].map(|name| text(holder, name).to_owned());
    if !results.iter().any(|result| place(result) == place(device)) {
        let [driver, pool, name] = place(device);
        let shown = format!("{{\"Driver\":\"{driver}\",\"Pool\":\"{pool}\",\"Device\":\"{name}\",\"ShareID\":\"\"}}");
        errors.push(FieldError::invalid_shown(path, &shown, "must be an allocated device in the claim"));
    }
    let conditions = list(device, "conditions").len();
    if conditions > 8 {
        errors.push(FieldError::too_many(&path.child("conditions"), conditions, 8));
    }
    check::conditions(device, path, errors);
    if device.get("data").is_some_and(|data| !data.is_null()) {
        raw_object(device.get("data"), LONGEST_DATA, &path.child("data"), errors);
    }
    let Some(network) = device.get("networkData") else { return };
    let path = path.child("networkData");
    for (name, most) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        if text(network, name).len() > most {
            errors.push(FieldError::too_long(&path.child(name), most));
        }
    }
    distinct(network, "ips", 16, &path, errors, &|address, path, errors| {
        let detail = match format::sloppy_network(address) {
            None => "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".to_owned(),
            Some(network) => {
                let canonical = format!("{}/{}", network.address, network.bits);
                if canonical == address {
                    return;
                }
                format!("must be in canonical form ({})", crate::field::quote(&canonical))
            }
        };
        errors.push(FieldError::invalid(path, address, &detail));
    });
}
