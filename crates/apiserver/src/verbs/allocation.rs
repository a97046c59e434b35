//! Addresses and ports of services.
//!
//! Each that is taken is a key of its own in the store, written and removed in one step with the service that has it: so no two services
//! of a space ever have the same, however many are made at once, and nothing needs to be kept in memory.

use orrery_store::{Batch, Content, Expect, Key};
use serde_json::{Value, json};

use crate::{
    answer, field,
    kinds::service_ranges,
    object, random,
    registry::{Registry, Resource},
    server::Shared,
    status::{Cause, Named, Status},
};

/// The group and resource under which ports of nodes are kept. They are not served.
const NODE_PORTS: (&str, &str) = ("core.orrery.io", "nodeports");
const ADDRESSES: (&str, &str) = ("networking.k8s.io", "ipaddresses");
const SERVICES: Named<'static> = Named { group: "", what: "Service" };
const ALLOCATED: &str = "already allocated";

/// The first port that is said to be drawn where nothing is.
const FIRST_TRIED: i64 = 32_769;

/// How often something free is looked for at random before it is looked for in order.
const DRAWS: usize = 64;

/// Something that only one service of a space can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Address(String),
    Port(i64),
}

/// Where services take what they have.
#[derive(Clone, Copy)]
pub(crate) struct Allocation<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) space: &'a str,
    pub(crate) resource: &'a Resource,
}

impl Taken {
    fn key(&self, space: &str) -> Option<Key> {
        let (place, name) = match self {
            Self::Address(address) => (ADDRESSES, address.clone()),
            Self::Port(port) => (NODE_PORTS, port.to_string()),
        };
        Key::new(place.0, place.1, space, "", &name).ok()
    }
}

/// What a service has, or was asked to have.
fn taken(service: &Value) -> Vec<Taken> {
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        return Vec::new();
    }
    let addresses = spec["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let first = spec["clusterIP"].as_str().filter(|_| spec["clusterIPs"].is_null());
    let addresses = addresses.chain(first).filter(|address| !["", "None"].contains(address));
    let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    let ports = ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_i64).filter(|port| *port != 0);
    let mut all: Vec<Taken> = addresses.map(|address| Taken::Address(address.to_owned())).collect();
    for port in ports.map(Taken::Port) {
        // The same port can serve several protocols.
        if !all.contains(&port) {
            all.push(port);
        }
    }
    all
}

