//! What would be sent is what is then sent.

use std::collections::BTreeMap;

use orrery_api::preview::{BindingPreviewSpec, BindingPreviewStatus, PreviewChange, PreviewRow};
use orrery_hub::{
    delivery::Claims,
    placement::GroupResource,
    preview::{BadQuestion, Prepared, Sendable, Surroundings},
};
use serde_json::{Value, json};

use crate::stage::{NO_LIMIT, Stage, id, labels};

/// A management space in which config maps, services, namespaces and things of `ex.io` can be sent.
struct Around;

impl Surroundings for Around {
    fn kind(&self, group: &str, kind: &str) -> Option<Sendable> {
        let (resource, namespaced) = match (group, kind) {
            ("", "ConfigMap") => ("configmaps", true),
            ("", "Service") => ("services", true),
            ("", "Namespace") => ("namespaces", false),
            ("ex.io", "Thing") => ("things", true),
            _ => return None,
        };
        let resource = GroupResource { group: group.into(), resource: resource.into() };
        Some(Sendable { resource, version: "v1".into(), namespaced })
    }

    fn is_inventory(&self) -> bool {
        true
    }
}

fn ask(stage: &Stage, claims: &Claims, asked: &BindingPreviewSpec) -> Result<BindingPreviewStatus, BadQuestion> {
    Prepared::new(&stage.delivery, &Around, "run", asked)?.page(&stage.delivery, claims, asked)
}

fn rows(stage: &Stage, claims: &Claims, mut asked: BindingPreviewSpec) -> Vec<PreviewRow> {
    let mut rows = Vec::new();
    loop {
        let answer = ask(stage, claims, &asked).expect("an answer");
        assert!(asked.limit.is_none_or(|limit| answer.rows.len() <= limit));
        rows.extend(answer.rows);
        if answer.continues.is_empty() {
            return rows;
        }
        asked.continues = answer.continues;
    }
}

fn shown(rows: &[PreviewRow]) -> Vec<String> {
    let text = |value: &Option<Value>| {
        value.as_ref().map_or("-".to_owned(), |value| value["spec"]["text"].as_str().unwrap_or("?").to_owned())
    };
    rows.iter()
        .map(|row| {
            let (manifest, sent) = (text(&row.manifest), text(&row.sent));
            format!("{} {} {:?} {manifest} {sent}", row.object.name, row.cluster, row.change)
        })
        .collect()
}

fn given(spec: &str) -> BindingPreviewSpec {
    let spec: Value = serde_json::from_str(spec).expect("a spec");
    let policy = json!({"apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": "all"}, "spec": spec});
    BindingPreviewSpec { given: vec![policy], ..BindingPreviewSpec::default() }
}

