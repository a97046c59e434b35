//! Which objects policies select, clause by clause, and that changes one at a time lead where a fresh start would.

use std::collections::BTreeMap;

use orrery_api::{control::BindingPolicySpec, labels::Labels};
use orrery_hub::placement::{ObjectFacts, ObjectId, Resolution, parts};
use proptest::prelude::*;

fn labels(text: &str) -> Labels {
    text.split(',').filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}

/// `group/resource/namespace/name`, with `-` for an empty part.
fn id(text: &str) -> ObjectId {
    let parts: Vec<_> = text.split('/').map(|part| if part == "-" { "" } else { part }).collect();
    ObjectId::new(parts[0], parts[1], parts[2], parts[3])
}

fn facts(text: &str) -> ObjectFacts {
    ObjectFacts { version: "v1".into(), labels: labels(text) }
}

fn spec(yaml: &str) -> BindingPolicySpec {
    serde_saphyr::from_str(yaml).expect("a policy")
}

/// A small space: a namespace with labels, one without, objects in both and beside them, and three clusters.
fn space() -> Resolution {
    let mut space = Resolution::default();
    space.set_namespace("prod", labels("stage=prod"));
    space.set_namespace("test", labels(""));
    for (object, text) in [
        ("-/configmaps/prod/settings", "app=web"),
        ("-/configmaps/test/settings", ""),
        ("-/namespaces/-/prod", "stage=prod"),
        ("apps/deployments/prod/web", "app=web,tier=front"),
        ("apps/deployments/test/web", "app=web"),
        ("apps/deployments/nowhere/web", "app=web"),
    ] {
        space.set_object(id(object), facts(text));
    }
    for (cluster, text) in [("east", "region=east,edge=yes"), ("north", ""), ("west", "region=west")] {
        space.set_cluster(cluster, labels(text));
    }
    space
}

fn shown(space: &Resolution, policy: &str) -> (Vec<String>, Vec<String>) {
    let answer = space.answer(policy).expect("the policy");
    let part = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let objects = answer.objects.keys().map(|id| {
        [&id.resource.group, &id.resource.resource, &id.namespace, &id.name].map(|text| part(text)).join("/")
    });
    (objects.collect(), answer.destinations.iter().map(ToString::to_string).collect())
}

fn check_objects(downsync: &str, expected: &[&str]) {
    let mut space = space();
    space.set_policy("p", spec(&format!("downsync:\n- {}", downsync.replace('\n', "\n  "))));
    assert_eq!(shown(&space, "p").0, expected, "{downsync}");
}

fn check_clusters(selectors: &str, expected: &[&str]) {
    let mut space = space();
    space.set_policy("p", spec(&format!("clusterSelectors: {selectors}")));
    assert_eq!(shown(&space, "p").1, expected, "{selectors}");
}

#[test]
fn each_criterion() {
    check_objects(
        "apiGroup: apps",
        &["apps/deployments/nowhere/web", "apps/deployments/prod/web", "apps/deployments/test/web"],
    );
    check_objects("apiGroup: ''", &["-/configmaps/prod/settings", "-/configmaps/test/settings", "-/namespaces/-/prod"]);
    check_objects("resources: [namespaces, pods]", &["-/namespaces/-/prod"]);
    check_objects("namespaces: [prod]", &["-/configmaps/prod/settings", "apps/deployments/prod/web"]);
    check_objects("objectNames: [settings]", &["-/configmaps/prod/settings", "-/configmaps/test/settings"]);
    check_objects("objectSelectors: [{matchLabels: {tier: front}}]", &["apps/deployments/prod/web"]);
    check_objects(
        "{objectNames: ['*'], resources: ['*'], namespaces: [test]}",
        &["-/configmaps/test/settings", "apps/deployments/test/web"],
    );
}

#[test]
fn all_criteria_must_hold_and_any_entry_of_each() {
    check_objects(
        "resources: [deployments, configmaps]\nnamespaces: [prod, nowhere]\nobjectNames: [web]",
        &["apps/deployments/nowhere/web", "apps/deployments/prod/web"],
    );
}

#[test]
fn namespace_selectors_look_at_the_namespace_as_it_is() {
    check_objects(
        "namespaceSelectors: [{matchLabels: {stage: prod}}]",
        &["-/configmaps/prod/settings", "apps/deployments/prod/web"],
    );
    check_objects(
        "resources: [configmaps, namespaces]\nnamespaceSelectors: [{}]",
        &["-/configmaps/prod/settings", "-/configmaps/test/settings", "-/namespaces/-/prod"],
    );
    check_objects("resources: [namespaces]\nnamespaceSelectors: [{matchLabels: {stage: prod}}]", &[]);
    check_objects("namespaces: [nowhere]\nnamespaceSelectors: [{}]", &[]);
}

