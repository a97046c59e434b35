//! The addresses and ports that services are given.

/// The network of the addresses.
pub(crate) const NETWORK: &str = "10.0.0.0/16";
/// How many addresses are handed out; those before them are left to who asks for one by name.
pub(crate) const ADDRESSES: u32 = (1 << 16) - 512;
/// The lowest port that nodes open for services.
pub(crate) const FIRST_PORT: i64 = 30_000;
/// How many ports nodes open for services.
pub(crate) const PORTS: u32 = 2768;

/// An address by its place among those that are handed out.
pub(crate) fn address(at: u32) -> String {
    let host = 256 + at % ADDRESSES;
    format!("10.0.{}.{}", host >> 8, host & 0xff)
}

/// What is wrong with a port that nodes do not open for services.
pub(crate) fn port_fault(port: i64) -> Option<String> {
    let last = FIRST_PORT + i64::from(PORTS) - 1;
    let fits = (FIRST_PORT..=last).contains(&port);
    (!fits).then(|| format!("provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{last}"))
}

/// A port by its place among those that nodes open.
pub(crate) fn port(at: u32) -> i64 {
    FIRST_PORT + i64::from(at % PORTS)
}

/// Whether an address is one of version 6, and not one of version 4 in the form of the other.
pub(crate) fn is_sixth(address: &str) -> bool {
    address.parse::<std::net::Ipv6Addr>().is_ok_and(|address| address.to_ipv4_mapped().is_none())
}