#[test]
fn a_thousand_objects_for_a_hundred_clusters_are_sent_as_previewed() {
    let mut stage = Stage::new(NO_LIMIT);
    for number in 0..100 {
        stage.cluster(&format!("c{number}"), &format!("region=r{number}"));
    }
    stage.policy("all", 1, r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#);
    for number in 0..1000 {
        let name = format!("configmaps/prod/o{number}");
        if number % 10 == 0 {
            stage.template(&name, "{{.region}} {{.clusterName}}")
        } else {
            stage.literal(&name, &name)
        }
    }
    let claims = Claims::default();
    let asked = BindingPreviewSpec { limit: Some(4999), ..BindingPreviewSpec::default() };
    let previewed = rows(&stage, &claims, asked);
    assert_eq!(previewed.len(), 100_000);
    assert!(previewed.iter().all(|row| row.change == PreviewChange::Added));
    let mut expected: BTreeMap<(String, String), Value> =
        previewed.into_iter().map(|row| ((row.cluster, row.object.name), row.manifest.expect("a manifest"))).collect();
    stage.settle();
    for (cluster, bundle) in stage.works.values() {
        for manifest in &bundle.manifests {
            let value = manifest.to_value().expect("JSON");
            let name = value["metadata"]["name"].as_str().expect("a name").to_owned();
            assert_eq!(expected.remove(&(cluster.to_string(), name)), Some(value));
        }
    }
    assert!(expected.is_empty(), "{} rows were not sent", expected.len());
}

#[test]
fn each_change_is_shown() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/a", "a");
    stage.literal("configmaps/prod/b", "b");
    let claims = Claims::default();
    stage.settle();
    assert_eq!(
        shown(&rows(&stage, &claims, all())),
        ["a east Unchanged a -", "a west Unchanged a -", "b east Unchanged b -", "b west Unchanged b -"]
    );
    stage.literal("configmaps/prod/a", "new");
    stage.delivery.remove_object(&id("configmaps/prod/b"));
    stage.template("configmaps/prod/c", "{{.only}}");
    stage.properties("west", "only=w");
    let expected = [
        "a east Changed new a",
        "a west Changed new a",
        "b east Removed - b",
        "b west Removed - b",
        "c east Failed - -",
        "c west Added w -",
    ];
    for limit in 1..7 {
        let asked = BindingPreviewSpec { limit: Some(limit), ..all() };
        assert_eq!(shown(&rows(&stage, &claims, asked)), expected, "{limit}");
    }
    let failed = rows(&stage, &claims, BindingPreviewSpec { clusters: vec!["east".into()], ..all() });
    assert_eq!(shown(&failed), [expected[0], expected[2], expected[4]]);
    assert!(failed[2].errors[0].contains(r#"map has no entry for key "only""#), "{:?}", failed[2].errors);
}

#[test]
fn a_policy_as_it_might_be() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/a", "a");
    stage.literal("services/prod/s", "s");
    stage.settle();
    let claims = Claims::default();
    let east =
        given(r#"{"clusterSelectors":[{"matchLabels":{"region":"east"}}],"downsync":[{"resources":["configmaps"]}]}"#);
    let expected = ["a east Unchanged a -", "a west Removed - a", "s east Removed - s", "s west Removed - s"];
    assert_eq!(shown(&rows(&stage, &claims, east)), expected);
    assert!(!stage.delivery.is_dirty(), "asking changes nothing");
}

#[test]
fn questions_without_an_answer() {
    let stage = Stage::usual(NO_LIMIT);
    let claims = Claims::default();
    let ask = |asked| ask(&stage, &claims, &asked).expect_err("no answer");
    let nobody = BindingPreviewSpec { policies: vec!["nobody".into()], ..BindingPreviewSpec::default() };
    assert_eq!(ask(nobody), BadQuestion::NoPolicy("nobody".into()));
    let lost = BindingPreviewSpec { continues: "x".into(), ..BindingPreviewSpec::default() };
    assert_eq!(ask(lost), BadQuestion::Continue("it is not base64".into()));
    let lost = BindingPreviewSpec { continues: "eHg".into(), ..BindingPreviewSpec::default() };
    assert_eq!(ask(lost), BadQuestion::Continue("it does not come from an answer".into()));
    let odd =
        |object: Value| ask(BindingPreviewSpec { given: vec![object], ..BindingPreviewSpec::default() }).to_string();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    assert_eq!(odd(pod), "spec.given[0]: objects of kind Pod are never sent to clusters");
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    assert_eq!(odd(nameless), "spec.given[0]: it has no metadata.name");
    let other = json!({"apiVersion": "ex.io/v2", "kind": "Thing", "metadata": {"name": "a", "namespace": "n"}});
    assert_eq!(odd(other), "spec.given[0]: it must be given in version v1, in which it is sent");
    let policy = json!({
        "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": "p"}, "spec": {"downsync": 1},
    });
    assert!(odd(policy).starts_with("spec.given[0]: invalid type: integer `1`"));
}

fn with(objects: &[Value]) -> BindingPreviewSpec {
    BindingPreviewSpec { given: objects.to_vec(), ..BindingPreviewSpec::default() }
}

fn config_map(name: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "prod", "annotations": {"control.kubestellar.io/expand-templates": "true"}},
        "spec": {"text": text, "other": "x"},
    })
}

