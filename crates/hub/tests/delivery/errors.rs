//! What cannot be rendered is told, and holds back its Binding; clusters keep the last good state.

use orrery_hub::{
    delivery::{Config, Unsent, WorkChange},
    pack::Limits,
};

use crate::stage::{NO_LIMIT, ONE_EACH, Stage, id, texts, told};

fn stage() -> Stage {
    let mut stage = Stage::usual(ONE_EACH);
    stage.properties("east", "size=1");
    stage.properties("west", "size=2");
    stage.template("configmaps/prod/a", "{{.size}}");
    stage.literal("configmaps/prod/b", "b");
    stage.settle();
    assert_eq!(stage.sent(), texts(&["east a 1", "east b b", "west a 2", "west b b"]));
    stage
}

fn missing(cluster: &str, name: &str, field: &str) -> String {
    let at = format!("{cluster}/Thing(prod/{name}).spec.text");
    format!(r#"template: {at}:1:2: executing "{at}" at <.{field}>: map has no entry for key "{field}""#)
}

#[test]
fn the_first_cluster_that_fails_is_told_for_each_object_and_nothing_is_sent() {
    let mut stage = stage();
    let before = stage.works.clone();
    stage.template("configmaps/prod/a", "{{.nope}}");
    stage.template("configmaps/prod/c", "{{.never}}");
    stage.literal("configmaps/prod/b", "changed");
    stage.delivery.remove_cluster("west");
    let settled = stage.settle();
    assert_eq!(told(&settled), (0, 0));
    assert_eq!(stage.errors["all"], [missing("east", "a", "nope"), missing("east", "c", "never")]);
    assert!(settled.frozen.contains("all"));
    assert_eq!(stage.works, before);

    stage.template("configmaps/prod/a", "{{.size}}!");
    assert_eq!(told(&stage.settle()), (0, 0), "the other error is still there");
    assert_eq!(stage.errors["all"], [missing("east", "c", "never")]);
    stage.delivery.remove_object(&id("configmaps/prod/c"));
    stage.settle();
    assert!(stage.errors["all"].is_empty());
    assert_eq!(stage.sent(), texts(&["east a 1!", "east b changed"]), "all that was held back is made up for");
}

#[test]
fn a_property_that_goes_breaks_and_one_that_comes_mends() {
    let mut stage = stage();
    let before = stage.works.clone();
    stage.delivery.set_properties("west", None);
    stage.settle();
    assert_eq!(stage.errors["all"], [missing("west", "a", "size")]);
    assert_eq!(stage.works, before);
    stage.properties("west", "size=3");
    stage.settle();
    assert!(stage.errors["all"].is_empty());
    assert!(stage.sent().contains("west a 3"));
}

#[test]
fn only_the_binding_with_the_error_is_held_back() {
    let mut stage = stage();
    stage.policy("other", 2, r#"{"clusterSelectors":[{}],"downsync":[{"objectNames":["b"]}]}"#);
    stage.settle();
    stage.template("configmaps/prod/a", "{{.nope}}");
    stage.literal("configmaps/prod/b", "changed");
    stage.settle();
    assert_eq!(stage.errors["other"], Vec::<String>::new());
    let sent = stage.sent();
    assert!(sent.contains("east b b") && sent.contains("east b changed"), "{sent:?}");
}

#[test]
fn an_error_in_a_binding_that_is_deleted_does_not_keep_its_works() {
    let mut stage = stage();
    stage.template("configmaps/prod/a", "{{.nope}}");
    stage.settle();
    stage.delivery.remove_policy("all");
    stage.settle();
    assert!(stage.works.is_empty());
}

#[test]
fn an_object_too_large_for_a_work_is_told() {
    let mut stage = Stage::usual(Limits { bytes: 400, count: usize::MAX });
    stage.literal("configmaps/prod/a", "small");
    stage.settle();
    stage.literal("configmaps/prod/b", &"x".repeat(400));
    let settled = stage.settle();
    assert_eq!(told(&settled), (0, 0));
    let errors = &stage.errors["all"];
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("configmaps prod/b has 5"), "{errors:?}");
    assert!(errors[0].ends_with("bytes, more than the 400 that fit in one work"), "{errors:?}");
}

#[test]
fn a_work_too_large_for_the_broker_is_told_until_it_is_another() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/a", "large");
    stage.settle();
    assert!(stage.errors["all"].is_empty());
    let (east, unsent) = ("east".into(), Unsent { bytes: 30_000, most: 20_000 });
    stage.delivery.set_unsent("all", 1, &east, Some(unsent));
    let settled = stage.settle();
    assert_eq!(told(&settled), (0, 0), "nothing else changes");
    let wrong = "a work for cluster east has 30000 bytes as an event, more than the 20000 that the broker takes: let the broker \
                 take more, or make works smaller with --max-work-bytes";
    assert_eq!(stage.errors["all"], [wrong]);
    stage.delivery.set_unsent("all", 1, &east, Some(unsent));
    assert!(!stage.delivery.is_dirty(), "the same again is no news");

    stage.literal("configmaps/prod/a", "small");
    stage.settle();
    assert!(stage.errors["all"].is_empty());
    stage.delivery.set_unsent("all", 1, &east, Some(unsent));
    stage.settle();
    assert_eq!(stage.errors["all"], [wrong]);
    stage.delivery.set_unsent("all", 1, &east, None);
    stage.settle();
    assert!(stage.errors["all"].is_empty(), "it was sent after all");
}

