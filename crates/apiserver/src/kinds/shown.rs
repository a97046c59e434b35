//! Structs as messages show them: Kubernetes prints the types it works with inside, with all fields and the names these have in Go.

use serde_json::Value;

use super::difference;
use crate::{
    registry::Registry,
    schema::{Field, Omit, Schemas, Shape, Struct, StructRef, Type},
};

/// The value of a type, given by its name in OpenAPI, in its sparse form.
pub(crate) fn internal(name: &str, value: &Value) -> String {
    let registry = Registry::kubernetes();
    let schemas = registry.schemas();
    let mut out = String::new();
    match schemas.find(if name == VOLUME_SOURCE { VOLUME } else { name }) {
        Some(found) => structure_of(schemas, found, name, value, &Value::Null, &mut out),
        None => out.push_str(&value.to_string()),
    }
    out
}

/// A label selector as messages show it.
pub(super) fn selector(selector: Option<&Value>) -> String {
    selector.map_or_else(
        || "null".to_owned(),
        |selector| internal("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", selector),
    )
}

/// What changes of a struct, line by line.
pub(super) fn changes(name: &str, old: &Value, new: &Value) -> String {
    difference::unified(&indented(&internal(name, old)), &indented(&internal(name, new)))
}

/// JSON with every member and item on a line of its own.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let mut letters = json.chars().peekable();
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    };
    while let Some(letter) = letters.next() {
        if quoted {
            quoted = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
            out.push(letter);
            continue;
        }
        match letter {
            '{' | '[' => {
                out.push(letter);
                match letters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(close) => out.push(close),
                    None => {
                        depth += 1;
                        line(depth, &mut out);
                    }
                }
            }
            '}' | ']' => {
                depth -= 1;
                line(depth, &mut out);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(depth, &mut out);
            }
            ':' => out.push_str(": "),
            letter => {
                quoted = letter == '"';
                out.push(letter);
            }
        }
    }
    out
}

/// A part of the description of a volume that has a type of its own inside.
pub(super) const VOLUME_SOURCE: &str = "io.k8s.api.core.v1.PersistentVolumeSource";
const VOLUME: &str = "io.k8s.api.core.v1.PersistentVolumeSpec";

/// The fields of types that have another order inside than outside.
const ORDERS: &[(&str, &[&str])] = &[
    (
        "io.k8s.api.core.v1.PodSpec",
        &[
            "volumes",
            "initContainers",
            "containers",
            "ephemeralContainers",
            "restartPolicy",
            "terminationGracePeriodSeconds",
            "activeDeadlineSeconds",
            "dnsPolicy",
            "nodeSelector",
            "serviceAccountName",
            "automountServiceAccountToken",
            "nodeName",
            "securityContext",
            "imagePullSecrets",
            "hostname",
            "subdomain",
            "setHostnameAsFQDN",
            "affinity",
            "schedulerName",
            "tolerations",
            "hostAliases",
            "priorityClassName",
            "priority",
            "preemptionPolicy",
            "dnsConfig",
            "readinessGates",
            "runtimeClassName",
            "overhead",
            "enableServiceLinks",
            "topologySpreadConstraints",
            "os",
            "schedulingGates",
            "resourceClaims",
            "resources",
            "hostnameOverride",
        ],
    ),
    (
        "io.k8s.api.core.v1.PodSecurityContext",
        &[
            "seLinuxOptions",
            "windowsOptions",
            "runAsUser",
            "runAsGroup",
            "runAsNonRoot",
            "supplementalGroups",
            "supplementalGroupsPolicy",
            "fsGroup",
            "fsGroupChangePolicy",
            "sysctls",
            "seccompProfile",
            "appArmorProfile",
            "seLinuxChangePolicy",
        ],
    ),
    (
        "io.k8s.api.core.v1.Volume",
        &[
            "name",
            "hostPath",
            "emptyDir",
            "gcePersistentDisk",
            "awsElasticBlockStore",
            "gitRepo",
            "secret",
            "nfs",
            "iscsi",
            "glusterfs",
            "persistentVolumeClaim",
            "rbd",
            "quobyte",
            "flexVolume",
            "cinder",
            "cephfs",
            "flocker",
            "downwardAPI",
            "fc",
            "azureFile",
            "configMap",
            "vsphereVolume",
            "azureDisk",
            "photonPersistentDisk",
            "projected",
            "portworxVolume",
            "scaleIO",
            "storageos",
            "csi",
            "ephemeral",
            "image",
        ],
    ),
    (
        VOLUME_SOURCE,
        &[
            "gcePersistentDisk",
            "awsElasticBlockStore",
            "hostPath",
            "glusterfs",
            "nfs",
            "rbd",
            "quobyte",
            "iscsi",
            "flexVolume",
            "cinder",
            "cephfs",
            "fc",
            "flocker",
            "azureFile",
            "vsphereVolume",
            "azureDisk",
            "photonPersistentDisk",
            "portworxVolume",
            "scaleIO",
            "local",
            "storageos",
            "csi",
        ],
    ),
];

