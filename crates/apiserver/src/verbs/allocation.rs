//! Addresses and ports of services: each is handed out once in a space.

use std::net::Ipv4Addr;

use orrery_store::{ListOptions, Object, Scope};
use serde_json::{Value, json};

use super::{admission::Place, kind, stored};
use crate::{
    field::{FieldError, Path},
    object,
    status::{Cause, Result, Status},
};

/// The addresses of services: all that begin with these two bytes.
const NETWORK: [u8; 2] = [10, 0];
/// The first and the last port that nodes open for services.
const PORTS: (i64, i64) = (30_000, 32_767);

/// Gives a service, in its sparse form, the ports and the address it needs, and refuses those that others have.
pub(super) fn allocate(place: &Place<'_>, service: &mut Value, old: Option<&Value>) -> Result<()> {
    let spec = |service: &Value| service.get("spec").cloned().unwrap_or_default();
    let (wanted, before) = (spec(service), old.map(spec).unwrap_or_default());
    if wanted["type"] == "ExternalName" {
        return Ok(());
    }
    let others = Others::of(place, service);
    match wanted["clusterIP"].as_str().or_else(|| wanted.pointer("/clusterIPs/0")?.as_str()) {
        Some("None" | "") => {}
        // What it has it keeps; that it must not change is said by the rules for changes.
        Some(_) if before["clusterIP"].as_str().is_some_and(|address| address != "None") => {}
        Some(address) => others.check_address(place, service, address)?,
        None if before["clusterIP"].is_string() => {}
        None => {
            let address = others.free_address()?;
            service["spec"]["clusterIP"] = address.into();
        }
    }
    if takes_ports(&wanted) { allocate_ports(place, service, &before, &others) } else { Ok(()) }
}

fn takes_ports(spec: &Value) -> bool {
    match spec["type"].as_str() {
        Some("NodePort") => true,
        Some("LoadBalancer") => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

fn allocate_ports(place: &Place<'_>, service: &mut Value, before: &Value, others: &Others) -> Result<()> {
    let known: Vec<Value> = before["ports"].as_array().cloned().unwrap_or_default();
    let own: Vec<i64> = known.iter().filter_map(|port| port["nodePort"].as_i64()).collect();
    let mut taken = others.ports();
    let ports: Vec<Value> = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let mut given: Vec<(Value, i64)> = Vec::new();
    for (at, port) in ports.iter().enumerate() {
        let shared = given.iter().find(|(number, _)| *number == port["port"]).map(|(_, node_port)| *node_port);
        let kept = || {
            let same = |known: &&Value| known["port"] == port["port"] && known["protocol"] == port["protocol"];
            known.iter().find(same).and_then(|known| known["nodePort"].as_i64())
        };
        let number = match port["nodePort"].as_i64().filter(|number| *number != 0) {
            Some(number) if own.contains(&number) || shared == Some(number) => number,
            Some(number) => {
                check_port(place, service, at, number, &taken)?;
                number
            }
            None => match shared.or_else(kept) {
                Some(number) => number,
                None => free_port(&taken)?,
            },
        };
        taken.push(number);
        given.push((port["port"].clone(), number));
        service["spec"]["ports"][at]["nodePort"] = number.into();
    }
    Ok(())
}

fn check_port(place: &Place<'_>, service: &Value, at: usize, number: i64, taken: &[i64]) -> Result<()> {
    let detail = if !(PORTS.0..=PORTS.1).contains(&number) {
        format!("provided port is not in the valid range. The range of valid ports is {}-{}", PORTS.0, PORTS.1)
    } else if taken.contains(&number) {
        "provided port is already allocated".to_owned()
    } else {
        return Ok(());
    };
    let spec = Path::ROOT.child("spec");
    let ports = spec.child("ports");
    Err(refuse(place, service, FieldError::invalid(&ports.index(at).child("nodePort"), number, &detail)))
}

/// A port that nobody has, from a random start on.
fn free_port(taken: &[i64]) -> Result<i64> {
    let count = PORTS.1 - PORTS.0 + 1;
    let start = i64::from(crate::random::number()?) % count;
    let candidates = (0..count).map(|step| PORTS.0 + (start + step) % count);
    let full = || Status::internal_error("failed to allocate a nodePort: range is full");
    candidates.into_iter().find(|port| !taken.contains(port)).ok_or_else(full)
}

fn refuse(place: &Place<'_>, service: &Value, error: FieldError) -> Status {
    Status::invalid(kind(place.resource), object::name(service), vec![Cause::from(error)])
}

/// The other services of a space.
struct Others(Vec<std::sync::Arc<Object>>);

impl Others {
    fn of(place: &Place<'_>, service: &Value) -> Self {
        let scope = Scope::space("", "services", place.space);
        let all = place.shared.store.list(&scope, &ListOptions::default()).map(|list| list.objects);
        let (namespace, name) = (object::text(service, "namespace"), object::name(service));
        let another =
            |other: &std::sync::Arc<Object>| (other.key().namespace(), other.key().name()) != (namespace, name);
        Self(all.unwrap_or_default().into_iter().filter(another).collect())
    }

    fn check_address(&self, place: &Place<'_>, service: &Value, address: &str) -> Result<()> {
        // What is no address at all is refused by the rules for services.
        let Ok(parsed) = address.parse::<Ipv4Addr>() else { return Ok(()) };
        let [first, second] = NETWORK;
        let why = if !parsed.octets().starts_with(&NETWORK) {
            format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {first}.{second}.0.0/16"
            )
        } else if self.has(address) {
            "provided IP is already allocated".to_owned()
        } else {
            return Ok(());
        };
        let addresses = service.pointer("/spec/clusterIPs").cloned().unwrap_or_else(|| json!([address]));
        let detail = format!("failed to allocate IP {address}: {why}");
        let spec = Path::ROOT.child("spec");
        Err(refuse(place, service, FieldError::invalid(&spec.child("clusterIPs"), addresses, &detail)))
    }

    /// An address that nobody has, from a random start on. The first are left to who asks for them.
    fn free_address(&self) -> Result<String> {
        const RESERVED: u32 = 256;
        let count = (1 << 16) - RESERVED - 1;
        let start = u32::from(crate::random::number()?) % count;
        let [first, second] = NETWORK;
        let candidates = (0..count).map(|step| {
            let host = RESERVED + (start + step) % count;
            format!("{first}.{second}.{}.{}", host >> 8, host & 0xff)
        });
        let full = || Status::internal_error("failed to allocate a serviceIP: range is full");
        candidates.into_iter().find(|address| !self.has(address)).ok_or_else(full)
    }

    /// Whether a service has an address. Its text is looked for where services are stored, because that takes no parsing.
    fn has(&self, address: &str) -> bool {
        let text = format!("\"clusterIP\":\"{address}\"");
        self.0.iter().any(|other| {
            let mut bytes = other.value().segments();
            bytes.any(|segment| segment.windows(text.len()).any(|window| window == text.as_bytes()))
        })
    }

    /// All ports that services have on nodes.
    fn ports(&self) -> Vec<i64> {
        let mut ports = Vec::new();
        for other in &self.0 {
            let Ok(service) = stored(other).map(|stored| stored.parse("", "")) else { continue };
            let listed = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
            ports.extend(listed.filter_map(|port| port["nodePort"].as_i64()));
            ports.extend(service.pointer("/spec/healthCheckNodePort").and_then(Value::as_i64));
        }
        ports
    }
}
