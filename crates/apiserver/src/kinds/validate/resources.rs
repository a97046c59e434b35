//! Rules for amounts of resources: their names, requests and limits, quotas and ranges of limits.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    Errors,
    check::{self, Once, faults, list, members, part, quantity, text, texts},
};
use crate::{
    field::{FieldError, Path},
    format,
    quantity::Quantity,
};

const HUGE_PAGES: &str = "hugepages-";

/// Resources that containers ask for.
const OF_CONTAINERS: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];
/// Resources that a pod as a whole asks for.
const OF_PODS: [&str; 2] = ["cpu", "memory"];

/// Resources that are counted in whole numbers.
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Resources that quotas know besides those that are counted.
const QUOTA: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];

/// Who asks for resources.
#[derive(Clone, Copy)]
pub(super) enum Asker {
    Container,
    Pod,
}

/// Whether a resource is Kubernetes' own.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource is one that nodes announce.
pub(super) fn is_extended(name: &str) -> bool {
    let quota_name = format!("requests.{name}");
    !is_native(name) && !name.starts_with("requests.") && format::qualified_name(&quota_name).is_empty()
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether more may be promised than there is.
fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

fn is_quota_resource(name: &str) -> bool {
    COUNTED.contains(&name)
        || QUOTA.contains(&name)
        || is_huge_pages(name)
        || name.strip_prefix("requests.").is_some_and(is_huge_pages)
}

/// The name of any resource; true where nothing is wrong with it.
fn name(name: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let found = format::qualified_name(name);
    if !found.is_empty() {
        faults(found, name, path, errors);
        return false;
    }
    let standard = name.contains('/') || name == "storage" || is_quota_resource(name);
    if !standard {
        errors.push(FieldError::invalid(path, name, "must be a standard resource type or fully qualified"));
    }
    standard
}

/// The name of a resource that containers ask for.
pub(super) fn container_resource(found: &str, path: &Path<'_>, errors: &mut Errors) {
    name(found, path, errors);
    if !found.contains('/') {
        if !OF_CONTAINERS.contains(&found) && !is_huge_pages(found) {
            errors.push(FieldError::invalid(path, found, "must be a standard resource for containers"));
        }
    } else if !is_native(found) && !is_extended(found) {
        errors.push(FieldError::invalid(path, found, "doesn't follow extended resource name standard"));
    }
}

fn pod_resource(found: &str, path: &Path<'_>, errors: &mut Errors) {
    if name(found, path, errors) && !OF_PODS.contains(&found) && !is_huge_pages(found) {
        errors.push(FieldError::not_supported(path, found, &["cpu", "hugepages-", "memory"]));
    }
}

fn quota_resource(found: &str, path: &Path<'_>, errors: &mut Errors) {
    name(found, path, errors);
    if !found.contains('/') && !is_quota_resource(found) {
        errors.push(FieldError::invalid(path, found, "must be a standard resource for quota"));
    }
}

/// An amount of a resource.
pub(super) fn amount(name: &str, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::not_negative_quantity(value, path, errors);
    let whole = COUNTED.contains(&name) || is_extended(name);
    if let Some(quantity) = quantity(Some(value)).filter(|quantity| whole && !quantity.counts_as_whole()) {
        errors.push(FieldError::invalid(path, quantity.written(), "must be an integer"));
    }
}

/// Judges requests and limits; `claims` are the names that claims of the pod have.
pub(super) fn requirements(asked: &Value, asker: Asker, claims: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    let (mut ordinary, mut huge) = (false, false);
    for (kind, kind_path) in [("limits", &limits), ("requests", &requests)] {
        for (name, value) in members(asked, kind) {
            let here = kind_path.key(name);
            match asker {
                Asker::Container => container_resource(name, &here, errors),
                Asker::Pod => pod_resource(name, &here, errors),
            }
            amount(name, value, &here, errors);
            if kind == "requests" {
                against_limit(name, value, part(asked, "limits").get(name), path, errors);
            }
            if is_huge_pages(name) {
                huge = true;
                whole_pages(name, value, &here, errors);
            }
            ordinary |= OF_PODS.contains(&name.as_str());
        }
    }
    if huge && !ordinary {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    claimed(asked, claims, &path.child("claims"), errors);
}

fn against_limit(name: &str, asked: &Value, limit: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let (Some(asked), Some(limit)) = (quantity(Some(asked)), quantity(limit)) else {
        if !may_overcommit(name) {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(&path.child("limits"), detail));
        }
        return;
    };
    let compared = asked.compare(&limit);
    let relation = match may_overcommit(name) {
        false if compared.is_ne() => "equal to",
        _ if compared.is_gt() => "less than or equal to",
        _ => return,
    };
    let detail = format!("must be {relation} {name} limit of {}", limit.written());
    errors.push(FieldError::invalid(&path.child("requests"), asked.written(), &detail));
}

fn whole_pages(name: &str, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(asked) = quantity(Some(value)) else { return };
    let page = name.strip_prefix(HUGE_PAGES).and_then(|size| Quantity::parse(size).ok());
    let page = page.and_then(|page| page.whole()).filter(|page| *page > 0);
    let divisible = page.is_some_and(|page| asked.whole().is_some_and(|asked| asked % page == 0));
    if !divisible {
        let detail = format!("{} is not positive integer multiple of {name}", asked.written());
        errors.push(FieldError::invalid(path, asked.written(), &detail));
    }
}

/// Whether as many errors that each show all names come to too much.
fn shows_too_much(errors: usize, names: &[&str]) -> bool {
    let bytes = || names.iter().map(|name| name.len()).sum::<usize>();
    errors.saturating_mul(names.len()) > 100_000 || errors.saturating_mul(bytes()) > 1 << 24
}

/// Claims of the pod that a container uses; `claims` are those that it has, in order.
fn claimed(asked: &Value, claims: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: HashSet<String> = HashSet::new();
    // How many requests of each claim were named.
    let mut parts: HashMap<&str, usize> = HashMap::new();
    for (at, claim) in list(asked, "claims").iter().enumerate() {
        let here = path.index(at);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(FieldError::required(&here, ""));
            continue;
        }
        let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
        if seen.contains(name) {
            errors.push(FieldError::duplicate(&here, name));
        } else {
            check::written_as(claim, "request", format::dns_label, &here, errors);
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&here, key.as_str()));
            } else if request.is_empty() {
                let parts = parts.get(name).copied().unwrap_or_default();
                errors.extend((0..parts).map(|_| FieldError::duplicate(&here, name)));
            } else {
                *parts.entry(name).or_default() += 1;
            }
            seen.insert(key);
        }
        if claims.binary_search(&name).is_err() {
            let listed = match claims {
                [] => " which is empty".to_owned(),
                _ if shows_too_much(errors.len(), claims) => String::new(),
                _ => format!(": {}", claims.join(", ")),
            };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{listed}");
            errors.push(FieldError::not_found(&here, name).with_detail(&detail));
        }
    }
}