impl Allocation<'_> {
    fn concerns(&self) -> bool {
        self.resource.kind == "Service" && self.resource.group.is_empty()
    }

    /// What a service was asked to have, before anything is drawn for it.
    pub(crate) fn asked(&self, service: &Value) -> Vec<Taken> {
        if self.concerns() { taken(service) } else { Vec::new() }
    }

    /// Adds to a batch that what a service has now is taken, and that what it had is free.
    pub(crate) fn hold(&self, mut batch: Batch, new: Option<&Value>, old: Option<&Value>) -> Result<Batch, Status> {
        if !self.concerns() {
            return Ok(batch);
        }
        let (now, before) = (new.map(taken).unwrap_or_default(), old.map(taken).unwrap_or_default());
        for given in before.iter().filter(|given| !now.contains(given)).filter_map(|given| given.key(self.space)) {
            batch = batch.delete(given, Expect::Anything);
        }
        for got in now.iter().filter(|got| !before.contains(got)) {
            if let (Some(key), Some(service)) = (got.key(self.space), new) {
                batch = batch.put(key, Expect::Absent, self.record(got, service)?);
            }
        }
        Ok(batch)
    }

    /// What is stored for something that a service has.
    fn record(&self, got: &Taken, service: &Value) -> Result<Content, Status> {
        let metadata = |name: &str| {
            let uid = random::uid()?;
            Ok::<_, Status>(json!({ "name": name, "uid": uid, "creationTimestamp": self.shared.now() }))
        };
        let parent = json!({
            "resource": "services", "namespace": service["metadata"]["namespace"], "name": service["metadata"]["name"],
        });
        Ok(match got {
            Taken::Port(port) => object::encode(&json!({
                "kind": "NodePort", "apiVersion": "core.orrery.io/v1alpha1", "metadata": metadata(&port.to_string())?,
                "spec": { "parentRef": parent },
            })),
            Taken::Address(address) => {
                let family = if address.contains(':') { "IPv6" } else { "IPv4" };
                let mut value = json!({
                    "kind": "IPAddress", "apiVersion": "networking.k8s.io/v1", "metadata": metadata(address)?,
                    "spec": { "parentRef": parent },
                });
                value["metadata"]["labels"] = json!({
                    "ipaddress.kubernetes.io/ip-family": family, "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                });
                if let Some(resource) = Registry::kubernetes().resource(ADDRESSES.0, "v1", ADDRESSES.1) {
                    answer::complete(resource, &mut value);
                }
                object::encode(&value)
            }
        })
    }

    /// Draws anew what was drawn but is taken, and refuses what was asked for but is taken. What is only tried out may be taken.
    pub(crate) fn settle(&self, asked: &[Taken], object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        if !self.concerns() {
            return Ok(());
        }
        let had = old.map(taken).unwrap_or_default();
        let name = object::name(object).to_owned();
        for wanted in taken(object).into_iter().filter(|wanted| !had.contains(wanted)) {
            let asked_for = asked.contains(&wanted);
            if let (true, Some(fault)) = (asked_for, out_of_range(&wanted)) {
                return Err(refusal(&wanted, &fault, object, &name));
            }
            if self.is_free(&wanted) {
                continue;
            }
            if asked_for {
                return Err(refusal(&wanted, ALLOCATED, object, &name));
            }
            let drawn = self.draw(&wanted, object)?;
            replace(object, &wanted, &drawn);
        }
        Ok(())
    }

    /// Numbers the ports that would be drawn, where nothing is taken because it is only tried out.
    pub(crate) fn try_out(&self, asked: &[Taken], object: &mut Value, old: Option<&Value>) {
        if !self.concerns() {
            return;
        }
        let had = old.map(taken).unwrap_or_default();
        let drawn = taken(object).into_iter().filter(|wanted| !had.contains(wanted) && !asked.contains(wanted));
        let ports: Vec<Taken> = drawn.filter(|wanted| matches!(wanted, Taken::Port(_))).collect();
        // What the service has besides may be one of the numbers too.
        for (wanted, number) in ports.iter().zip(FIRST_TRIED..) {
            replace(object, wanted, &Taken::Port(number));
        }
    }

    fn is_free(&self, wanted: &Taken) -> bool {
        wanted.key(self.space).is_none_or(|key| self.shared.store.get(&key).is_none())
    }

    /// Something free of the same sort that the service does not have already.
    fn draw(&self, like: &Taken, object: &Value) -> Result<Taken, Status> {
        let own = taken(object);
        let (count, at): (u32, fn(u32) -> Taken) = match like {
            Taken::Address(_) => (service_ranges::ADDRESSES, |at| Taken::Address(service_ranges::address(at))),
            Taken::Port(_) => (service_ranges::PORTS, |at| Taken::Port(service_ranges::port(at))),
        };
        let fits = |candidate: &Taken| !own.contains(candidate) && self.is_free(candidate);
        for _ in 0..DRAWS {
            let candidate = at(random::below(count)?);
            if fits(&candidate) {
                return Ok(candidate);
            }
        }
        (0..count).map(at).find(fits).ok_or_else(|| {
            let what = if matches!(like, Taken::Address(_)) { "serviceIP" } else { "nodePort" };
            Status::internal_error(format!("failed to allocate a {what}: range is full"))
        })
    }
}

/// Puts what was drawn in the place of what was taken.
fn replace(object: &mut Value, wanted: &Taken, drawn: &Taken) {
    let spec = &mut object["spec"];
    match (wanted, drawn) {
        (Taken::Address(wanted), Taken::Address(drawn)) => {
            for address in spec["clusterIPs"].as_array_mut().into_iter().flatten().filter(|address| *address == wanted)
            {
                *address = drawn.as_str().into();
            }
            if spec["clusterIP"] == wanted.as_str() {
                spec["clusterIP"] = drawn.as_str().into();
            }
        }
        (Taken::Port(wanted), Taken::Port(drawn)) => {
            for port in spec["ports"].as_array_mut().into_iter().flatten().filter(|port| port["nodePort"] == *wanted) {
                port["nodePort"] = (*drawn).into();
            }
            if spec["healthCheckNodePort"] == *wanted {
                spec["healthCheckNodePort"] = (*drawn).into();
            }
        }
        _ => {}
    }
}

/// What is wrong with a port that was asked for. Addresses are judged with the service.
fn out_of_range(wanted: &Taken) -> Option<String> {
    if let Taken::Port(port) = wanted { service_ranges::port_fault(*port) } else { None }
}

fn refusal(wanted: &Taken, fault: &str, object: &Value, name: &str) -> Status {
    let fault_of =
        |what: &str| if fault == ALLOCATED { format!("provided {what} is {fault}") } else { fault.to_owned() };
    let spec = &object["spec"];
    let (field, message) = match wanted {
        Taken::Address(address) => {
            let shown = field::json(&spec["clusterIPs"]);
            let why = format!("failed to allocate IP {address}: {}", fault_of("IP"));
            ("spec.clusterIPs".to_owned(), format!("Invalid value: {shown}: {why}"))
        }
        Taken::Port(port) => {
            let ports = spec["ports"].as_array().into_iter().flatten();
            let at = ports.enumerate().find(|(_, entry)| entry["nodePort"] == *port).map(|(at, _)| at);
            let Some(at) = at else {
                let what = format!("failed to allocate requested HealthCheck NodePort {port}");
                return Status::internal_error(format!("{what}: {}", fault_of("port")));
            };
            (format!("spec.ports[{at}].nodePort"), format!("Invalid value: {port}: {}", fault_of("port")))
        }
    };
    Status::invalid(SERVICES, name, vec![Cause { reason: "FieldValueInvalid", message, field }])
}
