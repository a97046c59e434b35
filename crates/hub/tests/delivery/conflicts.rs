//! Two Bindings that send one object to one cluster with different content: the older keeps it, both hear of it.

use orrery_hub::delivery::Claims;

use crate::stage::{NO_LIMIT, Stage, texts};

const ALL: &str = r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#;

fn space(name: &str, second: i64, text: &str) -> Stage {
    let mut stage = Stage::in_space(name, NO_LIMIT);
    stage.cluster("east", "region=east");
    stage.cluster("west", "region=west");
    stage.policy(&format!("of-{name}"), second, ALL);
    stage.literal("configmaps/prod/shared", text);
    stage.literal(&format!("configmaps/prod/only-{name}"), "x");
    stage
}

/// Settles two spaces until nothing is left to be told.
fn settle(one: &mut Stage, other: &mut Stage, claims: &mut Claims) {
    loop {
        let first = one.settle_among(claims);
        let second = other.settle_among(claims);
        for (holder, object) in first.elsewhere.iter().chain(&second.elsewhere) {
            one.delivery.touch_claim(&holder.binding, object);
            other.delivery.touch_claim(&holder.binding, object);
        }
        if !one.delivery.is_dirty() && !other.delivery.is_dirty() {
            return;
        }
    }
}

#[test]
fn the_older_keeps_it_whoever_comes_first() {
    for older_first in [true, false] {
        let (mut old, mut young) = (space("old", 1, "mine"), space("young", 2, "no, mine"));
        let mut claims = Claims::default();
        if older_first {
            old.settle_among(&mut claims);
        } else {
            young.settle_among(&mut claims);
        }
        settle(&mut old, &mut young, &mut claims);
        assert_eq!(old.sent(), texts(&["east only-old x", "east shared mine", "west only-old x", "west shared mine"]));
        assert_eq!(young.sent(), texts(&["east only-young x", "west only-young x"]));
        let told = "conflict over configmaps prod/shared in cluster east and 1 other: other content is sent by Binding";
        assert_eq!(
            old.errors["of-old"],
            [format!("{told} of-young of space young, which is younger and leaves it out")]
        );
        assert_eq!(young.errors["of-young"], [format!("{told} of-old of space old, which is older and keeps it")]);
    }
}

#[test]
fn what_the_older_lets_go_the_younger_sends() {
    let (mut old, mut young) = (space("old", 1, "mine"), space("young", 2, "no, mine"));
    let mut claims = Claims::default();
    settle(&mut old, &mut young, &mut claims);
    old.delivery.remove_policy("of-old");
    settle(&mut old, &mut young, &mut claims);
    assert!(old.works.is_empty());
    assert!(young.sent().contains("east shared no, mine"));
    assert!(young.errors["of-young"].is_empty());
}

#[test]
fn the_same_content_is_no_conflict_and_other_content_makes_one() {
    let (mut old, mut young) = (space("old", 1, "same"), space("young", 2, "same"));
    let mut claims = Claims::default();
    settle(&mut old, &mut young, &mut claims);
    assert!(young.sent().contains("west shared same") && old.sent().contains("west shared same"));
    assert!(young.errors["of-young"].is_empty() && old.errors["of-old"].is_empty());
    old.literal("configmaps/prod/shared", "changed");
    settle(&mut old, &mut young, &mut claims);
    assert!(!young.sent().contains("west shared same"));
    assert!(old.sent().contains("west shared changed"));
    assert_eq!((young.errors["of-young"].len(), old.errors["of-old"].len()), (1, 1));
    young.literal("configmaps/prod/shared", "changed");
    settle(&mut old, &mut young, &mut claims);
    assert!(young.sent().contains("west shared changed"));
    assert!(young.errors["of-young"].is_empty() && old.errors["of-old"].is_empty());
}

#[test]
fn only_the_clusters_that_both_reach_are_contested() {
    let (mut old, mut young) = (space("old", 1, "mine"), space("young", 2, "no, mine"));
    old.policy(
        "of-old",
        1,
        r#"{"clusterSelectors":[{"matchLabels":{"region":"east"}}],"downsync":[{"resources":["*"]}]}"#,
    );
    let mut claims = Claims::default();
    settle(&mut old, &mut young, &mut claims);
    let sent = young.sent();
    assert!(!sent.contains("east shared no, mine") && sent.contains("west shared no, mine"), "{sent:?}");
    assert!(young.errors["of-young"][0].contains("in cluster east:"), "{:?}", young.errors);
}

#[test]
fn templates_conflict_where_they_differ() {
    let (mut old, mut young) = (space("old", 1, "x"), space("young", 2, "x"));
    old.template("configmaps/prod/shared", "{{.region}}");
    young.template("configmaps/prod/shared", r#"{{printf "ea%s" "st"}}"#);
    let mut claims = Claims::default();
    settle(&mut old, &mut young, &mut claims);
    let sent = young.sent();
    assert!(sent.contains("east shared east") && !sent.contains("west shared east"), "{sent:?}");
}

#[test]
fn two_policies_of_one_space_that_want_it_delivered_differently_are_in_conflict() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/a", "a");
    stage.policy("second", 2, r#"{"clusterSelectors":[{}],"downsync":[{"objectNames":["a"]}]}"#);
    let mut claims = Claims::default();
    stage.settle_among(&mut claims);
    assert!(stage.errors["all"].is_empty() && stage.errors["second"].is_empty(), "overlapping policies are common");
    assert_eq!(stage.works.len(), 4);
    stage.policy("second", 2, r#"{"clusterSelectors":[{}],"downsync":[{"objectNames":["a"],"createOnly":true}]}"#);
    stage.settle_among(&mut claims);
    assert_eq!((stage.errors["all"].len(), stage.errors["second"].len()), (1, 1));
    assert_eq!(stage.works.len(), 2, "the younger has nothing left to send");
    assert!(stage.works.values().all(|(_, bundle)| bundle.manifest_configs.is_empty()));
}
