//! The definitions say what the types say: every field that a type writes is in the schema, and the schema's samples are read.

use orrery_api::{
    cluster::{ClientConfig, ClusterClaim, ManagedClusterSpec, ManagedClusterStatus, Taint},
    control::{
        BindingPolicySpec, BindingSpec, BindingStatus, BoundObject, CustomTransformSpec, CustomTransformStatus,
        Destination, DownsyncClause, Modulation, ObjectReference, Workload,
        collect::{
            Cell, ErrorInColumn, NamedAggregator, NamedExpression, NamedStatusCombination, RowEvaluationError,
            StatusCollectorSpec, StatusCollectorStatus, StatusCombinationRow,
        },
    },
    definitions::{ANSWERED, Definition, STORED},
    labels::{LabelSelector, Requirement},
    ledger::{KeptWork, LedgerBox, WorkLedgerSpec},
    preview::{BindingPreviewSpec, BindingPreviewStatus, PreviewChange, PreviewRow},
    work::{Condition, ManifestWork},
};
use serde_json::{Value, json};

fn definition(name: &str) -> Value {
    let found = STORED.iter().chain(ANSWERED).find(|definition| definition.name == name);
    parsed(found.unwrap_or_else(|| panic!("no definition {name}")))
}

fn parsed(definition: &Definition) -> Value {
    serde_saphyr::from_str(definition.yaml).unwrap_or_else(|error| panic!("{}: {error}", definition.name))
}

/// Fails for a value that the schema does not allow or would prune.
fn fits(value: &Value, schema: &Value, path: &str) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-int-or-string"] == true {
        return;
    }
    match value {
        Value::Object(fields) => {
            assert_eq!(schema["type"], "object", "{path}");
            for (name, value) in fields {
                let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                fits(
                    value,
                    known.unwrap_or_else(|| panic!("{path}.{name} is not in the schema")),
                    &format!("{path}.{name}"),
                );
            }
            for required in schema["required"].as_array().into_iter().flatten() {
                let name = required.as_str().expect("a name");
                assert!(fields.contains_key(name), "{path}.{name} is required");
            }
        }
        Value::Array(items) => {
            assert_eq!(schema["type"], "array", "{path}");
            items.iter().for_each(|item| fits(item, &schema["items"], &format!("{path}[]")));
        }
        Value::String(text) => {
            assert_eq!(schema["type"], "string", "{path}");
            if let Some(values) = schema["enum"].as_array() {
                assert!(values.iter().any(|value| value == text), "{path}: {text}");
            }
        }
        Value::Bool(_) => assert_eq!(schema["type"], "boolean", "{path}"),
        Value::Number(_) => assert_eq!(schema["type"], "integer", "{path}"),
        Value::Null => {}
    }
}

fn check(name: &str, fields: Value) {
    let definition = definition(name);
    fits(&fields, &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], name);
}

fn selector() -> LabelSelector {
    LabelSelector {
        match_labels: [("a".to_owned(), "b".to_owned())].into(),
        match_expressions: vec![Requirement { key: "k".into(), operator: "In".into(), values: vec!["v".into()] }],
    }
}

fn modulation() -> Modulation {
    Modulation {
        create_only: true,
        status_collectors: vec!["c".into()],
        want_singleton_reported_state: true,
        want_multi_wec_reported_state: true,
    }
}

fn condition() -> Condition {
    Condition {
        r#type: "T".into(),
        status: "True".into(),
        observed_generation: 0,
        last_transition_time: Some("2026-01-01T00:00:00Z".into()),
        reason: "R".into(),
        message: "m".into(),
    }
}