#[test]
fn the_last_good_state_outlives_the_program() {
    let mut stage = Stage::usual(NO_LIMIT);
    stage.literal("configmaps/prod/b", "b");
    stage.literal("configmaps/prod/c", "c");
    stage.settle();
    assert!(stage.stored.ledgers["all"].kept.is_empty());
    let before = stage.works.clone();
    stage.template("configmaps/prod/b", "{{.nope}}");
    stage.settle();
    let kept = &stage.stored.ledgers["all"].kept;
    assert_eq!(kept.len(), 1, "what clusters have in common is kept once");
    assert_eq!(kept[0].clusters, ["east", "west"]);

    let mut next = stage.restarted(&[("all", 1)]);
    next.works.clear();
    fill(&mut next);
    next.template("configmaps/prod/b", "{{.nope}}");
    next.literal("configmaps/prod/c", "c");
    let settled = next.settle();
    assert!(settled.bindings.is_empty() && settled.ledgers.is_empty(), "nothing new is stored");
    assert_eq!(next.works, before, "clusters that lost their state get it again, and no other");
    next.literal("configmaps/prod/b", "mended");
    next.settle();
    assert!(next.stored.ledgers["all"].kept.is_empty());
    assert_eq!(next.sent(), texts(&["east b mended", "east c c", "west b mended", "west c c"]));
}

/// A program that ended before it could store what it held back, and the one that starts after it.
fn restarted_without_its_last_ledger() -> (Stage, Stage) {
    let mut stage = stage();
    let ledgers = stage.stored.ledgers.clone();
    stage.template("configmaps/prod/a", "{{.nope}}");
    stage.settle();
    stage.stored.ledgers = ledgers;
    let next = stage.restarted(&[("all", 1)]);
    (stage, next)
}

#[test]
fn what_could_not_be_stored_in_time_is_kept_without_knowing_it() {
    let (stage, mut next) = restarted_without_its_last_ledger();
    fill(&mut next);
    next.template("configmaps/prod/a", "{{.nope}}");
    next.literal("configmaps/prod/b", "b");
    let settled = next.settle();
    let kept = settled.works.iter().filter_map(|change| match change {
        WorkChange::Keep { id, .. } => Some(id.clone()),
        _ => None,
    });
    let mut kept: Vec<_> = kept.collect();
    kept.sort();
    assert_eq!(kept, stage.works.keys().cloned().collect::<Vec<_>>());
    assert_eq!(settled.works.len(), 4);
}

