//! What an IPClaim or IPAllocation asks for, read and checked.

use crate::{
    Item,
    functions::{
        cidr::Cidr,
        claims::{self, DEFAULT_NAMESPACE},
        family::Family,
        problem::Problem,
        selector::{Labels, Selector, spec_labels},
    },
};

/// What a prefix is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PrefixKind {
    /// A subnet with hosts.
    Network,
    /// Addresses of routers, one by one.
    Loopback,
    /// Addresses that something else gives out.
    Pool,
    /// A range that is divided into the others.
    Aggregate,
}

impl PrefixKind {
    /// Reads `spec.kind`.
    pub(crate) fn read(item: &Item) -> Result<Self, Problem> {
        match item.text(&["spec", "kind"]).unwrap_or("network") {
            "network" => Ok(Self::Network),
            "loopback" => Ok(Self::Loopback),
            "pool" => Ok(Self::Pool),
            "aggregate" => Ok(Self::Aggregate),
            other => {
                let known = "network, loopback, pool and aggregate are known";
                Err(Problem::at("spec.kind", format!("unknown kind of prefix {other:?}: {known}")))
            }
        }
    }

    /// As it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Loopback => "loopback",
            Self::Pool => "pool",
            Self::Aggregate => "aggregate",
        }
    }
}

/// What is wanted of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Any address.
    Address,
    /// This address.
    ThisAddress(Cidr),
    /// A prefix of this length, out of which others will claim.
    Block(u8),
    /// This prefix; its host part, if it has one, is taken too.
    ThisBlock(Cidr),
}

/// A checked claim.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) kind: PrefixKind,
    /// `<namespace>/<name>` of the network instance.
    pub(crate) instance: String,
    pub(crate) family: Option<Family>,
    pub(crate) want: Want,
    pub(crate) selector: Selector,
    pub(crate) labels: Labels,
}

impl Claim {
    /// Reads a claim.
    pub(crate) fn read(item: &Item) -> Result<Self, Problem> {
        let kind = PrefixKind::read(item)?;
        let instance = network_instance(item).ok_or_else(|| {
            Problem::at("spec.networkInstance", "networkInstance is missing: it names the routing table to claim from")
        })?;
        let selector = Selector::read(item)?;
        let want = want(item, kind)?;
        let said = item.text(&["spec", "addressFamily"]).or_else(|| selector.value_of("nephio.org/address-family"));
        let family = match (said.map(Family::parse), want) {
            (Some(None), _) => {
                return Err(Problem::at("spec.addressFamily", "unknown address family: write ipv4 or ipv6"));
            }
            (Some(family), _) => family,
            (None, Want::ThisAddress(cidr) | Want::ThisBlock(cidr)) => Some(cidr.family),
            // A length that only one family has says which one is meant.
            (None, Want::Address) => length(item)?.map(|length| if length == 32 { Family::V4 } else { Family::V6 }),
            (None, Want::Block(length)) => (length > 32).then_some(Family::V6),
        };
        Ok(Self { kind, instance, family, want, selector, labels: spec_labels(item) })
    }

    /// Whether the claim is for a prefix, not for an address.
    pub(crate) fn is_block(&self) -> bool {
        matches!(self.want, Want::Block(_) | Want::ThisBlock(_))
    }

    /// The kinds of prefixes that the claim can be served from, best first.
    pub(crate) fn parents(&self) -> &'static [PrefixKind] {
        match (self.kind, self.is_block()) {
            (PrefixKind::Network, false) => &[PrefixKind::Network],
            (PrefixKind::Loopback, false) => &[PrefixKind::Loopback, PrefixKind::Aggregate],
            (PrefixKind::Pool, _) => &[PrefixKind::Pool, PrefixKind::Aggregate],
            _ => &[PrefixKind::Aggregate],
        }
    }
}

/// The network instance that an object belongs to, in each of the forms that it has had.
pub(crate) fn network_instance(item: &Item) -> Option<String> {
    ["networkInstance", "networkInstanceRef", "networkInstanceReference"].into_iter().find_map(|key| {
        let text = |path: &[&str]| item.text(path).filter(|text| !text.is_empty());
        let name = text(&["spec", key]).or_else(|| text(&["spec", key, "name"]))?;
        Some(format!("{}/{name}", text(&["spec", key, "namespace"]).unwrap_or(DEFAULT_NAMESPACE)))
    })
}

fn length(item: &Item) -> Result<Option<u8>, Problem> {
    let Some(number) = claims::number(item, &["spec", "prefixLength"]) else { return Ok(None) };
    let length = number.ok().and_then(|number| u8::try_from(number).ok()).filter(|length| *length <= 128);
    let message = || Problem::at("spec.prefixLength", "prefixLength is no number from 0 to 128");
    length.ok_or_else(message).map(Some)
}

fn want(item: &Item, kind: PrefixKind) -> Result<Want, Problem> {
    let creates = item.text(&["spec", "createPrefix"]) == Some("true");
    let length = length(item)?;
    let wrong = |field, message: &str| Err(Problem::at(field, message));
    if let Some(text) = item.text(&["spec", "prefix"]).filter(|text| !text.is_empty()) {
        let Ok(prefix) = text.parse::<Cidr>() else {
            return Err(Problem::at("spec.prefix", format!("{text:?} is no address and no prefix")));
        };
        return match creates {
            true if prefix.is_host() => wrong("spec.prefix", "a prefix to be created must be shorter than an address"),
            true if prefix.has_host() && kind != PrefixKind::Network => {
                wrong("spec.prefix", "only a prefix of kind network may have a host part")
            }
            true => Ok(Want::ThisBlock(prefix)),
            false if kind == PrefixKind::Network || prefix.is_host() => Ok(Want::ThisAddress(prefix)),
            false => wrong("spec.createPrefix", "a claim of this prefix needs createPrefix: true"),
        };
    }
    match (creates, length, kind) {
        (_, _, PrefixKind::Aggregate) => wrong("spec.prefix", "an aggregate is not given out: name the prefix"),
        (true, Some(length), _) => Ok(Want::Block(length)),
        (true, None, _) => wrong("spec.prefixLength", "a prefix to be created needs a prefixLength"),
        (false, _, PrefixKind::Pool) => {
            wrong("spec.createPrefix", "a claim of a pool needs createPrefix and prefixLength")
        }
        (false, None | Some(32 | 128), _) => Ok(Want::Address),
        (false, Some(_), _) => wrong("spec.createPrefix", "a claim with a prefixLength needs createPrefix: true"),
    }
}
