//! Whatever is done to a package, the functions bring it to rest: everything is served, nothing is left over.
//!
//! `KRM_SEQUENCES` sets how many random sequences are tried, `KRM_SEED` with which number they begin. A failure names its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    env, panic, thread,
};

use orrery_krm::{Context, Item, ResourceList, Status, Value, functions, process};

const PIPELINE: &[&str] = &["interface", "ipam", "vlan", "nad", "interface"];
const NAMES: &[&str] = &["n2", "n3", "n4", "n6", "n9"];

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Dialect {
    Seed,
    Nephio,
}

/// What a person wrote, without what functions made of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wish {
    instance: &'static str,
    cni: Option<&'static str>,
    attachment: Option<&'static str>,
    policy: Option<&'static str>,
}

impl Wish {
    fn random(random: &mut Random) -> Self {
        Self {
            instance: random.pick(&["vpc-a", "vpc-a", "vpc-b", "default"]),
            cni: random.pick(&[Some("macvlan"), Some("ipvlan"), Some("sriov"), None]),
            attachment: random.pick(&[Some("vlan"), Some("vlan"), Some("none"), None]),
            policy: random.pick(&[None, None, Some("dualstack"), Some("ipv6only"), Some("ipv4-only"), Some("none")]),
        }
    }

    fn write(self, interface: &mut Item) {
        interface.set(&["spec", "networkInstance", "name"], self.instance);
        for (key, value) in
            [("cniType", self.cni), ("attachmentType", self.attachment), ("ipFamilyPolicy", self.policy)]
        {
            match value {
                Some(value) => interface.set(&["spec", key], value),
                None => interface.remove(&["spec", key]),
            };
        }
    }