#[test]
fn everything_that_matters_can_be_supposed() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.policy(
        "all",
        1,
        r#"{"clusterSelectors":[{"matchLabels":{"on":"yes"}}],"downsync":[{"namespaceSelectors":[{"matchLabels":{"stage":"prod"}}]}]}"#,
    );
    stage.cluster("east", "on=yes,region=e");
    stage.cluster("west", "on=no,region=w");
    stage.template("configmaps/prod/a", "{{.region}}");
    stage.template("configmaps/test/t", "test");
    stage.settle();
    let claims = Claims::default();
    let before = stage.delivery.changes();
    let check = |given: Value, expected: &[&str]| {
        assert_eq!(shown(&rows(&stage, &claims, with(std::slice::from_ref(&given)))), expected, "{given}");
    };
    check(config_map("a", "{{.region}}!"), &["a east Changed e! e"]);
    check(config_map("b", "new"), &["a east Unchanged e -", "b east Added new -"]);
    check(config_map("b", "{{.nope}}"), &["a east Unchanged e -", "b east Failed - -"]);
    let cluster = |name: &str, on: &str| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": {"on": on, "region": "n"}},
        })
    };
    check(cluster("north", "yes"), &["a east Unchanged e -", "a north Added n -"]);
    check(cluster("west", "yes"), &["a east Unchanged e -", "a west Added n -"]);
    check(cluster("east", "no"), &["a east Removed - e"]);
    let properties = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"region": "far"},
        "metadata": {"name": "east", "namespace": "customization-properties"},
    });
    check(properties, &["a east Changed far e"]);
    let namespace = |name: &str, stage: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"stage": stage}}});
    check(namespace("prod", "over"), &["a east Removed - e"]);
    check(namespace("test", "prod"), &["a east Unchanged e -", "t east Added test -"]);
    let transform = json!({
        "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "CustomTransform", "metadata": {"name": "x"},
        "spec": {"apiGroup": "", "resource": "configmaps", "remove": ["$.spec.text"]},
    });
    check(transform, &["a east Changed ? e"]);
    // A namespace and what is in it, neither of which is there.
    let mut inside = config_map("n", "new");
    inside["metadata"]["namespace"] = "new".into();
    let both = with(&[namespace("new", "prod"), inside]);
    assert_eq!(shown(&rows(&stage, &claims, both)), ["n east Added new -", "a east Unchanged e -"]);
    assert_eq!((stage.delivery.changes(), stage.delivery.is_dirty()), (before, false), "asking changes nothing");
}

#[test]
fn given_policies_are_asked_about_by_name() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/a", "a");
    stage.settle();
    let claims = Claims::default();
    let policy = |name: &str| {
        json!({
            "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": name},
            "spec": {"clusterSelectors": [{}], "downsync": [{"resources": ["*"]}]},
        })
    };
    let asked = |policies: &[&str], given: &[Value]| {
        let policies = policies.iter().map(|&name| name.to_owned()).collect();
        let found = rows(&stage, &claims, BindingPreviewSpec { policies, ..with(given) });
        let mut found: Vec<String> = found.into_iter().map(|row| row.policy).collect();
        found.dedup();
        found
    };
    assert_eq!(asked(&[], &[]), ["all"]);
    assert_eq!(asked(&[], &[policy("new"), policy("other")]), ["new", "other"]);
    assert_eq!(asked(&["new"], &[policy("new"), policy("other")]), ["new"]);
    assert_eq!(asked(&["all"], &[policy("new")]), ["all"]);
    assert_eq!(asked(&["new", "all"], &[policy("new")]), ["all", "new"]);
    assert_eq!(asked(&[], &[config_map("b", "b")]), ["all"]);
}

