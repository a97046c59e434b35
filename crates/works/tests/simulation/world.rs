//! A run: the nodes, the network between them and the faults, all decided by one seed.

mod effects;
mod network;
mod nodes;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use orrery_works::{
    Bundle, ClusterName, Codec, Dialect, Entropy, Packet, ResourceId, SourceId,
    agent::{self, Agent, Memory},
    source::{self, Desired, Source},
};

use self::nodes::{AgentNode, SourceDisk, SourceNode};
use crate::script::{DEEDS_END, Deed, Outcome, Script, WorkName};

/// Faults stop here; everything must settle afterwards.
const FAULTS_END: u64 = 110_000;
/// No message is on its way for longer.
const LONGEST_DELAY: u64 = 20_000;
/// After the faults, both ends have this long to agree.
const DEADLINE: u64 = FAULTS_END + 600_000;
/// Agreement must last this long, so that nothing late undoes it.
const STABLE: u64 = 100_000;
/// How often the two ends are compared; ticks fall on whole seconds.
const LOOK_EVERY: u64 = 5_000;
const RESYNC_EVERY: Duration = Duration::from_secs(40);

/// How bad a run is. Chances are per thousand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    lose: u64,
    repeat: u64,
    delay: u64,
    /// Before any single effect.
    crash: u64,
    /// Per node and second.
    disconnect: u64,
    /// Per second.
    broker_restart: u64,
    /// Clocks are wrong by up to this many milliseconds, and differently after each restart.
    skew: u64,
    /// How the stores of sources fare.
    pub(crate) store: StoreFault,
}

/// What happens to a source's store once in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreFault {
    None,
    /// It is made anew, empty.
    Recreated,
    /// It is restored from a copy that is a while old.
    Restored,
}

impl Faults {
    pub(crate) fn none() -> Self {
        Self {
            lose: 0,
            repeat: 0,
            delay: 0,
            crash: 0,
            disconnect: 0,
            broker_restart: 0,
            skew: 0,
            store: StoreFault::None,
        }
    }

    /// Each seed has its own weather: some faults are absent, some are heavy.
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = Entropy::seeded(seed ^ 0x0fa0_1700);
        let mut upto = |most| if random.below(4) == 0 { 0 } else { random.below(most) };
        Self {
            lose: upto(400),
            repeat: upto(300),
            delay: upto(300),
            crash: upto(30),
            disconnect: upto(40),
            broker_restart: upto(30),
            skew: upto(60_000),
            store: match seed % 10 {
                8 => StoreFault::Recreated,
                9 => StoreFault::Restored,
                _ => StoreFault::None,
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Source(usize),
    Agent(usize),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Deed(usize),
    Deliver(Node, usize),
    Tick,
    Start(Node),
    Connect(Node),
    Applied { agent: usize, life: u64, work: WorkName, version: i64, content: u64 },
    Removed { agent: usize, life: u64, work: WorkName },
    StoreFault(usize),
}

pub(crate) struct World<'s> {
    script: &'s Script,
    faults: Faults,
    random: Entropy,
    trace: bool,
    now: u64,
    order: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    packets: Vec<Packet>,
    codecs: [Codec; 2],
    sources: Vec<SourceNode>,
    agents: Vec<AgentNode>,
    wanted: BTreeMap<WorkName, u64>,
    ever_deleted: HashSet<WorkName>,
    delivered: u64,
}

impl<'s> World<'s> {
    pub(crate) fn new(seed: u64, script: &'s Script, faults: Faults, trace: bool) -> Self {
        let codecs = [Codec::of(Dialect::Seed), Codec::of(Dialect::Ocm)];
        let source = |index| {
            let id = SourceId::new(format!("hub{index}")).unwrap();
            SourceNode {
                filters: codecs.iter().flat_map(|codec| codec.topics().source_filters(&id, None)).collect(),
                id,
                machine: None,
                connected: false,
                disk: SourceDisk::default(),
                backup: SourceDisk::default(),
                skew: 0,
                sent: HashMap::new(),
            }
        };
        let agent = |(index, dialect): (usize, &Dialect)| {
            let cluster = ClusterName::new(format!("cluster{index}")).unwrap();
            let codec = Codec::of(*dialect);
            AgentNode {
                filters: codec.topics().agent_filters(&cluster),
                cluster,
                codec,
                machine: None,
                connected: false,
                disk: Memory::default(),
                skew: 0,
                life: 0,
                truth: BTreeMap::new(),
                changes: 0,
                asked: HashMap::new(),
                highest: HashMap::new(),
            }
        };
        let mut world = Self {
            script,
            faults,
            random: Entropy::seeded(seed),
            trace,
            now: 0,
            order: 0,
            queue: BinaryHeap::new(),
            packets: Vec::new(),
            sources: (0..script.sources).map(source).collect(),
            agents: script.agents.iter().enumerate().map(agent).collect(),
            codecs,
            wanted: BTreeMap::new(),
            ever_deleted: HashSet::new(),
            delivered: 0,
        };
        world.schedule_start();
        world
    }

