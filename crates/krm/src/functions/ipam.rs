//! The function that gives addresses and prefixes to claims, out of prefixes in the package and in shared pools.
//!
//! Order decides who gets what: first what others hold, then claims that keep what they have, then claims of a certain
//! address, and last those that take any. Prefixes that are claimed come before addresses, which may lie in them.

mod claim;
mod table;

use std::collections::HashMap;

use crate::{
    Context, Function, FunctionError, Item, ResourceList, Results, Value,
    functions::{
        cidr::Cidr,
        claims::{self, Allocator, Demand, Grant, Identity, Turn},
        ipam::{
            claim::{Claim, PrefixKind, Want},
            table::{Prefix, Table},
        },
        package::Resource,
        problem::Problem,
        selector::spec_labels,
    },
    yaml::Node,
};

const GATEWAY: &str = "nephio.org/gateway";

/// `orrery fn ipam`
pub(crate) struct Ipam;

impl Function for Ipam {
    fn name(&self) -> &'static str {
        "ipam"
    }

    fn about(&self) -> &'static str {
        "Gives addresses and prefixes to IPClaims and IPAllocations, and releases those marked for deletion."
    }

    fn run(&self, list: &mut ResourceList, context: &Context) -> Result<(), FunctionError> {
        claims::serve::<Self>(list, context)
    }
}

impl Allocator for Ipam {
    const RESOURCE: Resource = Resource::Address;
    const FIELDS: &'static [&'static str] = &["prefix", "gateway"];

    fn allocate(demand: &Demand<'_>, results: &mut Results) -> Vec<Result<Grant, Problem>> {
        let Demand { items, claims, pools } = *demand;
        let mut allocation = Allocation::new(items, pools, results);
        allocation.hold_shared(items, pools);
        let mut requests: Vec<Request> = claims.iter().map(|&position| allocation.request(&items[position])).collect();
        for blocks in [true, false] {
            for turn in Turn::ORDER {
                let due = |request: &&mut Request| {
                    request.outcome.is_none() && request.claim.as_ref().is_ok_and(|claim| claim.is_block() == blocks)
                };
                for request in requests.iter_mut().filter(due) {
                    allocation.serve(request, turn);
                }
            }
        }
        requests.into_iter().map(|request| allocation.grant(request)).collect()
    }
}

/// A claim of the package on its way.
struct Request {
    claim: Result<Claim, Problem>,
    holder: String,
    /// What the claim has already, here or in a pool.
    has: Option<Cidr>,
    outcome: Option<Result<Granted, Problem>>,
}

/// What a claim gets, and from which prefix if that is known.
#[derive(Clone, Copy)]
struct Granted {
    cidr: Cidr,
    place: Option<usize>,
}

struct Allocation {
    /// By network instance.
    tables: HashMap<String, Table>,
    /// What claims in pools hold that are claims of this package too.
    remembered: HashMap<Identity, Cidr>,
}

impl Allocation {
    /// Reads all prefixes. One that does not fit to the others is reported and left out.
    fn new(items: &[Item], pools: &[Item], results: &mut Results) -> Self {
        let mut tables: HashMap<String, Table> = HashMap::new();
        let mut prefixes = Vec::new();
        for item in claims::pool_objects(items, pools, is_pool) {
            match read_prefixes(item) {
                Ok(read) => prefixes.extend(read.into_iter().map(|(instance, prefix)| (item, instance, prefix))),
                Err(problem) => problem.report(item, results),
            }
        }
        prefixes.sort_by_key(|(_, _, prefix)| prefix.cidr.length);
        for (item, instance, prefix) in prefixes {
            if let Err(problem) = tables.entry(instance).or_default().add(prefix) {
                problem.report(item, results);
            }
        }
        Self { tables, remembered: HashMap::new() }
    }

    /// Takes what claims in the pools hold, but for those that are in the package too.
    fn hold_shared(&mut self, items: &[Item], pools: &[Item]) {
        let is_claim = |item: &&Item| Resource::of(item) == Some(Resource::Address);
        let here: HashMap<Identity, &Item> =
            items.iter().filter(is_claim).map(|item| (Identity::of(item), item)).collect();
        let mut shared: Vec<(Claim, Cidr, &Item)> = Vec::new();
        for item in pools.iter().filter(is_claim) {
            let (Ok(claim), Some(held)) = (Claim::read(item), held(item)) else { continue };
            let identity = Identity::of(item);
            let same_instance = |other: &&Item| claim::network_instance(other).as_ref() == Some(&claim.instance);
            if here.get(&identity).is_some_and(same_instance) {
                self.remembered.insert(identity, held);
            } else {
                shared.push((claim, held, item));
            }
        }
        shared.sort_by_key(|(claim, held, _)| (!claim.is_block(), held.length));
        for (claim, held, item) in shared {
            self.take(&claim, held, claims::describe(item));
        }
    }

