//! The configuration of a network plugin, as an attachment definition holds it.

use std::collections::BTreeSet;

use crate::{
    Value,
    functions::{interface::request::Cni, json, problem::Problem},
};

/// What an attachment needs to know.
#[derive(Debug)]
pub(crate) struct Attachment<'a> {
    pub(crate) cni: Cni,
    /// The interface of the node.
    pub(crate) master: Option<&'a str>,
    /// The VLAN of the Interface, if it has one.
    pub(crate) vlan: Option<u16>,
    /// Whether the attachment is in that VLAN.
    pub(crate) tagged: bool,
    /// Addresses with their lengths, and the gateway of each.
    pub(crate) addresses: BTreeSet<(String, Option<String>)>,
    /// Destinations, and the gateway of each.
    pub(crate) routes: BTreeSet<(String, Option<String>)>,
}

impl Attachment<'_> {
    /// The configuration as JSON on one line.
    pub(crate) fn config(&self) -> Result<String, Problem> {
        let mut plugins = vec![self.plugin()?];
        if self.cni == Cni::Macvlan {
            let tuning = Value::object()
                .with("type", "tuning")
                .with("capabilities", Value::object().with("mac", true))
                .with("ipam", Value::object());
            plugins.push(tuning);
        }
        Ok(json::compact(&Value::object().with("cniVersion", "0.3.1").with("plugins", plugins)))
    }

    fn plugin(&self) -> Result<Value, Problem> {
        let mode = match self.cni {
            Cni::Macvlan | Cni::Sriov => Some("bridge"),
            Cni::Ipvlan => Some("l2"),
            Cni::Vlan | Cni::Bridge => None,
        };
        let capabilities = match mode {
            Some(_) => Value::object().with("ips", true),
            None => Value::object(),
        };
        let plugin = Value::object().with("type", self.cni.as_str()).with("capabilities", capabilities);
        Ok(match self.cni {
            Cni::Bridge => {
                let bridge = format!("cni{}", self.known_vlan()?);
                plugin.with("ipam", self.ipam()).with("bridge", &bridge).with("name", &bridge)
            }
            Cni::Vlan => {
                plugin.with("master", self.known_master()?).with("ipam", self.ipam()).with("vlanId", self.known_vlan()?)
            }
            Cni::Macvlan | Cni::Ipvlan | Cni::Sriov => {
                let master = self.known_master()?;
                let master = if self.tagged { format!("{master}.{}", self.known_vlan()?) } else { master.to_owned() };
                plugin.with("master", master).with_some("mode", mode).with("ipam", self.ipam())
            }
        })
    }

    fn ipam(&self) -> Value {
        if self.addresses.is_empty() {
            return Value::object();
        }
        let pairs = |pairs: &BTreeSet<(String, Option<String>)>, first: &str, second: &str| {
            let pairs = pairs.iter();
            Value::list(pairs.map(|(one, other)| Value::object().with(first, one).with_some(second, other.as_ref())))
        };
        let routes = (!self.routes.is_empty()).then(|| pairs(&self.routes, "dst", "gw"));
        Value::object()
            .with("type", "static")
            .with("addresses", pairs(&self.addresses, "address", "gateway"))
            .with_some("routes", routes)
    }

    fn known_vlan(&self) -> Result<u16, Problem> {
        self.vlan.ok_or_else(|| Problem::new("unknown vlanID: the Interface has no VLAN"))
    }

    fn known_master(&self) -> Result<&str, Problem> {
        self.master.ok_or_else(|| Problem::new("the cluster names no masterInterface to attach to"))
    }
}