    fn schedule_start(&mut self) {
        for (index, (time, _)) in self.script.deeds.iter().enumerate() {
            self.at(*time, Event::Deed(index));
        }
        for node in self.nodes() {
            let delay = self.random.below(5_000);
            self.at(delay, Event::Start(node));
        }
        if self.faults.store != StoreFault::None {
            let source = self.random.below(self.sources.len() as u64) as usize;
            let time = DEEDS_END / 3 + self.random.below(DEEDS_END / 2);
            self.at(time, Event::StoreFault(source));
        }
        self.at(1_000, Event::Tick);
    }

    fn nodes(&self) -> Vec<Node> {
        (0..self.sources.len()).map(Node::Source).chain((0..self.agents.len()).map(Node::Agent)).collect()
    }

    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.queue.push(Reverse((time, self.order, event)));
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    fn stormy(&self) -> bool {
        self.now < FAULTS_END
    }

    fn chance(&mut self, per_thousand: u64) -> bool {
        self.stormy() && self.random.below(1_000) < per_thousand
    }

    pub(crate) fn run_counting(mut self) -> (Outcome, u64) {
        let outcome = self.play();
        (outcome, self.delivered)
    }

    pub(crate) fn run(mut self) -> Outcome {
        self.play()
    }

    /// Runs until both ends have agreed for a while, or until it is too late.
    fn play(&mut self) -> Outcome {
        let want = self.script.outcome();
        let mut agreed_since = None;
        while let Some(Reverse((time, _, event))) = self.queue.pop() {
            self.now = time;
            let ticked = event == Event::Tick;
            self.happen(event);
            if ticked && self.now > FAULTS_END + LONGEST_DELAY && self.now.is_multiple_of(LOOK_EVERY) {
                self.agree_to_deletions();
                let outcome = self.outcome();
                if outcome != want {
                    agreed_since = None;
                } else if self.now > *agreed_since.get_or_insert(self.now) + STABLE {
                    return outcome;
                }
            }
            if self.now > DEADLINE {
                break;
            }
        }
        self.outcome()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deed(index) => self.deed(self.script.deeds[index].1),
            Event::Deliver(node, packet) => self.deliver(node, packet),
            Event::Tick => self.tick(),
            Event::Start(node) => self.start(node),
            Event::Connect(node) => self.connect(node),
            Event::Applied { agent, life, work, version, content } => self.applied(agent, life, work, version, content),
            Event::Removed { agent, life, work } => self.removed(agent, life, work),
            Event::StoreFault(source) => self.store_fault(source),
        }
    }

    // Time.

    fn clock(&self, node: Node) -> Timestamp {
        let skew = match node {
            Node::Source(index) => self.sources[index].skew,
            Node::Agent(index) => self.agents[index].skew,
        };
        let start: Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
        start + SignedDuration::from_millis(self.now as i64 + skew)
    }

