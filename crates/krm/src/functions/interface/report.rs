//! Tells in the Kptfile, and in the status of Interfaces, how far things are.

use std::collections::HashSet;

use crate::{
    Condition, Conditions, Item, Status, Value,
    functions::{
        dialect::{self, Dialect},
        interface::children::{Change, Child, Household},
        package::{Package, Resource},
    },
};

/// Said of an Interface while its children are not done.
const WAITING: &str = "update for condition";
/// How the messages begin that this function writes about an Interface that cannot be served. Any other message of a
/// condition that is not true belongs to the one who wrote it, and stays.
const OWN_ERRORS: &[&str] = &["stage1: ", "spec invalid: ", "metadata.", "several Interfaces ", "multiple "];

/// What the status of an Interface should say; in the seed's dialect it says nothing.
#[derive(Debug, PartialEq)]
pub(crate) struct InterfaceStatus {
    addresses: Vec<Value>,
    vlan: Option<Value>,
}

impl InterfaceStatus {
    fn of(items: &[Item], claims: &[Child]) -> Self {
        let mut claims: Vec<&Item> = claims.iter().map(|child| &items[child.position]).collect();
        claims.sort_by_key(|claim| claim.name());
        let status = |resource| {
            let of_resource = claims.iter().filter(move |claim| Resource::of(claim) == Some(resource));
            of_resource.filter_map(|claim| claim.value(&["status"])).filter(|status| *status != Value::object())
        };
        Self { addresses: status(Resource::Address).collect(), vlan: status(Resource::Vlan).next() }
    }

    /// Makes the status of an Interface this one; what else it holds stays.
    pub(crate) fn store(self, interface: &mut Item) {
        let addresses = (!self.addresses.is_empty()).then_some(Value::List(self.addresses));
        for (key, value) in [("ipClaimStatus", addresses), ("vlanClaimStatus", self.vlan)] {
            match value {
                Some(value) => interface.set(&["status", key], value),
                None => interface.remove(&["status", key]),
            };
        }
    }
}

/// Writes the conditions of one run.
pub(crate) struct Report<'a> {
    items: &'a [Item],
    package: Package,
    dialect: Dialect,
    conditions: &'a mut Conditions,
    /// The types of the conditions that have something to be about.
    live: HashSet<String>,
}

impl<'a> Report<'a> {
    /// A report about these items, which have been edited already.
    pub(crate) fn new(items: &'a [Item], dialect: Dialect, conditions: &'a mut Conditions) -> Self {
        Self { items, package: Package::read(items), dialect, conditions, live: HashSet::new() }
    }

    /// Writes all conditions: those of Interfaces, then those of their children. Gives the statuses that Interfaces get.
    pub(crate) fn write(mut self, households: &[Household], orphans: &[Child]) -> Vec<(usize, InterfaceStatus)> {
        let earlier: Vec<Option<Condition>> = households.iter().map(|household| self.announce(household)).collect();
        for household in households {
            self.children(household);
        }
        for orphan in orphans {
            self.orphan(orphan);
        }
        let mut statuses = Vec::new();
        for (household, earlier) in households.iter().zip(earlier) {
            statuses.extend(self.interface(household, earlier));
        }
        self.live.extend(self.package.claims.iter().map(|&claim| self.package.claim_condition(&self.items[claim])));
        self.drop_stale();
        statuses
    }

    /// Keeps a place for the condition of an Interface before those of its children. Gives the one that was there.
    fn announce(&mut self, household: &Household) -> Option<Condition> {
        let kind = self.package.interface_condition(&self.items[household.interface], self.dialect);
        let earlier = self.conditions.get(&kind).cloned();
        if earlier.is_none() {
            self.conditions.set(Condition::new(kind.clone(), Status::False));
        }
        self.live.insert(kind);
        earlier
    }

    fn children(&mut self, household: &Household) {
        let owner = dialect::reference(&self.items[household.interface]);
        let of = |resource| {
            let items = self.items;
            household.claims.iter().filter(move |child| Resource::of(&items[child.position]) == Some(resource))
        };
        let (addresses, vlans) = (of(Resource::Address), of(Resource::Vlan));
        addresses.for_each(|child| self.claim(child, &owner));
        match self.dialect {
            Dialect::Seed => {
                vlans.for_each(|child| self.claim(child, &owner));
                self.attachment(household, &owner);
            }
            Dialect::Nephio => {
                self.attachment(household, &owner);
                vlans.for_each(|child| self.claim(child, &owner));
            }
        }
    }

    fn claim(&mut self, child: &Child, owner: &str) {
        let claim = &self.items[child.position];
        let kind = self.package.claim_condition(claim);
        self.child(kind, Dialect::of_claim(claim), child.change, owner);
    }

    fn child(&mut self, kind: String, dialect: Dialect, change: Change, owner: &str) {
        let pending = |message| dialect.pending(kind.clone(), owner, message);
        let condition = match change {
            Change::Nothing if self.conditions.get(&kind).is_some() => return,
            Change::Nothing => pending("create initial resource"),
            Change::Made(message) => pending(message),
            Change::Revived => pending("update resource"),
            Change::Doomed(farewell) | Change::Leaving(farewell) => {
                doomed(dialect, kind.clone(), self.conditions.get(&kind), owner, farewell)
            }
        };
        self.conditions.set(condition);
    }