#[test]
fn no_cluster_selector_selects_no_cluster_and_an_empty_one_all() {
    check_clusters("[]", &[]);
    check_clusters("[{}]", &["east", "north", "west"]);
    check_clusters("[{matchLabels: {region: west}}, {matchLabels: {edge: 'yes'}}]", &["east", "west"]);
    check_clusters("[{matchLabels: {region: east, edge: 'no'}}]", &[]);
}

#[test]
fn clauses_that_select_the_same_object_ask_together() {
    let mut space = space();
    space.set_policy(
        "p",
        spec(
            "downsync:
- {objectNames: [settings], createOnly: true, statusCollectors: [b, a]}
- {namespaces: [prod], wantSingletonReportedState: true, statusCollectors: [b, c]}
- {namespaces: [prod], wantMultiWECReportedState: true}",
        ),
    );
    let answer = space.answer("p").expect("the policy");
    let modulation = &answer.objects[&id("-/configmaps/prod/settings")];
    assert!(
        modulation.create_only && modulation.want_singleton_reported_state && modulation.want_multi_wec_reported_state
    );
    assert_eq!(modulation.status_collectors, ["a", "b", "c"]);
    assert!(!answer.objects[&id("apps/deployments/prod/web")].create_only);
}

#[test]
fn a_relabelled_namespace_brings_and_takes_its_members() {
    let mut space = space();
    space.set_policy("staged", spec("downsync: [{namespaceSelectors: [{matchLabels: {stage: prod}}]}]"));
    space.set_policy("named", spec("downsync: [{namespaces: [test]}]"));
    let touched = space.set_namespace("test", labels("stage=prod"));
    assert_eq!(touched.keys().map(|name| &**name).collect::<Vec<_>>(), ["staged"]);
    assert_eq!(shown(&space, "staged").0.len(), 4);
    assert!(space.set_namespace("test", labels("stage=prod")).is_empty(), "nothing changed");
    space.remove_namespace("prod");
    assert_eq!(shown(&space, "staged").0, ["-/configmaps/test/settings", "apps/deployments/test/web"]);
}

#[test]
fn an_object_read_in_another_version_touches_its_policies() {
    let mut space = space();
    space.set_policy("p", spec("downsync: [{resources: [deployments]}]"));
    space.set_policy("other", spec("downsync: [{resources: [configmaps]}]"));
    let web = id("apps/deployments/prod/web");
    let changed = ObjectFacts { version: "v2".into(), ..facts("app=web,tier=front") };
    assert_eq!(space.set_object(web.clone(), changed.clone()).len(), 1);
    assert!(space.set_object(web, changed).is_empty());
}

#[test]
fn the_names_of_parts_fit_in_a_name_and_tell_policies_apart() {
    assert_eq!([parts::name("big", 1), parts::name("big", 3)], ["big", "big--3"]);
    for length in [248, 249, 250, 251, 252, 253] {
        let (one, other) = (format!("{}a", "x".repeat(length - 1)), format!("{}b", "x".repeat(length - 1)));
        assert_eq!(parts::name(&one, 1), one);
        for part in [2, 10, 1000, u32::MAX] {
            let name = parts::name(&one, part);
            assert!(name.len() <= 253 && name.ends_with(&format!("--{part}")), "{name}");
            assert_ne!(name, parts::name(&other, part));
        }
    }
    // What is left of a name that is cut ends as a name may.
    let dotted = format!("{}{}", "x".repeat(200), ".-".repeat(26));
    let name = parts::name(&dotted, 2);
    assert!(name.len() <= 253 && !name.contains(".-") && !name.contains("-."), "{name}");
}

#[derive(Clone, Debug)]
enum Change {
    Policy(usize, usize),
    NoPolicy(usize),
    Object(usize, usize),
    NoObject(usize),
    Namespace(usize, usize),
    NoNamespace(usize),
    Cluster(usize, usize),
    NoCluster(usize),
}

const OBJECTS: [&str; 6] =
    ["-/pods/a/x", "-/pods/b/x", "-/pods/b/y", "-/namespaces/-/a", "apps/deployments/a/x", "x.io/things/-/t"];
