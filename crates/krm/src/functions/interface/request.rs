//! What an Interface asks for, read and checked.

use crate::{
    FunctionResult, Item, Results, Severity, Value,
    functions::{dialect::Dialect, family::Family, problem::Problem},
};

/// The annotation of an Interface that picks one of several networks of a cluster.
pub(crate) const NETWORK_NAME: &str = "nephio.org/network-name";

/// The plugin that makes an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cni {
    Sriov,
    Ipvlan,
    Macvlan,
    Vlan,
    Bridge,
}

impl Cni {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "sriov" => Some(Self::Sriov),
            "ipvlan" => Some(Self::Ipvlan),
            "macvlan" => Some(Self::Macvlan),
            "vlan" => Some(Self::Vlan),
            "bridge" => Some(Self::Bridge),
            _ => None,
        }
    }

    /// As it is written in an Interface and in an attachment definition.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sriov => "sriov",
            Self::Ipvlan => "ipvlan",
            Self::Macvlan => "macvlan",
            Self::Vlan => "vlan",
            Self::Bridge => "bridge",
        }
    }
}

/// Which addresses are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Families {
    /// Nothing is said: one, as a rule of the fourth version.
    Unsaid,
    /// None: the attachment is one of layer 2.
    None,
    One(Family),
    Both,
}

/// A checked Interface.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    /// `spec.networkInstance` as it is written.
    pub(crate) instance: Value,
    pub(crate) instance_name: String,
    pub(crate) cni: Option<Cni>,
    /// Whether the attachment is in a VLAN.
    pub(crate) tagged: bool,
    pub(crate) families: Families,
    pub(crate) network_name: Option<String>,
}

impl Request {
    /// Reads an Interface.
    pub(crate) fn read(interface: &Item) -> Result<Self, Problem> {
        let text = |path: &[&str]| interface.text(path).filter(|text| !text.is_empty());
        let instance_name = text(&["spec", "networkInstance", "name"]).ok_or_else(|| {
            Problem::at("spec.networkInstance.name", "spec invalid: networkInstance.name is missing from Interface")
        })?;
        let cni = text(&["spec", "cniType"]).map(|cni| {
            Cni::parse(cni).ok_or_else(|| {
                let known = "sriov, ipvlan, macvlan, vlan and bridge are known";
                Problem::at("spec.cniType", format!("spec invalid: unknown cniType {cni:?}: {known}"))
            })
        });
        let tagged = match attachment_type(interface) {
            None | Some("none") => false,
            Some("vlan") => true,
            Some(other) => {
                let message = format!("spec invalid: unknown attachmentType {other:?}: write none or vlan");
                return Err(Problem::at("spec.attachmentType", message));
            }
        };
        Ok(Self {
            instance: interface.value(&["spec", "networkInstance"]).unwrap_or(Value::Null),
            instance_name: instance_name.to_owned(),
            cni: cni.transpose()?,
            tagged,
            families: families(text(&["spec", "ipFamilyPolicy"]))?,
            network_name: interface.annotation(NETWORK_NAME).filter(|name| !name.is_empty()).map(str::to_owned),
        })
    }

    /// Whether the Interface is on the network that every pod has: nothing is needed for it.
    pub(crate) fn is_default_network(&self) -> bool {
        self.instance_name == "default"
    }
}

/// The seed writes `attachementType`; the field of that name counts if the other is not there.
fn attachment_type(interface: &Item) -> Option<&str> {
    let field = |name: &str| interface.text(&["spec", name]).filter(|text| !text.is_empty());
    field("attachmentType").or_else(|| field("attachementType"))
}

/// Warns of a misspelt field where it is not part of the dialect.
pub(crate) fn warn_of_misspelling(interface: &Item, dialect: Dialect, results: &mut Results) {
    if dialect == Dialect::Nephio && interface.get(&["spec", "attachementType"]).is_some() {
        let message = "attachementType is misspelt: write attachmentType";
        let warning = FunctionResult::new(Severity::Warning, message).about(interface);
        results.push(warning.at_field("spec.attachementType"));
    }
}

/// The schema and the programs of Nephio spell the policies differently: both are read.
fn families(policy: Option<&str>) -> Result<Families, Problem> {
    match policy {
        None => Ok(Families::Unsaid),
        Some("none") => Ok(Families::None),
        Some("ipv4only" | "ipv4-only") => Ok(Families::One(Family::V4)),
        Some("ipv6only" | "ipv6-only") => Ok(Families::One(Family::V6)),
        Some("dualstack" | "dual-stack") => Ok(Families::Both),
        Some(other) => {
            let known = "write none, ipv4only, ipv6only or dualstack";
            let message = format!("spec invalid: unknown ipFamilyPolicy {other:?}: {known}");
            Err(Problem::at("spec.ipFamilyPolicy", message))
        }
    }
}