/// What a pod says of its host stands in its security context inside.
const OF_THE_HOST: [(&str, &str); 5] = [
    ("hostNetwork", "false"),
    ("hostPID", "false"),
    ("hostIPC", "false"),
    ("shareProcessNamespace", "null"),
    ("hostUsers", "null"),
];

/// The fields of a type in the order in which they stand inside.
fn ordered<'a>(described: &'a Struct, name: &str) -> Vec<&'a Field> {
    let of = |wanted: &str| ORDERS.iter().find(|(name, _)| *name == wanted).map(|(_, fields)| *fields);
    let named = |names: &[&str]| -> Vec<&Field> { names.iter().filter_map(|name| described.field(name)).collect() };
    match (of(name), of(VOLUME_SOURCE)) {
        (Some(names), _) => named(names),
        // The source stands right behind the capacity.
        (None, Some(sources)) if name == VOLUME => {
            let mut fields: Vec<&Field> =
                described.fields.iter().filter(|field| !sources.contains(&field.name.as_ref())).collect();
            let at = fields.len().min(1);
            fields.splice(at..at, named(sources));
            fields
        }
        _ => described.fields.iter().collect(),
    }
}

fn structure(schemas: &Schemas, reference: StructRef, value: &Value, out: &mut String) {
    structure_of(schemas, reference, &schemas.get(reference).name, value, &Value::Null, out);
}

/// A struct by the name it has inside; `holder` is what the struct around it holds.
fn structure_of(schemas: &Schemas, reference: StructRef, name: &str, value: &Value, holder: &Value, out: &mut String) {
    let described = schemas.get(reference);
    // Types that all of Kubernetes shares are the same inside and outside.
    let shared = described.name.starts_with("io.k8s.apimachinery.");
    // Types whose optional fields are always there inside.
    let filled =
        described.name.ends_with(".RollingUpdateDaemonSet") || described.name.ends_with(".RollingUpdateDeployment");
    out.push('{');
    let start = out.len();
    if described.name.as_ref() == "io.k8s.api.core.v1.PodSecurityContext" {
        for (name, nothing) in OF_THE_HOST {
            let shown = holder.get(name).map_or_else(|| nothing.to_owned(), Value::to_string);
            let comma = if out.len() > start { "," } else { "" };
            out.push_str(&format!("{comma}\"{}\":{shown}", capitalized(name)));
        }
    }
    for field in ordered(described, name) {
        let member = value.get(field.name.as_ref());
        if shared && member.is_none() && field.omit != Omit::Never {
            continue;
        }
        if out.len() > start {
            out.push(',');
        }
        if let (Shape::Struct(inner), "metadata") = (&field.ty.shape, field.name.as_ref()) {
            // Metadata stands inside among the fields of what has it.
            let before = out.len();
            structure(schemas, *inner, member.unwrap_or(&Value::Null), out);
            let inner = out.split_off(before);
            let inner = inner.get(1..inner.len() - 1).unwrap_or_default();
            match inner {
                "" if out.ends_with(',') => drop(out.pop()),
                inner => out.push_str(inner),
            }
            continue;
        }
        let name = if shared { field.name.to_string() } else { go_name(field) };
        out.push_str(&format!("\"{name}\":"));
        match member {
            Some(member) => match &field.ty.shape {
                Shape::Struct(inner) => structure_of(schemas, *inner, &schemas.get(*inner).name, member, value, out),
                _ => typed(schemas, &field.ty, member, out),
            },
            None => nothing(schemas, field, filled, out),
        }
    }
    out.push('}');
}