#[test]
fn conflicts_are_foreseen() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/a", "a");
    let mut claims = Claims::default();
    stage.settle_among(&mut claims);
    let sent = |spec: &str, claims: &Claims, stage: &Stage| {
        let mut asked = given(spec);
        asked.given[0]["metadata"]["name"] = "young".into();
        let found = rows(stage, claims, asked);
        let errors: Vec<String> = found.iter().flat_map(|row| row.errors.clone()).collect();
        (shown(&found), errors)
    };
    let same = r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#;
    let once = r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"],"createOnly":true}]}"#;
    assert_eq!(sent(same, &claims, &stage).0, ["a east Added a -", "a west Added a -"]);
    let (shown_rows, errors) = sent(once, &claims, &stage);
    assert_eq!(shown_rows, ["a east Failed - -", "a west Failed - -"]);
    let message = "conflict over configmaps prod/a in cluster east: other content is sent by Binding all, which is older and keeps it";
    assert_eq!(errors[0], message);
    // Then it is made, and that is what happens.
    stage.policy("young", 2, once);
    stage.settle_among(&mut claims);
    let stored = BindingPreviewSpec { policies: vec!["young".into()], ..BindingPreviewSpec::default() };
    let found = rows(&stage, &claims, stored);
    assert_eq!((shown(&found), &found[0].errors[0]), (shown_rows, &message.to_owned()));
    assert!(stage.errors["young"][0].contains("which is older and keeps it"));

    // Another space sends something else under the same name.
    let mut other = Stage::in_space("other", NO_LIMIT);
    other.cluster("east", "region=east");
    other.delivery.set_namespace("prod", labels(""));
    other.literal("configmaps/prod/a", "different");
    let (shown_rows, errors) = sent(same, &claims, &other);
    assert_eq!(shown_rows, ["a east Failed - -"]);
    assert!(errors[0].contains("by Binding all of space wds, which is older"), "{errors:?}");
}

#[test]
fn pages_are_of_one_state_or_it_is_said_that_it_moved_on() {
    let mut stage = Stage::usual(NO_LIMIT);
    for name in ["a", "b", "c"] {
        stage.literal(&format!("configmaps/prod/{name}"), name);
    }
    stage.settle();
    let claims = Claims::default();
    let first = BindingPreviewSpec { limit: Some(2), ..BindingPreviewSpec::default() };
    let answer = ask(&stage, &claims, &first).expect("an answer");
    let next = BindingPreviewSpec { continues: answer.continues, ..first.clone() };
    // The same again is no change.
    stage.literal("configmaps/prod/b", "b");
    assert_eq!(shown(&ask(&stage, &claims, &next).expect("an answer").rows)[0], "b east Unchanged b -");
    stage.literal("configmaps/prod/b", "new");
    let Err(BadQuestion::MovedOn { continues }) = ask(&stage, &claims, &next) else { panic!("it moved on") };
    let next = BindingPreviewSpec { continues, ..first.clone() };
    let answer = ask(&stage, &claims, &next).expect("it goes on with what there is");
    assert_eq!(shown(&answer.rows), ["b east Changed new b", "b west Changed new b"]);
    stage.settle();
    let next = BindingPreviewSpec { continues: answer.continues.clone(), ..first };
    assert!(matches!(ask(&stage, &claims, &next), Err(BadQuestion::MovedOn { .. })), "what was sent is other now");
    let other = BindingPreviewSpec { clusters: vec!["east".into()], continues: answer.continues, ..all() };
    let problem = "it comes from the answer to another question".to_owned();
    assert_eq!(ask(&stage, &claims, &other), Err(BadQuestion::Continue(problem)));
}

#[test]
fn a_page_is_bounded_in_bytes() {
    let mut stage = Stage::usual(NO_LIMIT);
    let large = "x".repeat(500_000);
    for number in 0..20 {
        stage.literal(&format!("configmaps/prod/{number:02}"), &large);
    }
    let claims = Claims::default();
    let answer = ask(&stage, &claims, &all()).expect("an answer");
    assert_eq!(answer.rows.len(), 9);
    assert_eq!(rows(&stage, &claims, all()).len(), 40);
}

#[test]
fn a_binding_that_is_held_back_says_so() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.template("configmaps/prod/a", "{{.nope}}");
    stage.settle();
    let answer = ask(&stage, &Claims::default(), &all()).expect("an answer");
    assert!(answer.errors[0].starts_with("Binding all sends no change until"), "{:?}", answer.errors);
}

fn all() -> BindingPreviewSpec {
    BindingPreviewSpec::default()
}
