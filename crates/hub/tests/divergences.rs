//! Where the published guide and KubeStellar's own code differ, or one of them is wrong: what we do, one test for each.

use std::collections::BTreeMap;

use orrery_gotemplate::Data;
use orrery_hub::transform::Manifest;
use orrery_hub::transform::custom::{CustomTransform, Removals, Verdict};
use orrery_hub::transform::properties::Sources;
use serde_json::{Value, json};

fn transformed(object: Value) -> Value {
    transformed_with(object, &Removals::default())
}

fn transformed_with(object: Value, removals: &Removals) -> Value {
    let json = Manifest::new(object, removals).for_cluster("c1", &Data::new()).expect("nothing to expand");
    json.to_value().expect("the manifest is JSON")
}

fn removals(entries: &[&str]) -> (Removals, Verdict) {
    let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
    let (removals, mut verdicts) = Removals::new(&[CustomTransform { name: "ct", remove: &entries }]);
    (removals, verdicts.remove(0))
}

fn service(annotations: Value, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "annotations": annotations}, "spec": spec})
}

/// An object that asks for expansion of `spec`.
fn expanded(spec: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "n", "annotations": {"control.kubestellar.io/expand-templates": "true"}},
        "spec": spec,
    })
}

#[test]
fn node_ports_are_deleted_and_not_set_to_null() {
    let spec = json!({"ports": [{"port": 80, "nodePort": 30080}, {"port": 81}]});
    let found = transformed(service(json!({}), spec));
    assert_eq!(found["spec"], json!({"ports": [{"port": 80}, {"port": 81}]}));
}

#[test]
fn either_annotation_preserves_node_ports() {
    let spec = json!({"ports": [{"port": 80, "nodePort": 30080}]});
    for name in ["kubestellar.io/annotations/preserve", "control.kubestellar.io/preserve"] {
        let found = transformed(service(json!({name: "nodeport"}), spec.clone()));
        assert_eq!(found["spec"], spec, "{name}");
        let found = transformed(service(json!({name: "other"}), spec.clone()));
        assert_eq!(found["spec"], json!({"ports": [{"port": 80}]}), "{name}");
    }
}

#[test]
fn cluster_ips_hold_none_only_once() {
    let found = transformed(service(json!({}), json!({"clusterIPs": ["None", "10.0.0.1", "None"]})));
    assert_eq!(found["spec"], json!({"clusterIPs": ["None"]}));
}

#[test]
fn a_service_of_another_group_is_left_alone() {
    let service = json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": {"sessionAffinity": "x"}});
    assert_eq!(transformed(service.clone()), service);
}

#[test]
fn a_job_loses_suspend_in_either_spelling() {
    for field in ["suspend", "suspended"] {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {field: true, "completions": 1}});
        assert_eq!(transformed(job)["spec"], json!({"completions": 1}), "{field}");
    }
}

#[test]
fn the_job_in_a_cron_job_is_left_alone() {
    let spec = json!({"jobTemplate": {"spec": {"suspend": true, "selector": {}}}});
    let object = json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": spec});
    assert_eq!(transformed(object)["spec"], spec);
}