fn typed(schemas: &Schemas, ty: &Type, value: &Value, out: &mut String) {
    match (&ty.shape, value) {
        (Shape::Struct(reference), value) => structure(schemas, *reference, value, out),
        (Shape::List(item), Value::Array(items)) => {
            joined(items, '[', ']', out, |value, out| typed(schemas, item, value, out));
        }
        (Shape::Map(item), Value::Object(members)) => joined(members, '{', '}', out, |(key, value), out| {
            out.push_str(&format!("{}:", Value::from(key.as_str())));
            typed(schemas, item, value, out);
        }),
        (_, value) => out.push_str(&crate::field::json(value)),
    }
}

fn joined<T>(
    items: impl IntoIterator<Item = T>,
    open: char,
    close: char,
    out: &mut String,
    each: impl Fn(T, &mut String),
) {
    out.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        each(item, out);
    }
    out.push(close);
}

/// What a field holds that was not set.
fn nothing(schemas: &Schemas, field: &Field, filled: bool, out: &mut String) {
    match &field.ty.shape {
        _ if field.pointer && !filled => out.push_str("null"),
        Shape::Struct(reference) => structure(schemas, *reference, &Value::Null, out),
        Shape::Bool => out.push_str("false"),
        Shape::Int32 | Shape::Int64 | Shape::Float64 | Shape::IntOrString => out.push('0'),
        Shape::String => out.push_str("\"\""),
        Shape::Quantity => out.push_str("\"0\""),
        _ => out.push_str("null"),
    }
}

/// The name that a field has in Go.
fn go_name(field: &Field) -> String {
    field.protobuf.last().map_or_else(|| capitalized(&field.name), |(name, _)| name.to_string())
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_told_line_by_line() {
        let (old, new) = (json!({ "csi": { "driver": "a" } }), json!({ "csi": { "driver": "b" } }));
        let shown = changes(VOLUME_SOURCE, &old, &new);
        assert!(shown.starts_with("@@ -21,7 +21,7 @@\n  \"Local\": null,\n"), "{shown}");
        assert!(shown.contains("-  \"Driver\": \"a\",\n+  \"Driver\": \"b\",\n"), "{shown}");
    }

    #[test]
    fn metadata_stands_among_the_other_fields() {
        let shown = internal("io.k8s.api.core.v1.PodTemplateSpec", &json!({ "metadata": { "labels": { "a": "b" } } }));
        assert!(shown.starts_with(r#"{"labels":{"a":"b"},"Spec":{"Volumes":null,"#), "{shown}");
    }

    #[test]
    fn fields_have_the_names_and_the_emptiness_of_go() {
        let value = json!({ "matchExpressions": [{ "scopeName": "Terminating", "operator": "Exists" }] });
        assert_eq!(
            internal("io.k8s.api.core.v1.ScopeSelector", &value),
            r#"{"MatchExpressions":[{"ScopeName":"Terminating","Operator":"Exists","Values":null}]}"#
        );
        let shown = internal("io.k8s.api.core.v1.RBDPersistentVolumeSource", &json!({ "monitors": ["m"] }));
        assert!(shown.starts_with(r#"{"CephMonitors":["m"],"RBDImage":"","FSType":"""#), "{shown}");
    }
}
