//! A program that starts anew tells the same works under the same ids, and stores nothing that is stored already.

use orrery_hub::{delivery::Config, pack::Limits};
use proptest::prelude::*;

use crate::stage::{Stage, Works, told};

/// So little room that few objects make several works, Bindings and ledgers.
const NARROW: Config =
    Config { limits: Limits { bytes: 100_000, count: 3 }, max_binding_bytes: 1500, max_ledger_bytes: 600 };
const POLICIES: [(&str, i64); 2] = [("p", 1), ("q", 2)];

#[derive(Clone, Debug)]
enum Step {
    Object(u8, u8),
    Template(u8, u8),
    RemoveObject(u8),
    Cluster(u8, u8),
    RemoveCluster(u8),
    Properties(u8, u8),
    Policy(u8, u8),
    RemovePolicy(u8),
    Transform(u8),
    Namespace(u8),
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    use Step::*;
    prop_oneof![
        4 => (0..12_u8, 0..3_u8).prop_map(|(object, text)| Object(object, text)),
        2 => (0..12_u8, 0..4_u8).prop_map(|(object, text)| Template(object, text)),
        2 => (0..12_u8).prop_map(RemoveObject),
        2 => (0..4_u8, 0..3_u8).prop_map(|(cluster, text)| Cluster(cluster, text)),
        1 => (0..4_u8).prop_map(RemoveCluster),
        1 => (0..4_u8, 0..3_u8).prop_map(|(cluster, text)| Properties(cluster, text)),
        2 => (0..2_u8, 0..4_u8).prop_map(|(policy, spec)| Policy(policy, spec)),
        1 => (0..2_u8).prop_map(RemovePolicy),
        1 => (0..3_u8).prop_map(Transform),
        1 => (0..3_u8).prop_map(Namespace),
        4 => Just(Settle),
    ]
}

fn object(number: u8) -> String {
    let kind = ["configmaps", "services", "deployments.apps"][usize::from(number % 3)];
    format!("{kind}/{}/o{number}", ["prod", "test"][usize::from(number / 6)])
}

fn policy(spec: u8) -> &'static str {
    [
        r#"{"clusterSelectors":[{}],"downsync":[{"resources":["*"]}]}"#,
        r#"{"clusterSelectors":[{"matchLabels":{"l":"1"}}],"downsync":[{"apiGroup":"","wantSingletonReportedState":true}]}"#,
        r#"{"clusterSelectors":[{"matchLabels":{"l":"1"}},{"matchLabels":{"l":"2"}}],"downsync":[{"namespaceSelectors":[{"matchLabels":{"n":"1"}}]}]}"#,
        r#"{"downsync":[{"resources":["*"]}]}"#,
    ][usize::from(spec)]
}

/// The last word about everything, so that a program can be started that knows it.
#[derive(Default)]
struct World {
    objects: std::collections::BTreeMap<u8, Step>,
    clusters: std::collections::BTreeMap<u8, Step>,
    others: std::collections::BTreeMap<(u8, u8), Step>,
}

impl World {
    fn note(&mut self, step: &Step) {
        use Step::*;
        match step {
            Object(number, _) | Template(number, _) => drop(self.objects.insert(*number, step.clone())),
            RemoveObject(number) => drop(self.objects.remove(number)),
            Cluster(number, _) => drop(self.clusters.insert(*number, step.clone())),
            RemoveCluster(number) => drop(self.clusters.remove(number)),
            Properties(number, _) => drop(self.others.insert((0, *number), step.clone())),
            Policy(number, _) => drop(self.others.insert((1, *number), step.clone())),
            RemovePolicy(number) => drop(self.others.remove(&(1, *number))),
            Transform(_) => drop(self.others.insert((2, 0), step.clone())),
            Namespace(_) => drop(self.others.insert((3, 0), step.clone())),
            Settle => {}
        }
    }

    fn tell(&self, stage: &mut Stage) {
        for step in self.objects.values().chain(self.clusters.values()).chain(self.others.values()) {
            apply(stage, step);
        }
    }
}

fn apply(stage: &mut Stage, step: &Step) {
    match step {
        Step::Object(number, text) => stage.literal(&object(*number), &text.to_string()),
        Step::Template(number, text) => {
            stage.template(&object(*number), ["{{.clusterName}}", "{{.l}}", "{{.p}}", "{{.p"][usize::from(*text)]);
        }
        Step::RemoveObject(number) => stage.delivery.remove_object(&crate::stage::id(&object(*number))),
        Step::Cluster(number, text) => stage.cluster(&format!("c{number}"), &format!("l={text}")),
        Step::RemoveCluster(number) => stage.delivery.remove_cluster(&format!("c{number}")),
        Step::Properties(number, text) => stage.properties(&format!("c{number}"), &format!("p={text}")),
        Step::Policy(number, spec) => {
            let (name, second) = POLICIES[usize::from(*number)];
            stage.policy(name, second, policy(*spec));
        }
        Step::RemovePolicy(number) => stage.delivery.remove_policy(POLICIES[usize::from(*number)].0),
        Step::Transform(kind) => {
            let remove: &[&str] = [&[][..], &["$.spec.other"], &["$.spec"]][usize::from(*kind)];
            stage.transform("t", "", "configmaps", remove);
        }
        Step::Namespace(label) => {
            stage.delivery.set_namespace("prod", crate::stage::labels(&format!("n={label}")));
        }
        Step::Settle => drop(stage.settle()),
    }
}

fn contents(works: &Works) -> Vec<String> {
    works.iter().map(|(id, (cluster, bundle))| format!("{id} {cluster} {bundle:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_fresh_start_leads_where_changes_did(steps in prop::collection::vec(step(), 1..60)) {
        let (mut stage, mut world) = (Stage::with_config("wds", NARROW), World::default());
        for step in &steps {
            world.note(step);
            apply(&mut stage, step);
        }
        stage.settle();

        let mut next = stage.restarted(&POLICIES);
        next.works.clear();
        world.tell(&mut next);
        let settled = next.settle();
        prop_assert!(settled.bindings.is_empty(), "stored anew: {:?}", settled.bindings);
        prop_assert!(settled.ledgers.is_empty(), "stored anew: {:?}", settled.ledgers);
        prop_assert_eq!(contents(&next.works), contents(&stage.works));
        for (binding, errors) in &next.errors {
            prop_assert_eq!(Some(errors), stage.errors.get(binding), "{}", binding);
        }
        prop_assert_eq!(told(&next.settle()), (0, 0));
    }

    #[test]
    fn a_crash_in_the_middle_of_anything_leads_where_none_would(
        steps in prop::collection::vec(step(), 1..60),
        after in 0..40_usize,
    ) {
        let narrow = || Stage::with_config("wds", NARROW);
        let (mut sound, mut crashed, mut world) = (narrow(), narrow(), World::default());
        for step in &steps {
            world.note(step);
            apply(&mut sound, step);
            apply(&mut crashed, step);
        }
        sound.settle();
        crashed.settle_and_crash(after);

        let mut next = crashed.restarted(&POLICIES);
        world.tell(&mut next);
        next.settle();
        next.complete();
        prop_assert_eq!(contents(&next.works), contents(&sound.works));
    }
}