#[test]
fn what_types_write_is_in_the_schema() {
    let policy = BindingPolicySpec {
        cluster_selectors: vec![selector()],
        downsync: vec![DownsyncClause {
            api_group: Some("apps".into()),
            resources: vec!["*".into()],
            namespaces: vec!["n".into()],
            namespace_selectors: vec![selector()],
            object_selectors: vec![selector()],
            object_names: vec!["o".into()],
            modulation: modulation(),
        }],
    };
    let status = BindingStatus { conditions: vec![condition()], observed_generation: 1, errors: vec!["e".into()] };
    check("bindingpolicies.control.kubestellar.io", json!({"spec": policy, "status": status}));

    let object = |namespace: &str| BoundObject {
        object: ObjectReference {
            group: "apps".into(),
            version: "v1".into(),
            resource: "deployments".into(),
            namespace: namespace.into(),
            name: "web".into(),
        },
        modulation: modulation(),
    };
    let workload = Workload { cluster_scope: vec![object("")], namespace_scope: vec![object("n")] };
    let binding = BindingSpec { workload, destinations: vec![Destination { cluster_id: "c".into() }] };
    check("bindings.control.kubestellar.io", json!({"spec": binding, "status": status}));

    let transform =
        CustomTransformSpec { api_group: "".into(), resource: "services".into(), remove: vec!["$.a".into()] };
    let status = CustomTransformStatus { observed_generation: 1, errors: vec!["e".into()], warnings: vec!["w".into()] };
    check("customtransforms.control.kubestellar.io", json!({"spec": transform, "status": status}));
}

#[test]
fn what_status_types_write_is_in_the_schema() {
    let expression = NamedExpression { name: "n".into(), def: "obj".into() };
    let collector = StatusCollectorSpec {
        filter: Some("true".into()),
        group_by: vec![expression.clone()],
        combined_fields: vec![NamedAggregator { name: "s".into(), r#type: "SUM".into(), subject: Some("1".into()) }],
        select: vec![expression],
        limit: 20,
    };
    let status = StatusCollectorStatus { observed_generation: 1, errors: vec!["e".into()] };
    check("statuscollectors.control.kubestellar.io", json!({"spec": collector, "status": status}));

    let cells = vec![
        Cell::string("a"),
        Cell::number("1"),
        Cell::bool(true),
        Cell::null(),
        Cell::object(json!({})),
        Cell::array(json!([])),
    ];
    let table = NamedStatusCombination {
        name: "c".into(),
        column_names: vec!["n".into()],
        rows: vec![StatusCombinationRow { columns: cells }],
        row_errors: vec![RowEvaluationError::default()],
        aggregation_errors: vec![ErrorInColumn::default()],
    };
    check("combinedstatuses.control.kubestellar.io", json!({"results": [table]}));
}

#[test]
fn what_types_of_clusters_and_works_write_is_in_the_schema() {
    let spec = ManagedClusterSpec {
        hub_accepts_client: true,
        managed_cluster_client_configs: vec![ClientConfig { url: "u".into(), ca_bundle: Some("YQ==".into()) }],
        lease_duration_seconds: Some(60),
        taints: vec![Taint { effect: "NoSelect".into(), time_added: Some("t".into()), ..Taint::default() }],
    };
    let mut status = ManagedClusterStatus { conditions: vec![condition()], ..ManagedClusterStatus::default() };
    status.cluster_claims.push(ClusterClaim::default());
    status.version.kubernetes = "v1.34.0".into();
    status.capacity.insert("cpu".into(), json!("1"));
    check("managedclusters.cluster.open-cluster-management.io", json!({"spec": spec, "status": status}));

    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {},
        "spec": {
            "workload": {"manifests": [{"a": 1}]},
            "deleteOption": {"propagationPolicy": "Orphan", "selectivelyOrphans": {"orphaningRules": [{"group": "g", "resource": "r", "name": "n", "namespace": "s"}]}, "ttlSecondsAfterFinished": 3},
            "manifestConfigs": [{
                "resourceIdentifier": {"group": "g", "resource": "r", "name": "n", "namespace": "s"},
                "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "status", "version": "v1", "path": ".status"}]}],
                "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": true, "fieldManager": "work-agent", "ignoreFields": [{"condition": "OnSpokeChange", "jsonPaths": ["a"], "jsonPointers": ["b"], "jqPathExpressions": ["c"]}]}},
                "conditionRules": [{"condition": "c", "type": "CEL", "celExpressions": ["x"], "message": "m", "messageExpression": "e"}],
                "feedbackScrapeType": "Poll",
            }],
            "executor": {"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "b"}}},
        },
        "status": {"conditions": [], "resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0}, "conditions": [],
            "statusFeedback": {"values": [{"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": "{}"}}]},
        }]}},
    });
    check("manifestworks.work.open-cluster-management.io", work.clone());
    let read: ManifestWork = serde_json::from_value(work.clone()).expect("a work");
    let mut written = serde_json::to_value(&read).expect("JSON");
    let meta =
        json!({"ordinal": 0, "group": "", "version": "", "kind": "", "resource": "", "name": "", "namespace": ""});
    assert_eq!(written["status"]["resourceStatus"]["manifests"][0]["resourceMeta"], meta);
    written["status"]["resourceStatus"]["manifests"][0]["resourceMeta"] = json!({"ordinal": 0});
    written["status"]["conditions"] = json!([]);
    assert_eq!(written, work);
}