/// Clusters whose works cannot be kept in one ledger.
fn many() -> (Stage, Config) {
    let config = Config { limits: ONE_EACH, max_ledger_bytes: 1000, ..Config::default() };
    let mut stage = Stage::usual_with(config);
    for name in ["a", "b", "c"] {
        stage.template(&format!("configmaps/prod/{name}"), "{{.region}}");
    }
    stage.settle();
    assert_eq!(stage.works.len(), 6);
    (stage, config)
}

#[test]
fn a_last_good_state_too_large_for_one_ledger_is_kept_in_several() {
    let (mut stage, config) = many();
    let before = stage.works.clone();
    assert_eq!(stage.stored.ledgers.len(), 1);
    stage.template("configmaps/prod/b", "{{.nope}}");
    stage.settle();
    assert!(stage.stored.ledgers.len() > 2, "{:?}", stage.stored.ledgers.keys());
    for ledger in stage.stored.ledgers.values() {
        let bytes = serde_json::to_vec(ledger).expect("JSON").len();
        assert!(bytes < config.max_ledger_bytes + 200, "{bytes}");
    }
    let ledgers = stage.stored.ledgers.clone();
    stage.template("configmaps/prod/c", "{{.never}}");
    stage.settle();
    assert_eq!(stage.stored.ledgers, ledgers, "another error moves nothing");

    let mut next = stage.restarted(&[("all", 1)]);
    next.works.clear();
    fill(&mut next);
    for name in ["a", "c"] {
        next.template(&format!("configmaps/prod/{name}"), "{{.region}}");
    }
    next.template("configmaps/prod/b", "{{.nope}}");
    next.settle();
    assert_eq!(next.works, before);
    next.template("configmaps/prod/b", "mended");
    next.settle();
    assert_eq!(next.stored.ledgers.keys().collect::<Vec<_>>(), ["all"], "what is not needed any more is gone");
}

#[test]
fn of_a_book_that_was_not_written_to_its_end_nothing_is_believed_and_nothing_deleted() {
    let (mut stage, _) = many();
    let (before, unfrozen) = (stage.works.clone(), stage.stored.ledgers["all"].clone());
    stage.template("configmaps/prod/b", "{{.nope}}");
    stage.settle();
    stage.stored.ledgers.insert("all".into(), unfrozen);
    let mut next = stage.restarted(&[("all", 1)]);
    fill(&mut next);
    next.template("configmaps/prod/b", "{{.nope}}");
    let settled = next.settle();
    assert!(settled.works.iter().all(|change| matches!(change, WorkChange::Keep { .. })));
    next.complete();
    assert_eq!(next.works, before);
}

#[test]
fn of_a_book_with_a_page_missing_the_rest_is_believed() {
    let (mut stage, _) = many();
    let before = stage.works.clone();
    stage.template("configmaps/prod/b", "{{.nope}}");
    stage.settle();
    let missing = stage.stored.ledgers["all"].further[0].clone();
    stage.stored.ledgers.remove(&missing);
    let mut next = stage.restarted(&[("all", 1)]);
    fill(&mut next);
    next.template("configmaps/prod/b", "{{.nope}}");
    let settled = next.settle();
    let kept = settled.works.iter().filter(|change| matches!(change, WorkChange::Keep { .. })).count();
    assert_eq!((kept + told(&settled).0, told(&settled).1), (6, 0));
    assert!(kept > 0 && kept < 6, "{kept}");
    next.complete();
    assert_eq!(next.works, before);
}

#[test]
fn what_was_kept_without_knowing_it_goes_when_it_is_not_wanted_any_more() {
    let (stage, mut next) = restarted_without_its_last_ledger();
    // One cluster left meanwhile. It keeps what it has for as long as changes are held back.
    next.cluster("east", "region=east");
    next.policy("all", 1, r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#);
    next.template("configmaps/prod/a", "{{.nope}}");
    next.settle();
    next.complete();
    assert_eq!(next.works, stage.works);
    next.literal("configmaps/prod/a", "mended");
    next.settle();
    assert_eq!(next.sent(), texts(&["east a mended"]));
}

fn fill(stage: &mut Stage) {
    stage.cluster("east", "region=east");
    stage.cluster("west", "region=west");
    stage.policy("all", 1, r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#);
}
