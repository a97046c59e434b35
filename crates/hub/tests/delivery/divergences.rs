//! Where KubeStellar's guide and its code differ over what is sent and reported, or the code has a known fault: what we do, one
//! test for each. Those about the content of objects are in `tests/divergences.rs`.

use orrery_api::labels::Labels;
use orrery_hub::{delivery::WorkChange, pack::Limits};
use serde_json::json;

use crate::stage::{NO_LIMIT, ONE_EACH, Stage, id, labels, texts, told};

/// The code deletes all works of a Binding with an error; the guide says that what was sent remains.
#[test]
fn an_error_leaves_the_last_good_state_in_the_clusters() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.template("configmaps/prod/a", "{{.region}}");
    stage.settle();
    stage.template("configmaps/prod/a", "{{.nope}}");
    assert!(stage.settle().works.is_empty());
    assert_eq!(stage.sent(), texts(&["east a east", "west a west"]));
}

/// The code compares only the generation of the Binding and the names of objects (kubestellar#3723).
#[test]
fn a_custom_transform_or_a_property_that_changes_is_sent() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.template("configmaps/prod/a", "{{.region}}");
    stage.settle();
    stage.transform("t", "", "configmaps", &["$.spec.other"]);
    assert_eq!(told(&stage.settle()), (2, 0));
    stage.properties("west", "region=far");
    assert_eq!(told(&stage.settle()), (1, 0));
}

/// The code repeats the resourceVersion of every object, so that each change of a status sends everything anew.
#[test]
fn a_binding_does_not_change_with_the_content_of_its_objects() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/a", "a");
    stage.settle();
    stage.literal("configmaps/prod/a", "b");
    let settled = stage.settle();
    assert!(settled.bindings.is_empty());
    assert_eq!(told(&settled), (2, 0));
}

/// The code has no such reaction although the issue about it was closed (kubestellar#1682).
#[test]
fn a_relabelled_namespace_brings_its_members() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.policy(
        "all",
        1,
        r#"{"clusterSelectors":[{}],"downsync":[{"namespaceSelectors":[{"matchLabels":{"stage":"prod"}}]}]}"#,
    );
    stage.literal("configmaps/test/a", "a");
    stage.settle();
    assert!(stage.works.is_empty());
    stage.delivery.set_namespace("test", labels("stage=prod"));
    stage.settle();
    assert_eq!(stage.sent(), texts(&["east a a", "west a a"]));
}

/// The code writes the status of a CustomTransform only once some Binding has an object of its kind.
#[test]
fn a_custom_transform_is_judged_at_once() {
    let mut stage = Stage::usual(NO_LIMIT);
    let spec = json!({"apiGroup": "nobody.example.com", "resource": "things", "remove": ["$"]});
    let judged = stage.delivery.set_transform("t", serde_json::from_value(spec).ok());
    assert!(judged.contains("t"));
    assert_eq!(stage.delivery.verdict("t").map(|verdict| verdict.errors.len()), Some(1));
}

/// The code moves objects between works when others come and go (kubestellar#2511, #2634).
#[test]
fn an_object_stays_in_its_work_when_others_come_and_go() {
    let mut stage = Stage::usual(Limits { count: 2, ..ONE_EACH });
    for name in ["b", "c", "d", "e"] {
        stage.literal(&format!("configmaps/prod/{name}"), name);
    }
    stage.settle();
    let with_e = |stage: &Stage| {
        let has = |(id, (_, bundle)): (&orrery_works::ResourceId, &(_, std::sync::Arc<orrery_works::Bundle>))| {
            bundle.manifests.iter().any(|manifest| manifest.as_json().contains("\"e\"")).then(|| id.clone())
        };
        stage.works.iter().filter_map(has).collect::<Vec<_>>()
    };
    let before = with_e(&stage);
    assert_eq!(before.len(), 2);
    stage.literal("configmaps/prod/a", "a");
    stage.delivery.remove_object(&id("configmaps/prod/b"));
    stage.settle();
    assert_eq!(with_e(&stage), before);
}

/// The code tries for ever and says nothing, and an object of exactly the limit makes an empty work besides.
#[test]
fn an_object_too_large_is_told_and_one_of_exactly_the_limit_is_sent() {
    let size = |text: &str| {
        let mut stage = Stage::usual(NO_LIMIT);
        stage.literal("configmaps/prod/a", text);
        stage.settle();
        stage.works.values().next().expect("a work").1.manifest_bytes()
    };
    let limits = Limits { bytes: size("fits"), count: usize::MAX };
    let mut stage = Stage::usual(limits);
    stage.literal("configmaps/prod/a", "fits");
    stage.settle();
    assert_eq!(stage.works.len(), 2);
    stage.literal("configmaps/prod/a", "does not");
    stage.settle();
    assert!(stage.errors["all"][0].contains("more than the"), "{:?}", stage.errors);
    assert_eq!(stage.sent(), texts(&["east a fits", "west a fits"]));
}

/// The code lets two Bindings overwrite each other in turn.
#[test]
fn two_bindings_that_disagree_are_told_and_the_older_is_sent() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/a", "a");
    stage.policy("younger", 2, r#"{"clusterSelectors":[{}],"downsync":[{"objectNames":["a"],"createOnly":true}]}"#);
    stage.settle();
    assert_eq!((stage.errors["all"].len(), stage.errors["younger"].len()), (1, 1));
    assert!(stage.works.values().all(|(_, bundle)| bundle.manifest_configs.is_empty()));
}

/// The code deletes works only where the Binding sends at that moment.
#[test]
fn a_deleted_policy_takes_its_works_from_wherever_they_are() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.template("configmaps/prod/a", "{{.region}}");
    stage.settle();
    // While changes are held back a cluster leaves the policy, and has its work still.
    stage.template("configmaps/prod/a", "{{.nope}}");
    stage.policy(
        "all",
        1,
        r#"{"clusterSelectors":[{"matchLabels":{"region":"east"}}],"downsync":[{"resources":["*"]}]}"#,
    );
    stage.settle();
    assert_eq!(stage.works.len(), 2);
    stage.delivery.remove_policy("all");
    let settled = stage.settle();
    assert!(settled.works.iter().all(|change| matches!(change, WorkChange::Delete { .. })));
    assert!(stage.works.is_empty());
}

/// The code puts the name of the Binding in a label, and fails where it does not fit.
#[test]
fn a_policy_may_have_any_name() {
    let mut stage = Stage::new(NO_LIMIT);
    stage.cluster("east", "");
    let name = "a".repeat(100);
    stage.policy(&name, 1, r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#);
    stage.literal("configmaps/prod/a", "a");
    stage.settle();
    assert_eq!(stage.sent(), texts(&["east a a"]));
}

/// The code skips a bad selector silently, and so do we, since the schema refuses it: it selects nothing, never everything.
#[test]
fn a_selector_that_means_nothing_selects_nothing() {
    let mut stage = Stage::new(NO_LIMIT);
    stage.cluster("east", "region=east");
    let bad = r#"{"clusterSelectors":[{"matchExpressions":[{"key":"region","operator":"Like"}]}],"downsync":[{"resources":["*"]}]}"#;
    stage.policy("all", 1, bad);
    stage.delivery.set_object(id("configmaps/prod/a"), "v1", Labels::new(), json!({"metadata": {"name": "a"}}));
    stage.settle();
    assert!(stage.works.is_empty());
}