#[test]
fn what_our_own_types_write_is_in_the_schema() {
    let ledger = WorkLedgerSpec {
        binding: "b".into(),
        boxes: vec![LedgerBox { number: 1, objects: vec!["/configmaps/n/a".into()] }],
        kept: vec![KeptWork {
            number: 1,
            clusters: vec!["c".into()],
            content: "YQ==".into(),
            encoding: "deflate".into(),
        }],
        further: vec!["b.0123456789abcdef".into()],
    };
    check("workledgers.core.orrery.io", json!({"spec": ledger}));

    let asked = BindingPreviewSpec {
        policies: vec!["p".into()],
        given: vec![json!({"kind": "BindingPolicy"})],
        clusters: vec!["c".into()],
        limit: Some(10),
        continues: "x".into(),
    };
    let row = PreviewRow {
        policy: "p".into(),
        cluster: "c".into(),
        object: ObjectReference { namespace: "n".into(), ..ObjectReference::default() },
        change: PreviewChange::Changed,
        manifest: Some(json!({})),
        sent: Some(json!({})),
        errors: vec!["e".into()],
        withheld: true,
    };
    let answer = BindingPreviewStatus { rows: vec![row], continues: "y".into(), errors: vec!["e".into()] };
    check("bindingpreviews.control.orrery.io", json!({"spec": asked, "status": answer}));
}

#[test]
fn definitions_are_named_after_what_they_define() {
    for definition in STORED.iter().chain(ANSWERED) {
        let parsed = parsed(definition);
        let spec = &parsed["spec"];
        let name = format!("{}.{}", spec["names"]["plural"].as_str().unwrap(), spec["group"].as_str().unwrap());
        assert_eq!(definition.name, name);
        assert_eq!(parsed["metadata"]["name"], name.as_str());
        assert_eq!(spec["versions"].as_array().map(Vec::len), Some(1), "{name}");
    }
}

#[test]
fn short_names_columns_and_subresources_are_those_of_the_originals() {
    let expected = [
        ("bindingpolicies.control.kubestellar.io", "bp", 4, true),
        ("bindings.control.kubestellar.io", "bdg", 0, true),
        ("combinedstatuses.control.kubestellar.io", "cs", 5, false),
        ("customtransforms.control.kubestellar.io", "ct", 2, true),
        ("managedclusters.cluster.open-cluster-management.io", "mcl", 5, true),
        ("statuscollectors.control.kubestellar.io", "sc", 0, true),
    ];
    for (name, short, columns, status) in expected {
        let definition = definition(name);
        let version = &definition["spec"]["versions"][0];
        assert_eq!(definition["spec"]["names"]["shortNames"][0], short, "{name}");
        assert_eq!(version["additionalPrinterColumns"].as_array().map_or(0, Vec::len), columns, "{name}");
        assert_eq!(version["subresources"].get("status").is_some(), status, "{name}");
    }
}
