//! The prefixes of one network instance, and what of them is taken.

use std::collections::{BTreeSet, HashMap};

use crate::functions::{
    cidr::Cidr,
    family::Family,
    ipam::claim::{Claim, PrefixKind},
    problem::Problem,
    ranges::Ranges,
    selector::Labels,
};

/// A prefix that claims are served from.
#[derive(Debug)]
pub(crate) struct Prefix {
    /// Without host part.
    pub(crate) cidr: Cidr,
    pub(crate) kind: PrefixKind,
    labels: Labels,
    /// Where packets leave the subnet.
    pub(crate) gateway: Option<u128>,
    /// Addresses and prefixes inside of it that are not free.
    taken: Ranges,
    /// Whose it is, for messages.
    name: String,
}

impl Prefix {
    /// A prefix as it is written, maybe with a host part, with the labels of its spec.
    pub(crate) fn new(written: Cidr, kind: PrefixKind, mut labels: Labels, is_gateway: bool, name: String) -> Self {
        let cidr = written.network();
        let subnet = format!("{}-{}", cidr.address_text().replace(':', "-"), cidr.length);
        labels.insert("nephio.org/address-family".to_owned(), cidr.family.as_str().to_owned());
        labels.insert("nephio.org/prefix-kind".to_owned(), kind.as_str().to_owned());
        labels.insert("nephio.org/subnet".to_owned(), subnet);
        let mut taken = Ranges::default();
        if kind == PrefixKind::Network && cidr.family.bits() - cidr.length > 1 {
            taken.insert(cidr.first(), cidr.first());
            taken.insert(cidr.last(), cidr.last());
        }
        if written.has_host() {
            taken.insert(written.address, written.address);
        }
        let gateway = (is_gateway && written.has_host()).then_some(written.address);
        Self { cidr, kind, labels, gateway, taken, name }
    }

    /// Whether a prefix of another kind may lie inside.
    fn may_hold(&self, inner: PrefixKind) -> bool {
        self.kind == PrefixKind::Aggregate || self.kind == PrefixKind::Pool && inner == PrefixKind::Pool
    }
}

/// All prefixes of a network instance.
#[derive(Debug, Default)]
pub(crate) struct Table {
    prefixes: Vec<Prefix>,
    by_cidr: HashMap<Cidr, usize>,
    /// The lengths that occur: to find what an address lies in, these are tried.
    lengths: BTreeSet<(Family, u8)>,
    by_label: HashMap<(String, String), Vec<usize>>,
    /// Who holds an address or a prefix.
    holders: HashMap<Cidr, String>,
    /// Answers of [`Table::candidates`], until a prefix is added.
    candidates: HashMap<String, Vec<usize>>,
}

impl Table {
    /// The prefix at a place.
    pub(crate) fn prefix(&self, place: usize) -> &Prefix {
        &self.prefixes[place]
    }

    /// The prefix at a place, to be edited.
    pub(crate) fn prefix_mut(&mut self, place: usize) -> &mut Prefix {
        &mut self.prefixes[place]
    }

    /// Adds a prefix. Shorter ones should be added first: a prefix that does not fit to those before it is refused.
    pub(crate) fn add(&mut self, prefix: Prefix) -> Result<(), Problem> {
        if let Some(same) = self.by_cidr.get(&prefix.cidr) {
            let message = format!("{} is the prefix of {} already", prefix.cidr, self.prefixes[*same].name);
            return Err(Problem::at("spec.prefix", message));
        }
        let around = self.around(prefix.cidr);
        if let Some(&parent) = around.last().filter(|&&parent| !self.prefixes[parent].may_hold(prefix.kind)) {
            let Prefix { cidr, name, .. } = &self.prefixes[parent];
            return Err(Problem::at("spec.prefix", format!("{} overlaps {cidr} of {name}", prefix.cidr)));
        }
        for place in around {
            self.prefixes[place].taken.insert(prefix.cidr.first(), prefix.cidr.last());
        }
        let place = self.prefixes.len();
        self.by_cidr.insert(prefix.cidr, place);
        self.lengths.insert((prefix.cidr.family, prefix.cidr.length));
        for (key, value) in &prefix.labels {
            self.by_label.entry((key.clone(), value.clone())).or_default().push(place);
        }
        self.candidates.clear();
        self.prefixes.push(prefix);
        Ok(())
    }

    /// The prefixes that a claim may be served from, best first: by kind, then by address.
    pub(crate) fn candidates(&mut self, claim: &Claim) -> Vec<usize> {
        let question = format!("{} {:?} {:?}", claim.selector, claim.parents(), claim.family);
        if let Some(known) = self.candidates.get(&question) {
            return known.clone();
        }
        let fits = |&place: &usize| {
            let prefix = &self.prefixes[place];
            claim.parents().contains(&prefix.kind)
                && claim.family.is_none_or(|family| prefix.cidr.family == family)
                && claim.selector.matches(&prefix.labels)
        };
        let exact = claim
            .selector
            .exact()
            .map(|(key, value)| self.by_label.get(&(key.to_owned(), value.to_owned())).map_or(&[][..], Vec::as_slice));
        let mut found: Vec<usize> = match exact.min_by_key(|places| places.len()) {
            Some(places) => places.iter().copied().filter(fits).collect(),
            None => (0..self.prefixes.len()).filter(fits).collect(),
        };
        let rank = |place: &usize| claim.parents().iter().position(|kind| *kind == self.prefixes[*place].kind);
        found.sort_by_key(|place| (rank(place), self.prefixes[*place].cidr));
        self.candidates.insert(question, found.clone());
        found
    }

    /// Whether all of an address or prefix is free in the prefix at a place.
    pub(crate) fn is_free(&self, place: usize, wanted: Cidr) -> bool {
        let prefix = &self.prefixes[place];
        prefix.cidr.contains(wanted) && !prefix.taken.overlaps(wanted.first(), wanted.last())
    }

    /// The lowest free prefix of a length (an address, if it is the longest) in the prefix at a place.
    pub(crate) fn lowest_free(&self, place: usize, length: u8) -> Option<Cidr> {
        let Prefix { cidr, taken, .. } = &self.prefixes[place];
        if length <= cidr.length && length < cidr.family.bits() || length > cidr.family.bits() {
            return None;
        }
        let size = 1_u128.checked_shl(u32::from(cidr.family.bits() - length))?;
        let address = taken.lowest_free(cidr.first(), cidr.last(), size, size)?;
        Some(Cidr { family: cidr.family, address, length })
    }

    /// Takes an address or prefix in the name of a holder.
    pub(crate) fn take(&mut self, taken: Cidr, holder: String) {
        for place in self.around(taken) {
            self.prefixes[place].taken.insert(taken.first(), taken.last());
        }
        self.holders.insert(taken, holder);
    }

    /// Who holds an address or prefix.
    pub(crate) fn holder(&self, cidr: Cidr) -> Option<&str> {
        self.holders.get(&cidr).map(String::as_str)
    }

    /// The prefixes that something lies in, shortest first.
    fn around(&self, inner: Cidr) -> Vec<usize> {
        let lengths = self.lengths.range((inner.family, 0)..=(inner.family, inner.length));
        let networks = lengths.map(|&(_, length)| inner.with_length(length).network());
        networks.filter_map(|network| self.by_cidr.get(&network).copied()).collect()
    }
}