    fn request(&self, item: &Item) -> Request {
        let claim = Claim::read(item);
        let has = held(item).or_else(|| self.remembered.get(&Identity::of(item)).copied());
        let outcome = claim.as_ref().err().cloned().map(Err);
        Request { claim, holder: claims::describe(item), has, outcome }
    }

    fn serve(&mut self, request: &mut Request, turn: Turn) {
        let Ok(claim) = &request.claim else { return };
        let found = match (turn, claim.want) {
            (Turn::Keep, _) => match request.has.and_then(|has| self.keep(claim, has)) {
                Some(kept) => Ok(kept),
                None => return,
            },
            (Turn::Named, Want::ThisAddress(cidr)) => self.named(claim, cidr),
            (Turn::Named, Want::ThisBlock(cidr)) => self.named(claim, cidr),
            (Turn::Any, Want::Address) => self.any(claim, None),
            (Turn::Any, Want::Block(length)) => self.any(claim, Some(length)),
            _ => return,
        };
        if let Ok(granted) = found {
            self.take(claim, granted.cidr, request.holder.clone());
        }
        request.outcome = Some(found);
    }

    /// What a claim has stays its own as long as it is right: free of others, and in a prefix that the claim may be served
    /// from. Where no such prefix is known nobody can say that it is wrong.
    fn keep(&mut self, claim: &Claim, has: Cidr) -> Option<Granted> {
        let right = match claim.want {
            Want::Address => true,
            Want::ThisAddress(cidr) => cidr.address == has.address && cidr.family == has.family,
            Want::Block(length) => has.length == length && !has.has_host(),
            Want::ThisBlock(cidr) => cidr.network() == has.network(),
        };
        if !right || claim.family.is_some_and(|family| family != has.family) {
            return None;
        }
        let exact = exact(claim, has);
        let table = self.tables.entry(claim.instance.clone()).or_default();
        let candidates = table.candidates(claim);
        if candidates.is_empty() {
            return table.holder(exact).is_none().then_some(Granted { cidr: has, place: None });
        }
        let place = candidates.into_iter().find(|&place| table.is_free(place, exact))?;
        Some(Granted { cidr: shown(claim, has, table.prefix(place)), place: Some(place) })
    }

    fn named(&mut self, claim: &Claim, wanted: Cidr) -> Result<Granted, Problem> {
        let exact = exact(claim, wanted);
        let table = self.tables.entry(claim.instance.clone()).or_default();
        if claim.kind == PrefixKind::Aggregate && table.holder(exact).is_none() {
            return Ok(Granted { cidr: wanted, place: None });
        }
        let candidates = table.candidates(claim);
        let around: Vec<usize> =
            candidates.into_iter().filter(|&place| table.prefix(place).cidr.contains(exact)).collect();
        if around.is_empty() {
            return Err(no_prefix(claim, Some(wanted)));
        }
        let place = around.into_iter().find(|&place| table.is_free(place, exact));
        let in_use = || match table.holder(exact) {
            Some(holder) => format!("{wanted} is held by {holder}"),
            None => format!("{wanted} is reserved or in use"),
        };
        let place = place.ok_or_else(|| Problem::at("spec.prefix", in_use()))?;
        Ok(Granted { cidr: shown(claim, wanted, table.prefix(place)), place: Some(place) })
    }

    fn any(&mut self, claim: &Claim, length: Option<u8>) -> Result<Granted, Problem> {
        let table = self.tables.entry(claim.instance.clone()).or_default();
        let candidates = table.candidates(claim);
        if candidates.is_empty() {
            return Err(no_prefix(claim, None));
        }
        for &place in &candidates {
            let length = length.unwrap_or_else(|| table.prefix(place).cidr.family.bits());
            if let Some(free) = table.lowest_free(place, length) {
                return Ok(Granted { cidr: shown(claim, free, table.prefix(place)), place: Some(place) });
            }
        }
        let full: Vec<String> = candidates.iter().map(|&place| table.prefix(place).cidr.to_string()).collect();
        let what = length.map_or_else(|| "address".to_owned(), |length| format!("prefix of length {length}"));
        Err(Problem::new(format!("no {what} is free in {}: {}", list_some(&full), "add a prefix or release claims")))
    }

    fn take(&mut self, claim: &Claim, granted: Cidr, holder: String) {
        let table = self.tables.entry(claim.instance.clone()).or_default();
        let is_gateway = claim.labels.get(GATEWAY).is_some_and(|value| value == "true");
        table.take(exact(claim, granted), holder.clone());
        if claim.is_block() {
            let written = match claim.want {
                Want::ThisBlock(written) => written,
                _ => granted,
            };
            let prefix = Prefix::new(written, claim.kind, claim.labels.clone(), is_gateway, holder);
            // A prefix that was free overlaps nothing; one that a pool says is held may, and then serves no claims.
            let _ = table.add(prefix);
        } else if is_gateway && claim.kind == PrefixKind::Network {
            for place in table.candidates(claim) {
                let prefix = table.prefix_mut(place);
                if prefix.cidr.contains(exact(claim, granted)) {
                    prefix.gateway.get_or_insert(granted.address);
                }
            }
        }
    }