/// Judges what a pod as a whole asks for against what its containers ask for.
pub(super) fn pod_level(spec: &Value, claims: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let Some(asked) = spec.get("resources") else { return };
    let here = path.child("resources");
    if text(part(spec, "os"), "name") == "windows" {
        errors.push(FieldError::forbidden(&here, "may not be set for a windows pod"));
        return;
    }
    if asked.get("claims").is_some() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&here.child("claims"), detail));
    }
    requirements(asked, Asker::Pod, claims, &here, errors);
    let requests = here.child("requests");
    for (name, value) in members(asked, "requests") {
        let (Some(whole), Some(parts)) = (quantity(Some(value)), all_containers(spec, "requests", name)) else {
            continue;
        };
        if parts.compare(&whole).is_gt() {
            let detail =
                format!("must be greater than or equal to aggregate container requests of {}", parts.written());
            errors.push(FieldError::invalid(&requests.key(name), whole.written(), &detail));
        }
    }
    let limits = here.child("limits");
    for (name, value) in members(asked, "limits").filter(|(name, _)| is_huge_pages(name)) {
        let (Some(whole), Some(parts)) = (quantity(Some(value)), all_containers(spec, "limits", name)) else {
            continue;
        };
        if parts.compare(&whole).is_gt() {
            let detail = format!("must be greater than or equal to aggregate container limits of {}", parts.written());
            errors.push(FieldError::invalid(&limits.key(name), whole.written(), &detail));
        }
    }
    let containers = here.child("containers");
    for (at, container) in list(spec, "containers").iter().enumerate() {
        let container_path = containers.index(at);
        for (name, value) in members(part(container, "resources"), "limits") {
            let (Some(limit), Some(whole)) = (quantity(Some(value)), quantity(part(asked, "limits").get(name))) else {
                continue;
            };
            if limit.compare(&whole).is_gt() {
                let detail = format!("must be less than or equal to pod limits of {}", whole.written());
                let key = container_path.key(name);
                errors.push(FieldError::invalid(&key.child("limits"), limit.written(), &detail));
            }
        }
    }
}