    /// How many claims of addresses, claims of VLANs and attachment definitions there must be.
    fn children(self, dialect: Dialect) -> (usize, usize, usize) {
        if self.instance == "default" {
            return (0, 0, 0);
        }
        let addresses = match self.policy {
            Some("dualstack") => 2,
            Some("none") => 0,
            _ => 1,
        };
        let tagged = self.cni.is_some() && self.attachment == Some("vlan");
        (addresses, usize::from(dialect == Dialect::Seed || tagged), usize::from(self.cni.is_some()))
    }
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Item {
    Item::new(
        &Value::object()
            .with("apiVersion", api_version)
            .with("kind", kind)
            .with("metadata", Value::object().with("name", name))
            .with("spec", spec),
    )
}

fn cluster(dialect: Dialect, name: &str) -> Item {
    match dialect {
        Dialect::Seed => object(
            "infra.nephio.org/v1alpha1",
            "ClusterContext",
            "cluster",
            Value::object()
                .with("siteCode", name)
                .with("region", "r1")
                .with("cniConfig", Value::object().with("masterInterface", "eth1")),
        ),
        Dialect::Nephio => object(
            "infra.nephio.org/v1alpha1",
            "WorkloadCluster",
            "cluster",
            Value::object()
                .with("clusterName", name)
                .with("cnis", Value::list(["macvlan", "ipvlan", "sriov"]))
                .with("masterInterface", "eth1"),
        ),
    }
}

/// A network and a loopback prefix of each family for every instance and cluster, and a VLAN index for each cluster.
fn pools() -> Vec<Item> {
    let mut pools = Vec::new();
    for (cluster_number, cluster) in ["c1", "c2"].into_iter().enumerate() {
        let labels = Value::object()
            .with("nephio.org/cluster-name", cluster)
            .with("nephio.org/site", cluster)
            .with("nephio.org/region", "r1");
        for (instance_number, instance) in ["vpc-a", "vpc-b"].into_iter().enumerate() {
            let subnet = 2 * cluster_number + instance_number;
            for (kind, prefix) in [
                ("network", format!("10.0.{subnet}.1/28")),
                ("network", format!("1000:{subnet}::1/64")),
                ("loopback", format!("172.16.{subnet}.0/28")),
                ("loopback", format!("2000:{subnet}::/64")),
            ] {
                let spec = Value::object()
                    .with("kind", kind)
                    .with("networkInstance", Value::object().with("name", instance))
                    .with("prefix", &prefix)
                    .with("labels", labels.clone());
                let name = format!("p{}", pools.len());
                pools.push(object("ipam.resource.nephio.org/v1alpha1", "IPPrefix", &name, spec));
            }
        }
        let spec = Value::object().with("labels", labels);
        pools.push(object("vlan.resource.nephio.org/v1alpha1", "VLANIndex", cluster, spec));
    }
    pools
}

struct World {
    random: Random,
    list: ResourceList,
    context: Context,
    wishes: BTreeMap<&'static str, Wish>,
    cluster: Option<(Dialect, &'static str)>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut items = vec![Item::new(
            &Value::object()
                .with("apiVersion", "kpt.dev/v1")
                .with("kind", "Kptfile")
                .with("metadata", Value::object().with("name", "package")),
        )];
        let mut context = Context { now: "2026-11-16T02:00:00Z".to_owned(), pools: Vec::new() };
        if random.below(2) == 0 {
            context.pools = pools();
        } else {
            items.extend(pools());
        }
        Self { random, list: ResourceList::new(items, None), context, wishes: BTreeMap::new(), cluster: None }
    }

    /// Adds, changes or removes an Interface or the cluster. Gives the Interface if only that was touched.
    fn disturb(&mut self) -> Option<&'static str> {
        match self.random.below(10) {
            0 => self.set_cluster(None),
            1 | 2 => {
                let dialect = self.random.pick(&[Dialect::Seed, Dialect::Nephio]);
                let cluster = (dialect, self.random.pick(&["c1", "c2"]));
                self.set_cluster(Some(cluster));
            }
            3 | 4 => {
                let name = self.random.pick(NAMES);
                self.list.items.retain(|item| item.kind() != "Interface" || item.name() != name);
                self.wishes.remove(name);
                return Some(name);
            }
            _ => {
                let name = self.random.pick(NAMES);
                let wish = Wish::random(&mut self.random);
                let existing =
                    self.list.items.iter_mut().find(|item| item.kind() == "Interface" && item.name() == name);
                match existing {
                    Some(interface) => wish.write(interface),
                    None => {
                        let mut interface = object("req.nephio.org/v1alpha1", "Interface", name, Value::object());
                        wish.write(&mut interface);
                        self.list.items.push(interface);
                    }
                }
                self.wishes.insert(name, wish);
                return Some(name);
            }
        }
        None
    }

    fn set_cluster(&mut self, wanted: Option<(Dialect, &'static str)>) {
        self.list.items.retain(|item| !matches!(item.kind(), "ClusterContext" | "WorkloadCluster"));
        self.list.items.extend(wanted.map(|(dialect, name)| cluster(dialect, name)));
        self.cluster = wanted;
    }

    fn run(&mut self, steps: &[&str]) {
        self.list.results = Default::default();
        for step in steps {
            functions::find(step).unwrap().run(&mut self.list, &self.context).unwrap();
        }
    }

    fn text(&self) -> String {
        ResourceList::new(self.list.items.clone(), None).into_text()
    }

    /// Names of claims that are there to stay, with what they hold, by Interface.
    fn holdings(&self) -> HashMap<String, BTreeSet<String>> {
        let mut holdings: HashMap<String, BTreeSet<String>> = HashMap::new();
        for claim in self.list.items.iter().filter(|item| is_claim(item) && !is_marked(item)) {
            let Some(status) = claim.value(&["status"]).filter(|status| *status != Value::object()) else { continue };
            let held = format!("{} {status:?}", claim.name());
            holdings.entry(owner(claim)).or_default().insert(held);
        }
        holdings
    }

    /// All is served, and nothing is there that nobody asked for.
    fn check(&self) {
        let (dialect, _) = self.cluster.expect("the cluster is there at the end");
        assert!(self.list.results.is_empty(), "{:?}", self.list.results);
        let conditions = self.list.conditions().unwrap();
        let untrue: Vec<_> = conditions.iter().filter(|condition| condition.status != Status::True).collect();
        assert!(untrue.is_empty(), "not true: {untrue:?}");

        let mut found: BTreeMap<String, (usize, usize, usize)> = BTreeMap::new();
        let mut addresses = BTreeSet::new();
        let mut vlans: HashMap<(String, String), String> = HashMap::new();
        for item in &self.list.items {
            assert!(!is_marked(item), "{} is marked", item.name());
            let counts = match item.kind() {
                "IPClaim" | "IPAllocation" | "VLANClaim" | "VLANAllocation" | "NetworkAttachmentDefinition" => {
                    found.entry(owner(item)).or_default()
                }
                _ => continue,
            };
            match item.kind() {
                "IPClaim" | "IPAllocation" => {
                    counts.0 += 1;
                    let instance = item.text(&["spec", "networkInstance", "name"]);
                    let instance = instance.or_else(|| item.text(&["spec", "networkInstanceRef", "name"])).unwrap();
                    let prefix = item.text(&["status", "prefix"]).expect("an address");
                    let address = prefix.split('/').next().unwrap();
                    assert!(addresses.insert((instance.to_owned(), address.to_owned())), "{address} is given twice");
                }
                "VLANClaim" | "VLANAllocation" => {
                    counts.1 += 1;
                    let index = item.text(&["spec", "vlanIndex", "name"]).unwrap_or("by selector").to_owned();
                    let id = item.text(&["status", "vlanID"]).expect("a VLAN").to_owned();
                    let holder = item.annotation("specializer.nephio.org/vlanClaimName").unwrap_or(item.name());
                    let earlier = vlans.entry((index, id)).or_insert_with(|| holder.to_owned());
                    assert_eq!(earlier, holder, "a VLAN is given to two");
                }
                _ => counts.2 += 1,
            }
        }
        let expected: BTreeMap<String, _> =
            self.wishes.iter().map(|(name, wish)| ((*name).to_owned(), wish.children(dialect))).collect();
        found.extend(
            self.wishes
                .keys()
                .filter(|name| !found.contains_key(**name))
                .map(|name| ((*name).to_owned(), (0, 0, 0)))
                .collect::<Vec<_>>(),
        );
        assert_eq!(found, expected, "claims of addresses, claims of VLANs and definitions");
        let objects: usize = expected.values().map(|(ip, vlan, nad)| 1 + ip + vlan + nad).sum();
        assert_eq!(conditions.iter().count(), objects, "one condition for each Interface and child");
    }
}