    /// The condition about the attachment definition is there as soon as one is needed: it is how one is asked for.
    fn attachment(&mut self, household: &Household, owner: &str) {
        let interface = &self.items[household.interface];
        for child in &household.attachments {
            let kind = self.attachment_condition(interface, self.items[child.position].name());
            if let Change::Doomed(_) | Change::Leaving(_) = child.change {
                self.child(kind.clone(), self.dialect, child.change, owner);
            }
            self.live.insert(kind);
        }
        if household.untouched {
            self.live.insert(self.attachment_condition(interface, &super::wanted::name_for(interface)));
        }
        let Some(name) = &household.attachment else { return };
        let kind = self.attachment_condition(interface, name);
        let mut all = household.claims.iter().chain(&household.attachments);
        let change = match all.any(|child| child.change.is_news()) {
            true if self.conditions.get(&kind).is_some() => Change::Revived,
            _ => Change::Nothing,
        };
        self.child(kind.clone(), self.dialect, change, owner);
        self.live.insert(kind);
    }

    fn attachment_condition(&self, interface: &Item, attachment: &str) -> String {
        self.package.attachment_condition(interface, attachment, self.dialect)
    }

    fn orphan(&mut self, child: &Child) {
        let item = &self.items[child.position];
        let Some(owner) = dialect::owner_name(item) else { return };
        let owner_reference = Dialect::Nephio.condition_type(dialect::INTERFACE_VERSION, "Interface", owner);
        if Resource::of(item).is_some() {
            self.claim(child, &owner_reference);
            return;
        }
        let kind = Package::orphaned_attachment_condition(item, owner, self.dialect);
        self.child(kind.clone(), self.dialect, child.change, &owner_reference);
        self.live.insert(kind);
    }

    fn interface(&mut self, household: &Household, earlier: Option<Condition>) -> Option<(usize, InterfaceStatus)> {
        let interface = &self.items[household.interface];
        let kind = self.package.interface_condition(interface, self.dialect);
        if let Some(problem) = &household.problem {
            self.conditions.set(Dialect::failed(kind, earlier.as_ref(), &problem.message));
            let nothing_left = household.claims.is_empty() && self.dialect == Dialect::Nephio;
            return nothing_left.then(|| (household.interface, InterfaceStatus::of(self.items, &[])));
        }
        if self.dialect == Dialect::Seed {
            self.conditions.set(self.dialect.done(kind, earlier.as_ref()));
            return None;
        }
        if self.all_done(household) {
            self.conditions.set(self.dialect.done(kind, earlier.as_ref()));
            return Some((household.interface, InterfaceStatus::of(self.items, &household.claims)));
        }
        let foreign = earlier.as_ref().filter(|earlier| earlier.status == Status::False && !is_own_error(earlier));
        if foreign.is_none() {
            self.conditions.set(Dialect::failed(kind, earlier.as_ref(), WAITING));
        }
        None
    }

    fn all_done(&self, household: &Household) -> bool {
        let claims = household.claims.iter().map(|child| self.package.claim_condition(&self.items[child.position]));
        let interface = &self.items[household.interface];
        let names = household.attachments.iter().map(|child| self.items[child.position].name());
        let names = names.chain(household.attachment.as_deref());
        let mut kinds = claims.chain(names.map(|name| self.attachment_condition(interface, name)));
        kinds.all(|kind| self.conditions.is_true(&kind))
    }

    /// Removes conditions about what is not there any more, neither as an object nor as something that is asked for.
    fn drop_stale(&mut self) {
        let stale =
            self.conditions.iter().filter(|condition| !self.live.contains(&condition.kind) && is_ours(condition));
        let stale: Vec<String> = stale.map(|condition| condition.kind.clone()).collect();
        for kind in stale {
            self.conditions.remove(&kind);
        }
    }
}

fn doomed(dialect: Dialect, kind: String, earlier: Option<&Condition>, owner: &str, farewell: &str) -> Condition {
    let condition = Dialect::failed(kind, earlier, farewell);
    match condition.reason {
        None if dialect == Dialect::Nephio => condition.because(owner),
        _ => condition,
    }
}

fn is_own_error(condition: &Condition) -> bool {
    let message = condition.message.as_deref().unwrap_or_default();
    OWN_ERRORS.iter().any(|begin| message.starts_with(begin))
}

/// Whether a condition is about an Interface or a child of one. In Nephio's dialect the reason names the owner; the seed's
/// conditions have none, but nothing else makes its kinds.
fn is_ours(condition: &Condition) -> bool {
    let begins = |begins: &[&str]| begins.iter().any(|begin| condition.kind.starts_with(begin));
    let of_interface = condition.reason.as_deref().is_some_and(dialect::is_interface_reference);
    dialect::is_interface_reference(&condition.kind)
        || begins(&[
            "req-nephio-org-v1alpha1-interface-",
            "ipam-nephio-org-v1alpha1-ipallocation-",
            "ipam-nephio-org-v1alpha1-vlanallocation-",
        ])
        || of_interface
            && begins(&[
                "ipam.resource.nephio.org/v1alpha1.IPClaim.",
                "vlan.resource.nephio.org/v1alpha1.VLANClaim.",
                "k8s.cni.cncf.io/v1.NetworkAttachmentDefinition.",
            ])
}
