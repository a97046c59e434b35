//! The function that makes the NetworkAttachmentDefinitions that Interfaces ask for, once their claims are served.

mod config;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::{
    Conditions, Context, Function, FunctionError, Item, ResourceList, Value,
    functions::{
        cidr::Cidr,
        claims,
        dialect::{self, Dialect},
        interface::{
            cluster::Clusters,
            request::{Families, Request},
            verdict::{Plan, Verdict},
            wanted,
        },
        nad::config::Attachment,
        package::{Owner, Package, Resource},
        problem::Problem,
    },
    yaml::Node,
};

/// The annotation that says in which namespace a network function runs.
const NAMESPACE: &str = "specializer.nephio.org/namespace";
const KIND: &str = "NetworkAttachmentDefinition";

/// `orrery fn nad`
pub(crate) struct Nad;

impl Function for Nad {
    fn name(&self) -> &'static str {
        "nad"
    }

    fn about(&self) -> &'static str {
        "Makes the NetworkAttachmentDefinitions of Interfaces whose claims are served."
    }

    fn run(&self, list: &mut ResourceList, _: &Context) -> Result<(), FunctionError> {
        if list.items.is_empty() {
            list.results.info("the package is empty: there is nothing to attach");
            return Ok(());
        }
        let mut conditions = list.conditions()?;
        let package = Package::read(&list.items);
        let dialect = Dialect::choose(list, &package)?;
        let asked = asked(&list.items, &package, dialect, &conditions);
        let removed = release(&list.items, &package, dialect, &asked, &mut conditions);
        let mut generator = Generator::new(&list.items, &package, dialect, &removed);
        let mut edits = Vec::new();
        for order in asked {
            let interface = &list.items[order.interface];
            let earlier = conditions.get(&order.kind);
            match generator.generate(&order, &conditions) {
                Ok(Some(edit)) => {
                    if !conditions.is_true(&order.kind) {
                        let done = dialect.done(order.kind, earlier);
                        conditions.set(done);
                    }
                    edits.push(edit);
                }
                Ok(None) if conditions.is_true(&order.kind) => {
                    let waiting = Dialect::failed(order.kind, earlier, "waiting for claims");
                    conditions.set(waiting);
                }
                Ok(None) => {}
                Err(problem) => {
                    problem.report(interface, &mut list.results);
                    let failed = Dialect::failed(order.kind, earlier, &problem.message);
                    conditions.set(failed);
                }
            }
        }
        for edit in edits {
            edit.make(&mut list.items);
        }
        claims::remove(&mut list.items, &removed);
        list.store_conditions(conditions)
    }
}

/// An attachment definition that is asked for by a condition.
struct Order {
    interface: usize,
    name: String,
    /// The type of the condition.
    kind: String,
    problem: Option<Problem>,
}

/// What is asked for: the function interface sets a condition for each definition that is needed.
fn asked(items: &[Item], package: &Package, dialect: Dialect, conditions: &Conditions) -> Vec<Order> {
    let clusters = Clusters::read(items, package);
    let orders = package.interfaces.iter().filter_map(|&position| {
        let interface = &items[position];
        let verdict = Verdict::of(interface, items, package, &clusters, dialect);
        let name = match verdict.plan {
            Plan::Children { attachment, .. } => attachment?,
            Plan::LeaveAlone => wanted::name_for(interface),
        };
        let kind = package.attachment_condition(interface, &name, dialect);
        conditions.get(&kind)?;
        Some(Order { interface: position, name, kind, problem: verdict.problem })
    });
    orders.collect()
}