    fn tick(&mut self) {
        self.after(1_000, Event::Tick);
        if self.chance(self.faults.broker_restart) {
            self.say(|| "broker restarts".to_owned());
            self.queue.retain(|Reverse((_, _, event))| !matches!(event, Event::Deliver(..)));
            for node in self.nodes() {
                self.disconnect(node);
            }
        }
        for node in self.nodes() {
            if self.chance(self.faults.disconnect) {
                self.disconnect(node);
            }
            let now = self.clock(node);
            match node {
                Node::Source(index) => {
                    let effects = self.sources[index].machine.as_mut().map(|machine| machine.tick(now));
                    self.enact_source(index, effects.unwrap_or_default());
                }
                Node::Agent(index) => {
                    let effects = self.agents[index].machine.as_mut().map(|machine| machine.tick(now));
                    self.enact_agent(index, effects.unwrap_or_default());
                }
            }
        }
    }

    // Lives of nodes.

    fn start(&mut self, node: Node) {
        let skew = match self.faults.skew {
            0 => 0,
            most => self.random.below(2 * most) as i64 - most as i64,
        };
        let entropy = Entropy::seeded(self.random.next_u64());
        self.say(|| format!("{node:?} starts, skew {skew}"));
        match node {
            Node::Source(index) => {
                self.sources[index].skew = skew;
                let now = self.clock(node);
                let source = &mut self.sources[index];
                let config = source::Config {
                    resync_every: RESYNC_EVERY,
                    republish_after: Duration::from_secs(5),
                    republish_at_most: Duration::from_secs(60),
                    page_bytes: 400,
                    ..source::Config::new(source.id.clone())
                };
                let (machine, effects) = Source::new(config, source.disk.ledger.clone(), now, entropy);
                source.machine = Some(machine);
                self.enact_source(index, effects);
                self.load(index);
            }
            Node::Agent(index) => {
                self.agents[index].skew = skew;
                let now = self.clock(node);
                let agent = &mut self.agents[index];
                agent.life += 1;
                let config = agent::Config {
                    resync_every: RESYNC_EVERY,
                    answer_within: Duration::from_secs(5),
                    page_bytes: 400,
                    ..agent::Config::new(agent.cluster.clone())
                };
                let (machine, effects) = Agent::new(config, agent.disk.clone(), now, entropy);
                agent.machine = Some(machine);
                self.enact_agent(index, effects);
            }
        }
        let delay = self.random.below(3_000);
        self.after(delay, Event::Connect(node));
    }

    /// After a start, everything wanted is put again.
    fn load(&mut self, index: usize) {
        let wanted: Vec<_> = self
            .wanted
            .iter()
            .filter(|((source, _), _)| *source == index)
            .map(|(work, content)| (*work, *content))
            .collect();
        for (work, content) in wanted {
            self.put(work, content);
        }
        let now = self.clock(Node::Source(index));
        let effects = self.sources[index].machine.as_mut().map(|machine| machine.ready(now));
        self.enact_source(index, effects.unwrap_or_default());
    }

    fn crash(&mut self, node: Node) {
        self.say(|| format!("{node:?} crashes"));
        match node {
            Node::Source(index) => {
                self.sources[index].machine = None;
                self.sources[index].connected = false;
            }
            Node::Agent(index) => {
                self.agents[index].machine = None;
                self.agents[index].connected = false;
            }
        }
        let delay = 100 + self.random.below(15_000);
        self.after(delay, Event::Start(node));
    }

    fn disconnect(&mut self, node: Node) {
        match node {
            Node::Source(index) => self.sources[index].connected = false,
            Node::Agent(index) => {
                self.agents[index].connected = false;
                if let Some(machine) = &mut self.agents[index].machine {
                    machine.disconnected();
                }
            }
        }
        let delay = 100 + self.random.below(15_000);
        self.after(delay, Event::Connect(node));
    }