    /// The status of a claim. Gateways are known only when all claims are served.
    fn grant(&self, request: Request) -> Result<Grant, Problem> {
        let claim = request.claim?;
        let Granted { cidr, place } = request.outcome.unwrap_or_else(|| Err(no_prefix(&claim, None)))?;
        let mut grant = vec![("prefix", Value::from(cidr.to_string()))];
        let prefix = place.and_then(|place| Some(self.tables.get(&claim.instance)?.prefix(place)));
        let gateway =
            prefix.and_then(|prefix| prefix.gateway).filter(|_| claim.kind == PrefixKind::Network && !claim.is_block());
        if let Some(gateway) = gateway {
            grant.push(("gateway", Value::from(Cidr::host(cidr.family, gateway).address_text())));
        }
        Ok(grant)
    }
}

/// What is taken: of an address only itself, of a prefix all.
fn exact(claim: &Claim, cidr: Cidr) -> Cidr {
    if claim.is_block() { cidr.network() } else { Cidr::host(cidr.family, cidr.address) }
}

/// What the status says: an address in a network has the length of the network.
fn shown(claim: &Claim, cidr: Cidr, parent: &Prefix) -> Cidr {
    match (claim.is_block(), claim.kind) {
        (true, _) => cidr,
        (false, PrefixKind::Network) => cidr.with_length(parent.cidr.length),
        (false, _) => Cidr::host(cidr.family, cidr.address),
    }
}

/// Says that there is nothing to serve a claim from, or nothing that holds what it wants.
fn no_prefix(claim: &Claim, around: Option<Cidr>) -> Problem {
    let kinds: Vec<&str> = claim.parents().iter().map(|kind| kind.as_str()).collect();
    let family = claim.family.map(|family| format!("{} ", family.as_str())).unwrap_or_default();
    let mut message =
        format!("network instance {} has no {family}prefix of kind {}", claim.instance, kinds.join(" or "));
    if let Some(around) = around {
        message += &format!(" around {around}");
    }
    if !claim.selector.is_empty() {
        message += &format!(" that matches {}", claim.selector);
    }
    Problem { message, field: around.map(|_| "spec.prefix") }
}

/// A few of many, for a message.
fn list_some(names: &[String]) -> String {
    match names {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        names => names.join(", "),
    }
}

fn held(item: &Item) -> Option<Cidr> {
    item.text(&["status", "prefix"])?.parse().ok()
}

fn is_pool(item: &Item) -> bool {
    let group = item.group();
    let known = matches!(group, "ipam.resource.nephio.org" | "ipam.alloc.nephio.org" | "ipam.nephio.org");
    known && matches!(item.kind(), "IPPrefix" | "NetworkInstance")
}

/// The prefixes of an IPPrefix, which is one, or of a NetworkInstance, whose prefixes are aggregates.
fn read_prefixes(item: &Item) -> Result<Vec<(String, Prefix)>, Problem> {
    if item.kind() == "NetworkInstance" {
        let instance = format!("{}/{}", item.namespace().unwrap_or(claims::DEFAULT_NAMESPACE), item.name());
        let elements = item.get(&["spec", "prefixes"]).into_iter().flat_map(Node::elements);
        return elements
            .map(|element| {
                let labels = element.get("labels").into_iter().flat_map(Node::entries);
                let labels = labels.filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned())));
                let cidr = parse_prefix(element.text(&["prefix"]), "spec.prefixes")?;
                let name = claims::describe(item);
                Ok((instance.clone(), Prefix::new(cidr, PrefixKind::Aggregate, labels.collect(), false, name)))
            })
            .collect();
    }
    let instance = claim::network_instance(item)
        .ok_or_else(|| Problem::at("spec.networkInstance", "networkInstance is missing: claims are served by it"))?;
    let cidr = parse_prefix(item.text(&["spec", "prefix"]), "spec.prefix")?;
    let labels = spec_labels(item);
    let is_gateway = labels.get(GATEWAY).is_some_and(|value| value == "true")
        || item.text(&["spec", "defaultGateway"]) == Some("true");
    let prefix = Prefix::new(cidr, PrefixKind::read(item)?, labels, is_gateway, claims::describe(item));
    Ok(vec![(instance, prefix)])
}

fn parse_prefix(text: Option<&str>, field: &'static str) -> Result<Cidr, Problem> {
    let text = text.unwrap_or_default();
    text.parse().map_err(|_| Problem::at(field, format!("{text:?} is no prefix: write it as 10.0.0.0/24")))
}