fn is_claim(item: &Item) -> bool {
    matches!(item.kind(), "IPClaim" | "IPAllocation" | "VLANClaim" | "VLANAllocation")
}

fn is_marked(item: &Item) -> bool {
    let marks = ["krm-fn.nephio.org/to-be-deleted", "specializer.nephio.org/delete"];
    item.get(&["metadata", "deletionTimestamp"]).is_some() || marks.iter().any(|mark| item.annotation(mark).is_some())
}

fn owner(item: &Item) -> String {
    let seed = item.annotation("krm-fn.nephio.org/owner").and_then(|owner| owner.rsplit('/').next());
    let nephio = item.annotation("specializer.nephio.org/owner").and_then(|owner| owner.rsplit('.').next());
    nephio.or(seed).unwrap_or_default().to_owned()
}

fn check_sequence(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..1 + world.random.below(5) {
        let before = world.holdings();
        let touched = world.disturb();
        match world.random.below(4) {
            0 => world.run(&["interface"]),
            1 => world.run(&["interface", "vlan", "interface", "nad", "ipam"]),
            _ => world.run(PIPELINE),
        }
        // An Interface that nobody touched keeps what it has.
        if let Some(touched) = touched.filter(|_| world.cluster.is_some()) {
            let after = world.holdings();
            for (name, held) in before.iter().filter(|(name, _)| *name != touched) {
                assert!(after.get(name).is_some_and(|now| held.is_subset(now)), "{name} lost {held:?}");
            }
        }
    }
    if world.cluster.is_none() || world.random.below(3) == 0 {
        let cluster = (world.random.pick(&[Dialect::Seed, Dialect::Nephio]), world.random.pick(&["c1", "c2"]));
        world.set_cluster(Some(cluster));
    }
    world.run(PIPELINE);
    world.check();
    let text = world.text();
    world.run(PIPELINE);
    assert_eq!(world.text(), text, "the pipeline once more");
    // Reading the text takes most of the time: one in sixteen is enough to see that nothing depends on how items came in.
    if seed.is_multiple_of(16) {
        for step in PIPELINE {
            let again = process(functions::find(step).unwrap(), text.as_bytes(), &world.context);
            assert_eq!((again.exit, again.stdout.as_str()), (0, text.as_str()), "{step} once more");
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn any_sequence_of_changes_comes_to_rest() {
    let first = number("KRM_SEED", 1);
    let sequences = number("KRM_SEQUENCES", 10_000);
    println!("{sequences} sequences from KRM_SEED={first}");
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get().min(4)) as u64;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                scope.spawn(move || {
                    for seed in (first + worker..first + sequences).step_by(threads as usize) {
                        if let Err(failure) = panic::catch_unwind(|| check_sequence(seed)) {
                            println!("failed with KRM_SEED={seed} KRM_SEQUENCES=1");
                            panic::resume_unwind(failure);
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("every sequence comes to rest");
        }
    });
}