const NAMESPACES: [&str; 2] = ["a", "b"];
const CLUSTERS: [&str; 3] = ["c1", "c2", "c3"];
const LABELS: [&str; 4] = ["", "k=1", "k=2", "k=1,l=1"];
const SPECS: [&str; 6] = [
    "{downsync: [{}], clusterSelectors: [{}]}",
    "{downsync: [{resources: [pods], objectSelectors: [{matchLabels: {k: '1'}}]}], clusterSelectors: [{matchLabels: {k: '1'}}]}",
    "{downsync: [{namespaceSelectors: [{matchLabels: {k: '1'}}]}, {objectNames: [x], createOnly: true}]}",
    "{downsync: [{apiGroup: apps}, {namespaces: [b], wantSingletonReportedState: true}], clusterSelectors: [{matchExpressions: [{key: l, operator: DoesNotExist}]}]}",
    "{downsync: [{namespaceSelectors: [{}]}]}",
    "{}",
];

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        (0..3_usize, 0..SPECS.len()).prop_map(|(name, spec)| Change::Policy(name, spec)),
        (0..3_usize).prop_map(Change::NoPolicy),
        (0..OBJECTS.len(), 0..LABELS.len()).prop_map(|(object, labels)| Change::Object(object, labels)),
        (0..OBJECTS.len()).prop_map(Change::NoObject),
        (0..NAMESPACES.len(), 0..LABELS.len()).prop_map(|(namespace, labels)| Change::Namespace(namespace, labels)),
        (0..NAMESPACES.len()).prop_map(Change::NoNamespace),
        (0..CLUSTERS.len(), 0..LABELS.len()).prop_map(|(cluster, labels)| Change::Cluster(cluster, labels)),
        (0..CLUSTERS.len()).prop_map(Change::NoCluster),
    ];
    prop::collection::vec(change, 0..60)
}

/// What is known after some changes, to tell a fresh start.
#[derive(Default)]
struct Known {
    policies: BTreeMap<usize, usize>,
    objects: BTreeMap<usize, usize>,
    namespaces: BTreeMap<usize, usize>,
    clusters: BTreeMap<usize, usize>,
}

impl Known {
    fn note(&mut self, change: &Change) {
        match *change {
            Change::Policy(name, spec) => drop(self.policies.insert(name, spec)),
            Change::NoPolicy(name) => drop(self.policies.remove(&name)),
            Change::Object(object, labels) => drop(self.objects.insert(object, labels)),
            Change::NoObject(object) => drop(self.objects.remove(&object)),
            Change::Namespace(namespace, labels) => drop(self.namespaces.insert(namespace, labels)),
            Change::NoNamespace(namespace) => drop(self.namespaces.remove(&namespace)),
            Change::Cluster(cluster, labels) => drop(self.clusters.insert(cluster, labels)),
            Change::NoCluster(cluster) => drop(self.clusters.remove(&cluster)),
        }
    }

    fn fresh(&self) -> Resolution {
        let mut space = Resolution::default();
        let all = (self.clusters.iter().map(|(c, l)| Change::Cluster(*c, *l)))
            .chain(self.objects.iter().map(|(o, l)| Change::Object(*o, *l)))
            .chain(self.namespaces.iter().map(|(n, l)| Change::Namespace(*n, *l)))
            .chain(self.policies.iter().map(|(p, s)| Change::Policy(*p, *s)));
        all.for_each(|change| drop(apply(&mut space, &change)));
        space
    }
}

fn apply(space: &mut Resolution, change: &Change) -> Vec<String> {
    let touched = match *change {
        Change::Policy(name, text) => {
            let name = format!("p{name}");
            return if space.set_policy(&name, spec(SPECS[text])) { vec![name] } else { Vec::new() };
        }
        Change::NoPolicy(name) => {
            let name = format!("p{name}");
            return if space.remove_policy(&name) { vec![name] } else { Vec::new() };
        }
        Change::Object(object, text) => space.set_object(id(OBJECTS[object]), facts(LABELS[text])),
        Change::NoObject(object) => space.remove_object(&id(OBJECTS[object])),
        Change::Namespace(namespace, text) => space.set_namespace(NAMESPACES[namespace], labels(LABELS[text])),
        Change::NoNamespace(namespace) => space.remove_namespace(NAMESPACES[namespace]),
        Change::Cluster(cluster, text) => space.set_cluster(CLUSTERS[cluster], labels(LABELS[text])),
        Change::NoCluster(cluster) => space.remove_cluster(CLUSTERS[cluster]),
    };
    touched.keys().map(ToString::to_string).collect()
}

fn bindings(space: &Resolution) -> BTreeMap<String, String> {
    let answers = (0..3).filter_map(|name| {
        let name = format!("p{name}");
        let answer = space.answer(&name)?;
        let spec = parts::spec(space, answer.objects, answer.destinations);
        Some((name, serde_json::to_string(&spec).expect("JSON")))
    });
    answers.collect()
}

proptest! {
    #[test]
    fn one_change_at_a_time_leads_where_a_fresh_start_would(changes in changes()) {
        let mut space = Resolution::default();
        let mut known = Known::default();
        let mut before = bindings(&space);
        for change in &changes {
            let touched = apply(&mut space, change);
            known.note(change);
            let now = bindings(&space);
            let names = before.keys().chain(now.keys()).filter(|name| before.get(*name) != now.get(*name));
            let mut changed: Vec<_> = names.cloned().collect();
            changed.sort();
            changed.dedup();
            prop_assert_eq!(&touched, &changed, "{:?} touches what it changes", change);
            before = now;
        }
        prop_assert_eq!(before, bindings(&known.fresh()));
    }
}