/// Lets go of definitions that are marked for deletion, and of their conditions if nobody asks for them again.
fn release(
    items: &[Item],
    package: &Package,
    dialect: Dialect,
    asked: &[Order],
    conditions: &mut Conditions,
) -> HashSet<usize> {
    let asked: HashSet<&str> = asked.iter().map(|order| order.kind.as_str()).collect();
    let marked = package.attachments.iter().copied().filter(|&position| dialect::is_marked(&items[position]));
    let removed: HashSet<usize> = marked.collect();
    for &position in &removed {
        let attachment = &items[position];
        let kind = match package.owner(items, attachment) {
            Owner::Interface(interface) => package.attachment_condition(&items[interface], attachment.name(), dialect),
            Owner::Gone | Owner::Other => {
                let owner = dialect::owner_name(attachment).unwrap_or_default();
                Package::orphaned_attachment_condition(attachment, owner, dialect)
            }
        };
        if !asked.contains(kind.as_str()) {
            conditions.remove(&kind);
        }
    }
    removed
}

/// A change to the package.
enum Edit {
    Add(Box<Item>),
    Change { position: usize, owner: (&'static str, String), namespace: Option<String>, config: String },
}

impl Edit {
    fn make(self, items: &mut Vec<Item>) {
        match self {
            Self::Add(item) => items.push(*item),
            Self::Change { position, owner: (key, owner), namespace, config } => {
                let attachment = &mut items[position];
                attachment.set_annotation(key, &owner);
                if let Some(namespace) = namespace {
                    attachment.set(&["metadata", "namespace"], namespace);
                }
                attachment.set(&["spec", "config"], config);
            }
        }
    }
}

/// Makes definitions out of what is in the package.
struct Generator<'a> {
    items: &'a [Item],
    package: &'a Package,
    dialect: Dialect,
    clusters: Clusters,
    /// Claims by the position of their Interface, without those that are to go.
    claims: HashMap<usize, Vec<&'a Item>>,
    /// Definitions by the position of their Interface.
    owned: HashMap<usize, usize>,
    /// Namespaces and names of definitions that are there or were made.
    names: HashSet<(Option<String>, String)>,
    /// Prefixes that can be reached, by network instance.
    routes: HashMap<&'a str, Vec<Cidr>>,
}

impl<'a> Generator<'a> {
    fn new(items: &'a [Item], package: &'a Package, dialect: Dialect, removed: &HashSet<usize>) -> Self {
        let mut claims: HashMap<usize, Vec<&Item>> = HashMap::new();
        for &position in package.claims.iter().filter(|&&position| !dialect::is_marked(&items[position])) {
            if let Owner::Interface(interface) = package.owner(items, &items[position]) {
                claims.entry(interface).or_default().push(&items[position]);
            }
        }
        let mut owned = HashMap::new();
        for &position in package.attachments.iter().filter(|position| !removed.contains(position)) {
            if let Owner::Interface(interface) = package.owner(items, &items[position]) {
                owned.entry(interface).or_insert(position);
            }
        }
        let definitions =
            items.iter().enumerate().filter(|(position, item)| item.kind() == KIND && !removed.contains(position));
        let names =
            definitions.map(|(_, item)| (item.namespace().map(str::to_owned), item.name().to_owned())).collect();
        let clusters = Clusters::read(items, package);
        Self { items, package, dialect, clusters, claims, owned, names, routes: routes(items) }
    }

    /// The definition of an Interface, or nothing as long as its claims are not served.
    fn generate(&mut self, order: &Order, conditions: &Conditions) -> Result<Option<Edit>, Problem> {
        if let Some(problem) = &order.problem {
            return Err(problem.clone());
        }
        let interface = &self.items[order.interface];
        let claims = self.claims.get(&order.interface).map_or(&[][..], Vec::as_slice);
        if !claims.iter().all(|claim| conditions.is_true(&self.package.claim_condition(claim))) {
            return Ok(None);
        }
        let request = Request::read(interface)?;
        let Some(config) = self.config(interface, &request, claims)? else { return Ok(None) };
        let owner = self.dialect.owner_annotation(interface);
        let namespace = interface.annotation(NAMESPACE).or(interface.namespace()).map(str::to_owned);
        let identity = (namespace.clone(), order.name.clone());
        if let Some(&position) = self.owned.get(&order.interface) {
            return Ok(Some(Edit::Change { position, owner, namespace, config }));
        }
        if !self.names.insert(identity) {
            let name = &order.name;
            return Err(Problem::new(format!(
                "there is a {KIND} {name} already that belongs to something else: rename one"
            )));
        }
        let metadata = Value::object()
            .with("name", &order.name)
            .with_some("namespace", namespace)
            .with("annotations", Value::object().with(owner.0, owner.1));
        let attachment = Value::object()
            .with("apiVersion", "k8s.cni.cncf.io/v1")
            .with("kind", KIND)
            .with("metadata", metadata)
            .with("spec", Value::object().with("config", config));
        Ok(Some(Edit::Add(Box::new(Item::new(&attachment)))))
    }