/// What the containers of a pod ask for, or are limited to, together: those that run beside each other, or the largest that runs alone before them.
fn all_containers(spec: &Value, kind: &str, name: &str) -> Option<Quantity> {
    let asked = |container: &Value| quantity(part(part(container, "resources"), kind).get(name));
    let mut together = list(spec, "containers").iter().filter_map(asked).reduce(|sum, more| sum.plus(&more));
    let mut beside: Option<Quantity> = None;
    let mut alone: Option<Quantity> = None;
    for container in list(spec, "initContainers") {
        let Some(own) = asked(container) else { continue };
        let sum = beside.as_ref().map_or(own.clone(), |beside| beside.plus(&own));
        if text(container, "restartPolicy") == "Always" {
            beside = Some(sum);
            together = Some(together.map_or(own.clone(), |together| together.plus(&own)));
        } else {
            alone = Some(alone.filter(|alone| alone.compare(&sum).is_ge()).unwrap_or(sum));
        }
    }
    match (together, alone) {
        (Some(together), Some(alone)) => Some(if alone.compare(&together).is_gt() { alone } else { together }),
        (together, alone) => together.or(alone),
    }
}

/// Judges a quota.
pub(super) fn quota(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    quota_amounts(spec, "hard", path, errors);
    quota_scopes(spec, path, errors);
    let Some(selector) = spec.get("scopeSelector") else { return };
    let here = path.child("scopeSelector");
    let expressions = here.child("matchExpressions");
    let scopes: Vec<&str> =
        list(selector, "matchExpressions").iter().map(|expression| text(expression, "scopeName")).collect();
    for expression in list(selector, "matchExpressions") {
        scope_expression(expression, spec, &expressions, errors);
    }
    conflicting_scopes(&scopes, spec, &expressions, errors);
}

/// Judges amounts of a quota: what is allowed, or what is used.
pub(super) fn quota_amounts(holder: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child(field);
    for (name, value) in members(holder, field) {
        let here = path.key(name);
        quota_resource(name, &here, errors);
        amount(name, value, &here, errors);
    }
}

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

/// Whether a resource can be counted within a scope.
fn fits_scope(scope: &str, resource: &str) -> bool {
    let compute = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&resource),
        scope if SCOPES.contains(&scope) => resource == "pods" || compute.contains(&resource),
        _ => true,
    }
}

fn misfits<'a>(spec: &'a Value, scope: &'a str) -> impl Iterator<Item = &'a String> {
    let names = members(spec, "hard").map(|(name, _)| name);
    names.filter(move |name| is_quota_resource(name) && !fits_scope(scope, name))
}

fn quota_scopes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("scopes");
    let scopes = texts(spec, "scopes");
    let shown = || part(spec, "scopes").clone();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.push(FieldError::invalid(&path, shown(), "unsupported scope"));
        }
        let misfits = misfits(spec, scope);
        errors.extend(misfits.map(|_| FieldError::invalid(&path, shown(), "unsupported scope applied to resource")));
    }
    conflicting_scopes(&scopes, spec, &path, errors);
}

fn conflicting_scopes(scopes: &[&str], spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (one, other) in [("BestEffort", "NotBestEffort"), ("NotTerminating", "Terminating")] {
        if scopes.contains(&one) && scopes.contains(&other) {
            errors.push(FieldError::invalid(path, part(spec, "scopes").clone(), "conflicting scopes"));
        }
    }
}

fn scope_expression(expression: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (scope, operator) = (text(expression, "scopeName"), text(expression, "operator"));
    if !SCOPES.contains(&scope) {
        let shown = crate::field::json(&scope.into());
        errors.push(FieldError::invalid_shown(&path.child("scopeName"), &shown, "unsupported scope"));
    }
    for _ in misfits(spec, scope) {
        let shown = super::shown::internal("io.k8s.api.core.v1.ScopeSelector", part(spec, "scopeSelector"));
        errors.push(FieldError::invalid_shown(path, &shown, "unsupported scope applied to resource"));
    }
    let takes_values = ["PriorityClass", "VolumeAttributesClass"].contains(&scope) || !SCOPES.contains(&scope);
    if !takes_values && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, \
                      ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
    }
    let values = list(expression, "values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            errors.push(FieldError::invalid(&path.child("values"), values.to_vec(), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let shown = crate::field::json(&other.into());
            errors.push(FieldError::invalid_shown(&path.child("operator"), &shown, "not a valid selector operator"));
        }
    }
}