    fn connect(&mut self, node: Node) {
        let now = self.clock(node);
        match node {
            Node::Source(index) => {
                let source = &mut self.sources[index];
                let Some(machine) = &mut source.machine else { return };
                source.connected = true;
                let effects = machine.connected(now);
                self.enact_source(index, effects);
            }
            Node::Agent(index) => {
                let agent = &mut self.agents[index];
                let Some(machine) = &mut agent.machine else { return };
                agent.connected = true;
                let effects = machine.connected(now);
                self.enact_agent(index, effects);
            }
        }
    }

    /// The store of a source is lost or set back while the source is down.
    fn store_fault(&mut self, index: usize) {
        self.say(|| format!("store of source {index}: {:?}", self.faults.store));
        let source = &mut self.sources[index];
        source.disk = match self.faults.store {
            StoreFault::Recreated => SourceDisk::default(),
            _ => source.backup.copy(),
        };
        source.disk.ledger.epoch = None;
        source.sent.clear();
        if source.machine.is_some() {
            self.crash(Node::Source(index));
        }
    }

    /// A person agrees to every deletion that waits, once the storm is over.
    fn agree_to_deletions(&mut self) {
        for index in 0..self.agents.len() {
            let now = self.clock(Node::Agent(index));
            for source in 0..self.sources.len() {
                let id = self.sources[source].id.clone();
                let effects = self.agents[index].machine.as_mut().map(|machine| machine.agree(&id, now));
                self.enact_agent(index, effects.unwrap_or_default());
            }
        }
    }

    // Deeds.

    fn deed(&mut self, deed: Deed) {
        self.say(|| format!("{deed:?}"));
        if self.random.below(3) == 0 {
            for source in &mut self.sources {
                source.backup = source.disk.copy();
            }
        }
        match deed {
            Deed::Put(work, content) => {
                self.wanted.insert(work, content);
                self.put(work, content);
            }
            Deed::Delete(work) => {
                self.wanted.remove(&work);
                self.ever_deleted.insert(work);
                let now = self.clock(Node::Source(work.0));
                let id = resource_id(work);
                let effects = self.sources[work.0].machine.as_mut().map(|machine| machine.delete(&id, now));
                self.enact_source(work.0, effects.unwrap_or_default());
            }
            Deed::Change(index) => {
                self.agents[index].changes += 1;
                self.report_all(index);
            }
        }
    }

    fn put(&mut self, work: WorkName, content: u64) {
        let now = self.clock(Node::Source(work.0));
        let cluster = self.agents[self.script.homes[work.0][work.1]].cluster.clone();
        let desired =
            Desired { id: resource_id(work), cluster, name: Arc::from("work"), bundle: bundle(content).into() };
        let effects = self.sources[work.0].machine.as_mut().map(|machine| machine.put(desired, now).unwrap());
        self.enact_source(work.0, effects.unwrap_or_default());
    }

    fn outcome(&self) -> Outcome {
        let truths = self.agents.iter().enumerate();
        let unfinished = self.sources.iter().flat_map(|source| &source.disk.ledger.works);
        Outcome {
            clusters: truths
                .flat_map(|(index, agent)| {
                    agent.truth.iter().map(move |(work, (_, content))| ((index, *work), *content))
                })
                .collect(),
            statuses: self.sources.iter().flat_map(|source| source.disk.statuses.clone()).collect(),
            unfinished: unfinished.filter(|work| work.deleting.is_some()).map(|work| work_name(&work.id)).collect(),
        }
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>8} {}", self.now, what());
        }
    }
}

fn resource_id(work: WorkName) -> ResourceId {
    ResourceId::new(format!("work-{}-{}", work.0, work.1)).unwrap()
}

fn work_name(id: &ResourceId) -> WorkName {
    let mut numbers = id.as_str().split('-').skip(1).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

fn bundle(content: u64) -> Arc<Bundle> {
    let manifests = serde_json::from_str(&format!(r#"[{{"metadata":{{"name":"a"}},"data":{content}}}]"#)).unwrap();
    Arc::new(Bundle { manifests, ..Bundle::default() })
}

fn content_of(bundle: &Bundle) -> u64 {
    bundle.manifests[0].to_value().unwrap()["data"].as_u64().unwrap()
}