    /// The configuration, or nothing as long as a claim has no value although it is said to be served.
    fn config(&self, interface: &Item, request: &Request, claims: &[&Item]) -> Result<Option<String>, Problem> {
        let of = |resource| claims.iter().copied().filter(move |claim| Resource::of(claim) == Some(resource));
        let addresses: Vec<&Item> = of(Resource::Address).collect();
        let vlan_claim = of(Resource::Vlan).next();
        let is_layer_2 = request.families == Families::None;
        match (addresses.is_empty(), vlan_claim) {
            (true, None) if !is_layer_2 => {
                return Err(Problem::new("expected one of IPClaim or VLANClaim objects to generate the nad"));
            }
            // The plugin then takes the configuration of this name that the node has.
            (true, Some(_)) if !is_layer_2 => return Ok(Some(String::new())),
            _ => {}
        }
        let Some(cni) = request.cni else { return Ok(None) };
        let Some(addresses) = addresses.into_iter().map(address).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let vlan = vlan_claim.and_then(|claim| u16::try_from(claims::number(claim, &["status", "vlanID"])?.ok()?).ok());
        if vlan.is_none() && (request.tagged || vlan_claim.is_some()) {
            return Ok(None);
        }
        let attachment = Attachment {
            cni,
            master: self.clusters.of(interface).as_ref().ok().and_then(|cluster| cluster.master()),
            vlan,
            tagged: request.tagged,
            routes: self.routes_of(&request.instance_name, &addresses),
            addresses: addresses.into_iter().map(|(cidr, gateway)| (cidr.to_string(), gateway)).collect(),
        };
        attachment.config().map(Some)
    }

    fn routes_of(&self, instance: &str, addresses: &[(Cidr, Option<String>)]) -> BTreeSet<(String, Option<String>)> {
        let destinations = self.routes.get(instance).into_iter().flatten();
        let routes = destinations.flat_map(|destination| {
            let same_family = addresses.iter().filter(|(address, _)| address.family == destination.family);
            same_family.map(|(_, gateway)| (destination.to_string(), gateway.clone()))
        });
        routes.collect()
    }
}

/// What a claim of an address got.
fn address(claim: &Item) -> Option<(Cidr, Option<String>)> {
    let cidr = claim.text(&["status", "prefix"])?.parse().ok()?;
    let gateway = claim.text(&["status", "gateway"]).filter(|gateway| !gateway.is_empty());
    Some((cidr, gateway.map(str::to_owned)))
}

/// The prefixes in the routing tables of all Networks, by the name of the table.
fn routes(items: &[Item]) -> HashMap<&str, Vec<Cidr>> {
    let mut routes: HashMap<&str, Vec<Cidr>> = HashMap::new();
    for network in items.iter().filter(|item| item.is("infra.nephio.org", "Network")) {
        for table in network.get(&["spec", "routingTables"]).into_iter().flat_map(Node::elements) {
            let Some(name) = table.text(&["name"]) else { continue };
            let prefixes = table.get("prefixes").into_iter().flat_map(Node::elements);
            let prefixes =
                prefixes.filter_map(|prefix| prefix.text(&["prefix"]).or(prefix.as_str())?.parse::<Cidr>().ok());
            routes.entry(name).or_default().extend(prefixes);
        }
    }
    routes
}