/// Judges a range of limits.
pub(super) fn limit_range(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let limits = path.child("limits");
    let mut kinds = Once::new();
    for (at, limit) in list(spec, "limits").iter().enumerate() {
        let here = limits.index(at);
        let kind = text(limit, "type");
        limit_type(kind, &here.child("type"), errors);
        kinds.check(kind, &here.child("type"), errors);
        limit_names(limit, kind, &here, errors);
        let mut names: Vec<&String> =
            BOUNDS.iter().flat_map(|bound| members(limit, bound)).map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        for name in names {
            LimitOf { limit, name }.judge(kind == "Pod", &here, errors);
        }
    }
}

/// What a range of limits bounds resources with, in the order in which names are judged.
const BOUNDS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

fn limit_type(kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let found = format::qualified_name(kind);
    if found.is_empty() && !kind.contains('/') && !["Container", "PersistentVolumeClaim", "Pod"].contains(&kind) {
        errors.push(FieldError::invalid(path, kind, "must be a standard limit type or fully qualified"));
    }
    faults(found, kind, path, errors);
}

fn limit_names(limit: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    for bound in BOUNDS {
        let bound_path = path.child(bound);
        if kind == "Pod" && ["default", "defaultRequest"].contains(&bound) {
            if members(limit, bound).next().is_some() {
                errors.push(FieldError::forbidden(&bound_path, "may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        if bound == "maxLimitRequestRatio"
            && kind == "PersistentVolumeClaim"
            && ["min", "max"].iter().all(|bound| part(limit, bound).get("storage").is_none())
        {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(&path.child("limits"), detail));
        }
        for (found, _) in members(limit, bound) {
            let here = bound_path.key(found);
            match kind {
                "Pod" | "Container" => container_resource(found, &here, errors),
                _ => drop(name(found, &here, errors)),
            }
        }
    }
}

/// All bounds of one resource.
struct LimitOf<'a> {
    limit: &'a Value,
    name: &'a str,
}

impl LimitOf<'_> {
    fn bound(&self, bound: &str) -> Option<Quantity> {
        quantity(part(self.limit, bound).get(self.name))
    }

    fn judge(&self, whole_pod: bool, path: &Path<'_>, errors: &mut Errors) {
        let (least, most) = (self.bound("min"), self.bound("max"));
        let default = self.bound("default").filter(|_| !whole_pod);
        let request = self.bound("defaultRequest").filter(|_| !whole_pod);
        // Each is a pair that must be in order: the smaller, the larger, their names, and which field is shown with which value.
        let pairs = [
            (&least, &most, "min value", "max value", "min", &least),
            (&least, &request, "min value", "default request value", "defaultRequest", &request),
            (&request, &most, "default request value", "max value", "defaultRequest", &request),
            (&request, &default, "default request value", "default limit value", "defaultRequest", &request),
            (&least, &default, "min value", "default value", "default", &least),
            (&default, &most, "default value", "max value", "default", &most),
        ];
        for (small, large, small_name, large_name, field, shown) in pairs {
            let (Some(small), Some(large), Some(shown)) = (small, large, shown) else { continue };
            if small.compare(large).is_gt() {
                let detail =
                    format!("{small_name} {} is greater than {large_name} {}", small.written(), large.written());
                let field = path.child(field);
                errors.push(FieldError::invalid(&field.key(self.name), shown.written(), &detail));
            }
        }
        self.ratio(&least, &most, path, errors);
        if let (false, Some(default), Some(request)) = (may_overcommit(self.name), &default, &request)
            && default.compare(request).is_ne()
        {
            let detail = format!(
                "default value {} must equal to defaultRequest value {} in {}",
                default.written(),
                request.written(),
                self.name
            );
            let field = path.child("defaultRequest");
            errors.push(FieldError::invalid(&field.key(self.name), request.written(), &detail));
        }
    }

    fn ratio(&self, least: &Option<Quantity>, most: &Option<Quantity>, path: &Path<'_>, errors: &mut Errors) {
        let Some(ratio) = self.bound("maxLimitRequestRatio") else { return };
        let field = path.child("maxLimitRequestRatio");
        let field = field.key(self.name);
        if ratio.approximate() < 1.0 {
            let detail = format!("ratio {} is less than 1", ratio.written());
            errors.push(FieldError::invalid(&field, ratio.written(), &detail));
        }
        if let (Some(least), Some(most)) = (least, most) {
            let largest = most.approximate() / least.approximate();
            if ratio.approximate() > largest {
                let detail = format!("ratio {} is greater than max/min = {largest:.6}", ratio.written());
                errors.push(FieldError::invalid(&field, ratio.written(), &detail));
            }
        }
    }
}