#[test]
fn timestamps_are_not_removed() {
    let metadata =
        json!({"name": "a", "creationTimestamp": "2026-11-16T00:00:00Z", "deletionTimestamp": "2026-11-16T00:00:01Z"});
    let found = transformed(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
    assert_eq!(found["metadata"], metadata);
}

#[test]
fn annotations_may_be_left_empty() {
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    let found = transformed(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": annotations}}));
    assert_eq!(found["metadata"], json!({"annotations": {}}));
}

#[test]
fn a_bad_removal_is_reported_and_the_others_still_apply() {
    let (removals, verdict) = removals(&["$.spec.list[*].x", "$.spec.a", "$", "spec.b"]);
    let object = json!({"spec": {"a": 1, "b": 2}});
    assert_eq!(transformed_with(object, &removals), json!({"spec": {"b": 2}}));
    let errors = [
        "Error in spec.remove[0]: syntax error at 12: expected open quote, got '*'",
        "Invalid spec.remove[2]: it identifies the whole object",
        "Error in spec.remove[3]: syntax error at 0: missing root identifier (dollar sign)",
    ];
    assert_eq!(verdict.errors, errors);
    assert!(verdict.warnings.is_empty());
}

#[test]
fn the_escapes_of_javascript_are_refused() {
    let (_, verdict) = removals(&[r#"$["\x41"]"#, r#"$["\u0041"]"#]);
    let error = "Error in spec.remove[0]: syntax error at 3: unknown escape, a backslash before 'x'";
    assert_eq!(verdict.errors, [error]);
}

#[test]
fn several_custom_transforms_for_one_kind_all_apply_with_a_warning_on_each() {
    let (b, a) = (["$.spec.b".to_owned()], ["$.spec.a".to_owned()]);
    let transforms = [CustomTransform { name: "b", remove: &b }, CustomTransform { name: "a", remove: &a }];
    let (removals, verdicts) = Removals::new(&transforms);
    assert_eq!(transformed_with(json!({"spec": {"a": 1, "b": 2, "c": 3}}), &removals), json!({"spec": {"c": 3}}));
    let warning = "multiple CustomTransform objects specify the same GroupResource; their names are a, b";
    let verdict = Verdict { errors: vec![], warnings: vec![warning.to_owned()] };
    assert_eq!(verdicts, [verdict.clone(), verdict]);
}

#[test]
fn only_the_annotation_of_the_transformed_object_counts() {
    let object = expanded(json!({"x": "{{.nope}}"}));
    assert!(Manifest::new(object.clone(), &Removals::default()).is_customised());
    let (removals, _) = removals(&[r#"$.metadata.annotations["control.kubestellar.io/expand-templates"]"#]);
    assert_eq!(transformed_with(object, &removals)["spec"], json!({"x": "{{.nope}}"}));
}

#[test]
fn the_annotation_must_be_exactly_true() {
    for value in ["True", "yes", "1", ""] {
        let mut object = expanded(json!({"x": "{{.nope}}"}));
        object["metadata"]["annotations"]["control.kubestellar.io/expand-templates"] = json!(value);
        assert!(!Manifest::new(object, &Removals::default()).is_customised(), "{value}");
    }
}

#[test]
fn an_object_without_actions_is_shared_by_all_clusters() {
    let manifest = Manifest::new(expanded(json!({"x": "{ }"})), &Removals::default());
    let data = Data::new();
    let all = manifest.for_clusters([("a", &data), ("b", &data)]).unwrap();
    assert!(std::ptr::eq(all[0].as_json(), all[1].as_json()));
}

#[test]
fn the_errors_are_those_of_the_first_cluster_that_fails_in_a_stable_order() {
    let manifest = Manifest::new(expanded(json!({"b": "{{.x}}", "a": ["{{.y}}"]})), &Removals::default());
    let (sound, bare) = (Data::from_iter([("x", "1"), ("y", "2")]), Data::new());
    for _ in 0..20 {
        let errors = manifest.for_clusters([("c1", &sound), ("c2", &bare), ("c3", &bare)]).unwrap_err();
        let expected = [
            r#"template: c2/Thing.example.com(n).spec.a[0]:1:2: executing "c2/Thing.example.com(n).spec.a[0]" at <.y>: map has no entry for key "y""#,
            r#"template: c2/Thing.example.com(n).spec.b:1:2: executing "c2/Thing.example.com(n).spec.b" at <.x>: map has no entry for key "x""#,
        ];
        assert_eq!(errors, expected);
    }
}

#[test]
fn the_result_of_a_template_is_always_a_string() {
    let manifest = Manifest::new(expanded(json!({"replicas": "{{.n}}"})), &Removals::default());
    let json = manifest.for_cluster("c1", &Data::from_iter([("n", "3")])).unwrap();
    assert_eq!(json.to_value().unwrap()["spec"], json!({"replicas": "3"}));
}

#[test]
fn bytes_that_are_not_utf8_become_replacement_characters() {
    let manifest = Manifest::new(expanded(json!({"x": "<{{.raw}}>"})), &Removals::default());
    let json = manifest.for_cluster("c1", &Data::from_iter([("raw", vec![0xe2, 0x98])])).unwrap();
    assert_eq!(json.to_value().unwrap()["spec"], json!({"x": "<\u{FFFD}\u{FFFD}>"}));
}

#[test]
fn templates_of_one_object_share_their_limits() {
    let endless = json!(vec!["{{range 1000000000}}{{end}}"; 1000]);
    let errors = Manifest::new(expanded(endless), &Removals::default()).for_cluster("c1", &Data::new()).unwrap_err();
    assert_eq!(errors.len(), 1000);
    assert!(errors.iter().all(|error| error.ends_with("the limit of 200000 steps is exceeded")), "{}", errors[0]);
}

#[test]
fn keywords_are_no_properties_but_predeclared_words_are() {
    let labels: BTreeMap<String, String> =
        ["type", "map", "default", "true", "nil", "a.b"].map(|name| (name.to_owned(), "x".to_owned())).into();
    let data = Sources { cluster: "c1", labels: Some(&labels), ..Sources::default() }.properties();
    assert_eq!(data.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["clusterName", "nil", "true"]);
}

#[test]
fn the_name_of_the_cluster_can_be_overridden() {
    let labels = BTreeMap::from([("clusterName".to_owned(), "label".to_owned())]);
    let data = BTreeMap::from([("clusterName".to_owned(), "data".to_owned())]);
    let bytes = BTreeMap::from([("clusterName".to_owned(), b"\xff".to_vec())]);
    let mut sources = Sources { cluster: "c1", ..Sources::default() };
    let name = |sources: &Sources<'_>| sources.properties().get("clusterName").map(<[u8]>::to_vec);
    assert_eq!(name(&sources), Some(b"c1".to_vec()));
    sources.labels = Some(&labels);
    assert_eq!(name(&sources), Some(b"label".to_vec()));
    sources.data = Some(&data);
    assert_eq!(name(&sources), Some(b"data".to_vec()));
    sources.binary_data = Some(&bytes);
    assert_eq!(name(&sources), Some(b"\xff".to_vec()));
}
