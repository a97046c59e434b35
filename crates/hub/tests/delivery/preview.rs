//! What would be sent is what is then sent.

use std::collections::BTreeMap;

use orrery_api::preview::{BindingPreviewSpec, PreviewChange, PreviewRow};
use orrery_hub::{
    delivery::Claims,
    preview::{BadQuestion, preview},
};
use serde_json::{Value, json};

use crate::stage::{NO_LIMIT, Stage, id};

fn rows(stage: &Stage, claims: &Claims, mut asked: BindingPreviewSpec) -> Vec<PreviewRow> {
    let mut rows = Vec::new();
    loop {
        let answer = preview(&stage.delivery, claims, &asked).expect("an answer");
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
    let all = || BindingPreviewSpec::default();
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
    let ask = |asked| preview(&stage.delivery, &claims, &asked).expect_err("no answer");
    let nobody = BindingPreviewSpec { policies: vec!["nobody".into()], ..BindingPreviewSpec::default() };
    assert_eq!(ask(nobody), BadQuestion::NoPolicy("nobody".into()));
    let lost = BindingPreviewSpec { continues: "x".into(), ..BindingPreviewSpec::default() };
    assert_eq!(ask(lost), BadQuestion::Continue);
    let odd = BindingPreviewSpec { given: vec![json!({"kind": "Pod"})], ..BindingPreviewSpec::default() };
    assert!(matches!(ask(odd), BadQuestion::NotAPolicy { at: 0, .. }));
}
