//! A policy in several Bindings: what stays where it is, and whose a name is.

use std::collections::{BTreeMap, BTreeSet};

use orrery_hub::delivery::{BindingChange, Config, Settled};

use crate::stage::{Stage, texts, told};

/// Room for three objects in a Binding.
const SMALL: usize = 750;

const EVERYTHING: &str = r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#;
const MAPS: &str = r#"{"clusterSelectors":[{}],"downsync":[{"resources":["configmaps"]}]}"#;
const SECRETS: &str = r#"{"clusterSelectors":[{}],"downsync":[{"resources":["secrets"]}]}"#;

fn stage() -> Stage {
    let mut stage = Stage::with_config("wds", Config { max_binding_bytes: SMALL, ..Config::default() });
    stage.cluster("east", "");
    stage
}

fn with_maps(stage: &mut Stage, from: usize, to: usize) {
    for number in from..to {
        stage.literal(&format!("configmaps/n/c{number}"), "x");
    }
}

/// Which objects stand in which Binding.
fn bindings(stage: &Stage) -> BTreeMap<&str, Vec<&str>> {
    let names = |binding| {
        let workload: &orrery_api::control::BindingSpec = binding;
        workload.workload.namespace_scope.iter().map(|bound| bound.object.name.as_str()).collect()
    };
    stage.stored.bindings.iter().map(|(name, spec)| (name.as_str(), names(spec))).collect()
}

fn changed(settled: &Settled) -> Vec<&str> {
    settled.bindings.keys().map(|name| &**name).collect()
}

#[test]
fn what_is_in_a_binding_stays_there_and_what_comes_changes_one() {
    let mut stage = stage();
    stage.policy("big", 1, EVERYTHING);
    with_maps(&mut stage, 4, 9);
    stage.settle();
    let before = BTreeMap::from([("big", vec!["c4", "c5", "c6"]), ("big--2", vec!["c7", "c8"])]);
    assert_eq!(bindings(&stage), before);

    with_maps(&mut stage, 0, 1);
    let settled = stage.settle();
    assert_eq!((changed(&settled), told(&settled)), (vec!["big--2"], (1, 0)));
    assert_eq!(bindings(&stage)["big--2"], ["c0", "c7", "c8"]);

    stage.delivery.remove_object(&crate::stage::id("configmaps/n/c5"));
    let settled = stage.settle();
    assert_eq!((changed(&settled), told(&settled)), (vec!["big"], (1, 0)));
    with_maps(&mut stage, 1, 3);
    stage.settle();
    let after =
        BTreeMap::from([("big", vec!["c1", "c4", "c6"]), ("big--2", vec!["c0", "c7", "c8"]), ("big--3", vec!["c2"])]);
    assert_eq!(bindings(&stage), after);

    // Another program leaves everything where it is.
    let mut next = stage.restarted(&[("big", 1)]);
    next.cluster("east", "");
    next.policy("big", 1, EVERYTHING);
    with_maps(&mut next, 0, 3);
    for name in ["c4", "c6", "c7", "c8"] {
        next.literal(&format!("configmaps/n/{name}"), "x");
    }
    let settled = next.settle();
    assert!(settled.bindings.is_empty() && settled.ledgers.is_empty(), "{settled:?}");
    assert_eq!(next.works, stage.works);
}

#[test]
fn a_policy_does_not_continue_in_a_binding_that_is_named_as_another() {
    let mut stage = stage();
    stage.policy("big", 1, MAPS);
    stage.policy("big--2", 2, SECRETS);
    with_maps(&mut stage, 0, 4);
    stage.literal("secrets/n/s", "secret");
    stage.settle();
    let expected = BTreeMap::from([("big", vec!["c0", "c1", "c2"]), ("big--2", vec!["s"]), ("big--3", vec!["c3"])]);
    assert_eq!(bindings(&stage), expected);
    assert_eq!(stage.sent().len(), 5);
    assert_eq!(stage.delivery.refusal("big--2"), None);
    let owner = |name: &str| stage.delivery.policy_of(name).map(|policy| policy.to_string());
    assert_eq!([owner("big--2"), owner("big--3")], [Some("big--2".to_owned()), Some("big".to_owned())]);
}

#[test]
fn a_policy_whose_name_is_taken_waits_and_is_told_so() {
    let mut stage = stage();
    stage.policy("big", 1, MAPS);
    with_maps(&mut stage, 0, 4);
    stage.settle();
    let before = (stage.stored.bindings.clone(), stage.works.clone());

    stage.policy("big--2", 2, SECRETS);
    stage.literal("secrets/n/s", "secret");
    let settled = stage.settle();
    assert_eq!(told(&settled), (0, 0));
    assert_eq!((stage.stored.bindings.clone(), stage.works.clone()), before, "nobody's Binding is touched");
    assert!(settled.judged.contains("big--2"));
    let refusal = stage.delivery.refusal("big--2").expect("it is refused");
    assert!(refusal.contains("Binding big--2 is taken, it continues BindingPolicy big"), "{refusal}");

    // So it is after a restart.
    let mut next = stage.restarted(&[("big", 1)]);
    next.cluster("east", "");
    next.policy("big", 1, MAPS);
    next.policy("big--2", 2, SECRETS);
    with_maps(&mut next, 0, 4);
    next.literal("secrets/n/s", "secret");
    let settled = next.settle();
    assert!(settled.bindings.is_empty() && next.delivery.refusal("big--2").is_some());

    // Once the name is free it is its own.
    next.delivery.remove_object(&crate::stage::id("configmaps/n/c3"));
    let settled = next.settle();
    assert!(matches!(&settled.bindings["big--2"], BindingChange::Spec { policy, .. } if &**policy == "big--2"));
    assert_eq!(next.delivery.refusal("big--2"), None);
    assert_eq!(next.sent(), texts(&["east c0 x", "east c1 x", "east c2 x", "east s secret"]));
    assert_eq!(bindings(&next), BTreeMap::from([("big", vec!["c0", "c1", "c2"]), ("big--2", vec!["s"])]));
    next.delivery.remove_policy("big--2");
    next.settle();
    with_maps(&mut next, 3, 4);
    next.settle();
    assert_eq!(bindings(&next), BTreeMap::from([("big", vec!["c0", "c1", "c2"]), ("big--2", vec!["c3"])]));
}

#[test]
fn bindings_and_works_of_policies_with_the_longest_names_have_names() {
    let policies = ["a", "b"].map(|end| format!("{}{end}", "x".repeat(252)));
    let mut stage = stage();
    stage.policy(&policies[0], 1, MAPS);
    stage.policy(&policies[1], 2, SECRETS);
    for number in 0..4 {
        stage.literal(&format!("configmaps/n/c{number}"), "x");
        stage.literal(&format!("secrets/n/s{number}"), "x");
    }
    let settled = stage.settle();
    assert_eq!(stage.sent().len(), 8);
    let names: BTreeSet<&str> = bindings(&stage).into_keys().collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 253));
    for change in &settled.works {
        let orrery_hub::delivery::WorkChange::Put { name, .. } = change else { panic!("{change:?}") };
        assert!(name.len() <= 253, "{name}");
    }
    let mut next = stage.restarted(&[(&policies[0], 1), (&policies[1], 2)]);
    assert_eq!(next.delivery.bindings_of(&policies[0]).count(), 2, "they are found again by their names");
    next.settle();
}
