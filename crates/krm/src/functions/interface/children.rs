//! Makes the children of Interfaces what they should be.

use std::collections::{HashMap, HashSet};

use crate::{
    Item,
    functions::{
        dialect::{self, Dialect},
        interface::{
            verdict::{DELETE, Plan, Verdict},
            wanted::Wanted,
        },
        package::{Owner, Package, Resource},
        problem::Problem,
    },
};

/// What happened to a child in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// It is new; the word says whether in place of another.
    Made(&'static str),
    /// It was marked for deletion and is needed after all.
    Revived,
    /// It was marked for deletion just now; the word says why.
    Doomed(&'static str),
    /// It was marked for deletion before.
    Leaving(&'static str),
}

impl Change {
    /// Whether what depends on the child has to be looked at again.
    pub(crate) fn is_news(self) -> bool {
        matches!(self, Self::Made(_) | Self::Revived | Self::Doomed(_))
    }
}

/// An object that belongs to an Interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    pub(crate) position: usize,
    pub(crate) change: Change,
}

/// An Interface and what belongs to it.
#[derive(Debug)]
pub(crate) struct Household {
    pub(crate) interface: usize,
    pub(crate) problem: Option<Problem>,
    /// Whether the children were left alone.
    pub(crate) untouched: bool,
    /// Those that are needed, then those that go.
    pub(crate) claims: Vec<Child>,
    pub(crate) attachments: Vec<Child>,
    /// The name of the attachment definition that is needed.
    pub(crate) attachment: Option<String>,
}

/// Edits the items: keeps, makes, revives and marks claims, and marks attachment definitions. Gives the households and the
/// children of Interfaces that are gone.
pub(crate) fn reconcile(
    items: &mut Vec<Item>,
    package: &Package,
    verdicts: Vec<(usize, Verdict)>,
    dialect: Dialect,
    now: &str,
) -> (Vec<Household>, Vec<Child>) {
    let mut orphans = Vec::new();
    let mut claims = by_owner(items, package, &package.claims, &mut orphans);
    let mut attachments = by_owner(items, package, &package.attachments, &mut orphans);
    let names = package.claims.iter().map(|&claim| (items[claim].kind().to_owned(), items[claim].name().to_owned()));
    let mut hand = Hand { names: names.collect(), items, dialect, now };
    let households = verdicts.into_iter().map(|(interface, verdict)| {
        let claims = claims.remove(&interface).unwrap_or_default();
        let attachments = attachments.remove(&interface).unwrap_or_default();
        hand.household(interface, verdict, claims, attachments)
    });
    let households = households.collect();
    let orphans = orphans.into_iter().map(|position| hand.doom(position, DELETE)).collect();
    (households, orphans)
}

fn by_owner(
    items: &[Item],
    package: &Package,
    positions: &[usize],
    orphans: &mut Vec<usize>,
) -> HashMap<usize, Vec<usize>> {
    let mut owned: HashMap<usize, Vec<usize>> = HashMap::new();
    for &position in positions {
        match package.owner(items, &items[position]) {
            Owner::Interface(interface) => owned.entry(interface).or_default().push(position),
            Owner::Gone => orphans.push(position),
            Owner::Other => {}
        }
    }
    owned
}

/// What edits the items.
struct Hand<'a> {
    items: &'a mut Vec<Item>,
    /// Kind and name of every claim, whatever its namespace.
    names: HashSet<(String, String)>,
    dialect: Dialect,
    now: &'a str,
}

impl Hand<'_> {
    fn household(
        &mut self,
        interface: usize,
        verdict: Verdict,
        claims: Vec<usize>,
        attachments: Vec<usize>,
    ) -> Household {
        let Verdict { problem, plan } = verdict;
        let Plan::Children { claims: wanted, attachment, farewell } = plan else {
            let unchanged = |position| Child { position, change: Change::Nothing };
            return Household {
                interface,
                problem,
                untouched: true,
                claims: claims.into_iter().map(unchanged).collect(),
                attachments: attachments.into_iter().map(unchanged).collect(),
                attachment: None,
            };
        };
        let claims = self.claims(interface, &wanted, claims, farewell);
        let attachments = self.attachments(attachment.as_deref(), attachments, farewell);
        Household { interface, problem, untouched: false, claims, attachments, attachment }
    }

    fn claims(
        &mut self,
        interface: usize,
        wanted: &[Wanted],
        existing: Vec<usize>,
        farewell: &'static str,
    ) -> Vec<Child> {
        let mut left = existing;
        let mut found: Vec<Option<usize>> = Vec::with_capacity(wanted.len());
        for claim in wanted {
            let alike = |&position: &usize| claim.matches(&self.items[position]);
            let fresh = left.iter().position(|position| alike(position) && !dialect::is_marked(&self.items[*position]));
            let match_at = fresh.or_else(|| left.iter().position(alike));
            found.push(match_at.map(|index| left.remove(index)));
        }
        let replaced: HashSet<Resource> = left.iter().filter_map(|&old| Resource::of(&self.items[old])).collect();
        let mut children = Vec::with_capacity(wanted.len() + left.len());
        for (claim, found) in wanted.iter().zip(found) {
            children.push(match found {
                Some(position) => self.keep(position, claim),
                None => self.make(interface, claim, replaced.contains(&claim.resource)),
            });
        }
        children.extend(left.into_iter().map(|position| self.doom(position, farewell)));
        children
    }

    fn attachments(&mut self, wanted: Option<&str>, existing: Vec<usize>, farewell: &'static str) -> Vec<Child> {
        let mut kept = false;
        let children = existing.into_iter().map(|position| {
            if kept || Some(self.items[position].name()) != wanted {
                return self.doom(position, farewell);
            }
            kept = true;
            Child { position, change: self.revive(position) }
        });
        children.collect()
    }

    fn keep(&mut self, position: usize, claim: &Wanted) -> Child {
        let change = self.revive(position);
        // The seed compares the spec and does nothing if it is right; annotations follow the Interface in Nephio's dialect.
        let followed = if self.dialect == Dialect::Nephio { claim.annotations.as_slice() } else { &[] };
        for (key, value) in followed {
            self.items[position].set_annotation(key, value);
        }
        Child { position, change }
    }

    fn revive(&mut self, position: usize) -> Change {
        let item = &mut self.items[position];
        if !dialect::is_marked(item) {
            return Change::Nothing;
        }
        dialect::unmark(item);
        Change::Revived
    }

    fn make(&mut self, interface: usize, claim: &Wanted, replaces: bool) -> Child {
        let kind = claim.kind.to_owned();
        let is_taken = |name: &str| self.names.contains(&(kind.clone(), name.to_owned()));
        let item = claim.create(&self.items[interface], self.dialect, is_taken);
        self.names.insert((kind, item.name().to_owned()));
        self.items.push(item);
        let message = if replaces { "update resource" } else { "create initial resource" };
        Child { position: self.items.len() - 1, change: Change::Made(message) }
    }

    fn doom(&mut self, position: usize, farewell: &'static str) -> Child {
        let item = &mut self.items[position];
        if dialect::is_marked(item) {
            return Child { position, change: Change::Leaving(farewell) };
        }
        match Resource::of(item) {
            Some(_) => dialect::mark_claim(item, self.now),
            None => dialect::mark_attachment(item, self.dialect),
        }
        Child { position, change: Change::Doomed(farewell) }
    }
}
