//! Each change renders the works that depend on it, and no others.

use std::collections::BTreeMap;

use orrery_api::labels::Labels;
use serde_json::json;

use crate::stage::{NO_LIMIT, ONE_EACH, Stage, id, labels, texts, told};

/// Three objects in two namespaces, one of them with a template, for two clusters, each in a work of its own.
fn stage() -> Stage {
    let mut stage = Stage::usual(ONE_EACH);
    stage.literal("configmaps/prod/a", "a");
    stage.literal("deployments.apps/test/b", "b");
    stage.template("configmaps/test/c", "{{.clusterName}}-{{.region}}");
    let settled = stage.settle();
    assert_eq!((settled.rendered, told(&settled)), (6, (6, 0)));
    let expected = ["east a a", "east b b", "east c east-east", "west a a", "west b b", "west c west-west"];
    assert_eq!(stage.sent(), texts(&expected));
    stage
}

/// Says how many works were rendered, and how many told as wanted and as unwanted.
#[track_caller]
fn check(change: impl FnOnce(&mut Stage), rendered: usize, puts: usize, deletes: usize) -> Stage {
    let mut stage = stage();
    change(&mut stage);
    let settled = stage.settle();
    assert_eq!((settled.rendered, told(&settled)), (rendered, (puts, deletes)));
    assert!(!stage.delivery.is_dirty());
    stage
}

#[test]
fn nothing_changes() {
    check(|_| {}, 0, 0, 0);
    check(|stage| stage.literal("configmaps/prod/a", "a"), 0, 0, 0);
    check(|stage| stage.cluster("east", "region=east"), 0, 0, 0);
}

#[test]
fn an_object_changes() {
    check(|stage| stage.literal("configmaps/prod/a", "new"), 2, 2, 0);
    check(|stage| stage.delivery.remove_object(&id("configmaps/prod/a")), 0, 0, 2);
    check(|stage| stage.literal("configmaps/prod/d", "d"), 2, 2, 0);
}

#[test]
fn what_is_not_sent_of_an_object_changes() {
    let change = |stage: &mut Stage| {
        let json = json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": "a", "namespace": "prod", "annotations": {}, "resourceVersion": "7", "managedFields": [{}]},
            "spec": {"text": "a", "other": "x"}, "status": {"x": 1},
        });
        stage.delivery.set_object(id("configmaps/prod/a"), "v1", Labels::new(), json);
    };
    check(change, 0, 0, 0);
}

#[test]
fn a_property_changes() {
    let stage = check(|stage| stage.properties("west", "region=far"), 1, 1, 0);
    assert!(stage.sent().contains("west c west-far"));
    check(|stage| stage.properties("west", "unused=x"), 1, 0, 0);
    check(|stage| stage.properties("west", "not-an-identifier=x"), 0, 0, 0);
    check(|stage| stage.properties("nowhere", "region=x"), 0, 0, 0);
}

#[test]
fn a_custom_transform_changes() {
    let stage = check(|stage| stage.transform("t", "", "configmaps", &["$.spec.other"]), 4, 4, 0);
    assert_eq!(stage.sent().len(), 6);
    check(|stage| stage.transform("t", "apps", "deployments", &["$.spec.other"]), 2, 2, 0);
    check(|stage| stage.transform("t", "apps", "deployments", &["$.spec.absent"]), 2, 0, 0);
    check(|stage| stage.transform("t", "apps", "statefulsets", &["$.spec.other"]), 0, 0, 0);
    check(|stage| stage.transform("t", "apps", "deployments", &["$"]), 0, 0, 0);
}

#[test]
fn a_custom_transform_is_said_what_is_wrong_with_it() {
    let mut stage = stage();
    stage.transform("t", "apps", "deployments", &["$"]);
    assert_eq!(stage.delivery.verdict("t").map(|verdict| verdict.errors.len()), Some(1));
    let spec = json!({"apiGroup": "apps", "resource": "deployments"});
    let judged = stage.delivery.set_transform("u", serde_json::from_value(spec).ok());
    assert_eq!(judged.into_iter().collect::<Vec<_>>(), ["t", "u"], "both are warned");
    assert_eq!(stage.delivery.set_transform("u", None).into_iter().collect::<Vec<_>>(), ["t"]);
    assert_eq!(stage.delivery.verdict("u"), None);
}

#[test]
fn the_labels_of_a_cluster_change() {
    // A property alone, in no selector.
    check(|stage| stage.cluster("west", "region=far"), 1, 1, 0);
    check(|stage| stage.cluster("west", "region=west,not-an-identifier=1"), 0, 0, 0);
    check(|stage| stage.cluster("north", "region=north"), 3, 3, 0);
    check(|stage| stage.delivery.remove_cluster("west"), 0, 0, 3);
    let select = r#"{"clusterSelectors":[{"matchLabels":{"region":"east"}}],"downsync":[{"resources":["*"]}]}"#;
    let mut stage = check(|stage| stage.policy("all", 1, select), 0, 0, 3);
    stage.cluster("west", "region=east");
    let settled = stage.settle();
    assert_eq!((settled.rendered, told(&settled)), (3, (3, 0)));
}

