//! Addresses and prefixes of both families, as numbers.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use crate::functions::family::Family;

/// An address in a prefix, or a prefix: `10.0.0.2/24`, `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Cidr {
    pub(crate) family: Family,
    pub(crate) address: u128,
    pub(crate) length: u8,
}

impl Cidr {
    /// The address by itself.
    pub(crate) fn host(family: Family, address: u128) -> Self {
        Self { family, address, length: family.bits() }
    }

    /// The prefix without its host part.
    pub(crate) fn network(self) -> Self {
        Self { address: self.first(), ..self }
    }

    /// The lowest address.
    pub(crate) fn first(self) -> u128 {
        self.address & !self.host_mask()
    }

    /// The highest address.
    pub(crate) fn last(self) -> u128 {
        self.address | self.host_mask()
    }

    /// Whether a host part is written.
    pub(crate) fn has_host(self) -> bool {
        self.address != self.first()
    }

    /// Whether it is a single address.
    pub(crate) fn is_host(self) -> bool {
        self.length == self.family.bits()
    }

    /// Whether the other lies in this prefix.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.family == other.family && self.first() <= other.first() && other.last() <= self.last()
    }

    /// The prefix of another length around the same address.
    pub(crate) fn with_length(self, length: u8) -> Self {
        Self { length, ..self }
    }

    /// The address without the length.
    pub(crate) fn address_text(self) -> String {
        match self.family {
            Family::V4 => Ipv4Addr::from(u32::try_from(self.address).unwrap_or_default()).to_string(),
            Family::V6 => Ipv6Addr::from(self.address).to_string(),
        }
    }

    fn host_mask(self) -> u128 {
        let host_bits = u32::from(self.family.bits() - self.length);
        1_u128.checked_shl(host_bits).map_or(u128::MAX, |bit| bit - 1)
    }
}

/// Why a text is no prefix.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotCidr;

impl FromStr for Cidr {
    type Err = NotCidr;

    /// Without a length the address stands for itself.
    fn from_str(text: &str) -> Result<Self, NotCidr> {
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let (family, address) = match address.parse::<Ipv4Addr>() {
            Ok(address) => (Family::V4, u128::from(u32::from(address))),
            Err(_) => (Family::V6, address.parse::<Ipv6Addr>().map_err(|_| NotCidr)?.into()),
        };
        let length = match length {
            Some(length) if length.bytes().all(|byte| byte.is_ascii_digit()) => length.parse().map_err(|_| NotCidr)?,
            Some(_) => return Err(NotCidr),
            None => family.bits(),
        };
        if length > family.bits() { Err(NotCidr) } else { Ok(Self { family, address, length }) }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address_text(), self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::Cidr;

    #[track_caller]
    fn check(text: &str, shown: &str, network: &str, last: &str) {
        let cidr: Cidr = text.parse().unwrap();
        assert_eq!(cidr.to_string(), shown);
        assert_eq!(cidr.network().to_string(), network);
        assert_eq!(Cidr { address: cidr.last(), ..cidr }.address_text(), last);
    }

    #[test]
    fn prefixes_of_both_families() {
        check("10.0.0.2/24", "10.0.0.2/24", "10.0.0.0/24", "10.0.0.255");
        check("10.1.2.3", "10.1.2.3/32", "10.1.2.3/32", "10.1.2.3");
        check("0.0.0.0/0", "0.0.0.0/0", "0.0.0.0/0", "255.255.255.255");
        check("1000:0::2/64", "1000::2/64", "1000::/64", "1000::ffff:ffff:ffff:ffff");
        check("::/0", "::/0", "::/0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    }

    #[test]
    fn what_is_no_prefix() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "::1/129",
            "10.0.0.1/",
            "10.0.0.1/+8",
            "10.0.0.1/8/8",
            "eth0",
            "010.0.0.1/8",
        ] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
    }

    #[test]
    fn families_do_not_contain_each_other() {
        let contains = |a: &str, b: &str| a.parse::<Cidr>().unwrap().contains(b.parse().unwrap());
        assert!(contains("0.0.0.0/0", "10.0.0.0/8"));
        assert!(!contains("::/0", "10.0.0.0/8"));
        assert!(!contains("10.0.0.0/24", "10.0.0.0/8"));
    }
}
