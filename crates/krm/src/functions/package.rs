//! What a package holds that concerns the functions: found in one pass, looked up without a search.

use std::collections::{HashMap, HashSet};

use crate::{
    Item,
    functions::dialect::{self, Dialect},
};

/// What a claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    /// An address or a prefix: `IPClaim`, `IPAllocation`.
    Address,
    /// A VLAN: `VLANClaim`, `VLANAllocation`.
    Vlan,
}

impl Resource {
    /// What an object claims, whatever its generation; nothing if it is no claim.
    pub(crate) fn of(item: &Item) -> Option<Self> {
        match (item.kind(), item.group()) {
            ("IPClaim", "ipam.resource.nephio.org") => Some(Self::Address),
            ("IPAllocation", "ipam.nephio.org" | "ipam.alloc.nephio.org") => Some(Self::Address),
            ("VLANClaim", "vlan.resource.nephio.org") => Some(Self::Vlan),
            ("VLANAllocation", "ipam.nephio.org" | "vlan.alloc.nephio.org") => Some(Self::Vlan),
            _ => None,
        }
    }
}

/// Where the objects stand that concern the functions, as positions in the list of items.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) interfaces: Vec<usize>,
    pub(crate) clusters: Vec<usize>,
    pub(crate) claims: Vec<usize>,
    /// NetworkAttachmentDefinitions that belong to an Interface.
    pub(crate) attachments: Vec<usize>,
    interfaces_by_name: HashMap<String, Vec<usize>>,
    /// Kinds and names that occur in more than one namespace.
    ambiguous: HashSet<(String, String)>,
}

impl Package {
    /// Reads all items once.
    pub(crate) fn read(items: &[Item]) -> Self {
        let mut package = Self::default();
        let mut namespaces: HashMap<(&str, &str), Option<&str>> = HashMap::new();
        for (position, item) in items.iter().enumerate() {
            if !package.note(position, item) {
                continue;
            }
            let first = *namespaces.entry((item.kind(), item.name())).or_insert(item.namespace());
            if first != item.namespace() {
                package.ambiguous.insert((item.kind().to_owned(), item.name().to_owned()));
            }
        }
        package
    }

    /// Says whether conditions are written about the item.
    fn note(&mut self, position: usize, item: &Item) -> bool {
        match item.kind() {
            "Interface" if item.group() == "req.nephio.org" => {
                self.interfaces.push(position);
                self.interfaces_by_name.entry(item.name().to_owned()).or_default().push(position);
            }
            "ClusterContext" | "WorkloadCluster" if Dialect::of_cluster(item).is_some() => {
                self.clusters.push(position);
                return false;
            }
            "NetworkAttachmentDefinition" if dialect::owner_name(item).is_some() => self.attachments.push(position),
            _ if Resource::of(item).is_some() => self.claims.push(position),
            _ => return false,
        }
        true
    }

    /// The name by which conditions speak of an object: with its namespace if the name alone is not enough.
    pub(crate) fn title(&self, item: &Item, dialect: Dialect) -> String {
        let name = item.name();
        match item.namespace() {
            Some(namespace) if self.ambiguous.contains(&(item.kind().to_owned(), name.to_owned())) => {
                format!("{namespace}{}{name}", dialect.separator())
            }
            _ => name.to_owned(),
        }
    }

    /// The type of the condition about a claim.
    pub(crate) fn claim_condition(&self, claim: &Item) -> String {
        let dialect = Dialect::of_claim(claim);
        dialect.condition_type(claim.api_version(), claim.kind(), &self.title(claim, dialect))
    }

    /// The type of the condition about an Interface.
    pub(crate) fn interface_condition(&self, interface: &Item, dialect: Dialect) -> String {
        dialect.condition_type(interface.api_version(), interface.kind(), &self.title(interface, dialect))
    }

    /// The type of the condition about an attachment definition of an Interface.
    pub(crate) fn attachment_condition(&self, interface: &Item, attachment: &str, dialect: Dialect) -> String {
        let title = self.title(interface, dialect);
        match dialect {
            Dialect::Seed => dialect::seed_attachment_type(interface.api_version(), &title),
            Dialect::Nephio if title == interface.name() => dialect::nephio_attachment_type(attachment),
            Dialect::Nephio => {
                let namespace = interface.namespace().unwrap_or_default();
                dialect::nephio_attachment_type(&format!("{namespace}.{attachment}"))
            }
        }
    }

    /// The same for an attachment definition whose Interface is gone.
    pub(crate) fn orphaned_attachment_condition(attachment: &Item, owner: &str, dialect: Dialect) -> String {
        match dialect {
            Dialect::Seed => dialect::seed_attachment_type(dialect::INTERFACE_VERSION, owner),
            Dialect::Nephio => dialect::nephio_attachment_type(attachment.name()),
        }
    }

    /// The Interfaces of a name.
    pub(crate) fn interfaces_named(&self, name: &str) -> &[usize] {
        self.interfaces_by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// Where the Interface stands that owns an item. The name decides; the namespace only between several of one name, since
    /// other functions set namespaces at other times.
    pub(crate) fn owner(&self, items: &[Item], item: &Item) -> Owner {
        let Some(name) = dialect::owner_name(item) else { return Owner::Other };
        let named = self.interfaces_named(name);
        let beside = named.iter().find(|&&position| items[position].namespace() == item.namespace());
        beside.or(named.first()).map_or(Owner::Gone, |&position| Owner::Interface(position))
    }
}

/// To whom an object belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// To the Interface at this position.
    Interface(usize),
    /// To an Interface that is not in the package any more.
    Gone,
    /// To something else, or to nobody.
    Other,
}