#[test]
fn the_labels_of_a_namespace_change() {
    let select = r#"{"clusterSelectors":[{}],"downsync":[{"namespaceSelectors":[{"matchLabels":{"stage":"prod"}}]}]}"#;
    let mut stage = check(|stage| stage.policy("all", 1, select), 0, 0, 4);
    stage.delivery.set_namespace("test", labels("stage=prod"));
    let settled = stage.settle();
    assert_eq!((settled.rendered, told(&settled)), (4, (4, 0)));
    stage.delivery.set_namespace("prod", labels("stage=prod,more=1"));
    let settled = stage.settle();
    assert_eq!((settled.rendered, told(&settled)), (0, (0, 0)));
    stage.delivery.remove_namespace("prod");
    let settled = stage.settle();
    assert_eq!((settled.rendered, told(&settled)), (0, (0, 2)));
}

#[test]
fn a_kind_appears_late() {
    check(|stage| stage.literal("widgets.example.com/prod/w", "w"), 2, 2, 0);
}

#[test]
fn a_policy_changes_only_how_an_object_is_delivered() {
    let create = r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]},{"objectNames":["a"],"createOnly":true,"wantSingletonReportedState":true}]}"#;
    let stage = check(|stage| stage.policy("all", 1, create), 2, 2, 0);
    let with_settings: Vec<_> =
        stage.works.values().filter(|(_, bundle)| !bundle.manifest_configs.is_empty()).collect();
    assert_eq!(with_settings.len(), 2);
    let settings = serde_json::to_value(&with_settings[0].1.manifest_configs).expect("JSON");
    let expected = json!([{
        "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "a", "namespace": "prod"},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "status", "path": ".status"}]}],
        "updateStrategy": {"type": "CreateOnly"},
    }]);
    assert_eq!(settings, expected);
}

#[test]
fn a_policy_goes_and_comes_again() {
    let mut stage = check(|stage| stage.delivery.remove_policy("all"), 0, 0, 6);
    assert!(stage.stored.bindings.is_empty() && stage.works.is_empty());
    stage.policy("all", 1, r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#);
    assert_eq!(told(&stage.settle()), (6, 0));
}

#[test]
fn objects_of_one_box_travel_together_and_stay_there() {
    let mut stage = Stage::usual(NO_LIMIT);
    for name in ["b", "c", "d"] {
        stage.literal(&format!("configmaps/prod/{name}"), "x");
    }
    assert_eq!(told(&stage.settle()), (2, 0));
    stage.literal("configmaps/prod/a", "x");
    let settled = stage.settle();
    assert_eq!((settled.rendered, told(&settled)), (2, (2, 0)));
    let shared: Vec<_> = stage.works.values().map(|(_, bundle)| bundle).collect();
    assert!(std::sync::Arc::ptr_eq(shared[0], shared[1]), "what is the same for all is there once");
    stage.template("configmaps/prod/e", "{{.region}}");
    assert_eq!(told(&stage.settle()), (2, 0));
    assert_eq!(stage.stored.ledgers["all"].boxes.len(), 1);
}

#[test]
fn adding_an_object_moves_no_other() {
    let mut stage = Stage::usual(crate::stage::ONE_EACH);
    for name in ["b", "c", "d"] {
        stage.literal(&format!("configmaps/prod/{name}"), "x");
    }
    stage.settle();
    let before = stage.works.clone();
    stage.literal("configmaps/prod/a", "x");
    assert_eq!(told(&stage.settle()), (2, 0));
    assert!(before.iter().all(|(id, work)| stage.works.get(id) == Some(work)));
}

#[test]
fn a_binding_names_what_it_sends() {
    let stage = stage();
    let binding = serde_json::to_value(&stage.stored.bindings["all"]).expect("JSON");
    let object = |group: &str, resource: &str, namespace: &str, name: &str| json!({"group": group, "version": "v1", "resource": resource, "namespace": namespace, "name": name});
    let expected = json!({
        "workload": {"namespaceScope": [
            object("", "configmaps", "prod", "a"), object("", "configmaps", "test", "c"), object("apps", "deployments", "test", "b"),
        ]},
        "destinations": [{"clusterId": "east"}, {"clusterId": "west"}],
    });
    assert_eq!(binding, expected);
}

#[test]
fn annotations_of_a_cluster_are_properties() {
    let change = |stage: &mut Stage| {
        let annotations = BTreeMap::from([("region".to_owned(), "noted".to_owned())]);
        stage.delivery.set_cluster("east", labels("region=east"), annotations);
    };
    let stage = check(change, 1, 1, 0);
    assert!(stage.sent().contains("east c east-noted"));
}

#[test]
fn what_a_policy_loses_and_gets_back_at_once_is_sent_as_it_is_now() {
    let mut stage = Stage::usual(crate::stage::NO_LIMIT);
    stage.literal("configmaps/prod/a", "before");
    stage.policy("other", 2, r#"{"clusterSelectors": [{}], "downsync": [{"resources": ["configmaps"]}]}"#);
    stage.settle();
    stage.delivery.remove_policy("other");
    stage.delivery.remove_policy("all");
    stage.literal("configmaps/prod/a", "after");
    stage.policy("other", 2, r#"{"clusterSelectors": [{}], "downsync": [{"resources": ["configmaps"]}]}"#);
    stage.settle();
    assert_eq!(stage.sent(), crate::stage::texts(&["east a after", "west a after"]));
}
