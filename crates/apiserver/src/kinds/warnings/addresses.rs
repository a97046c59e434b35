//! Warnings of addresses and networks that are not written in the one way they have.

use std::net::IpAddr;

use serde_json::Value;

use super::super::validate::check::texts;
use crate::{
    field::quote,
    format::{sloppy_address, sloppy_network},
};

const FUTURE: &str = "will be considered invalid in a future Kubernetes release";

/// Warns of the addresses of a list.
pub(super) fn each(holder: &Value, field: &str, path: &str, found: &mut Vec<String>) {
    for (at, given) in texts(holder, field).into_iter().enumerate() {
        address(given, &format!("{path}.{field}[{at}]"), found);
    }
}

/// Warns of an address.
pub(super) fn address(given: &str, path: &str, found: &mut Vec<String>) {
    let Some(parsed) = sloppy_address(given) else { return };
    let canonical = quote(&parsed.to_canonical().to_string());
    let standard = given.parse::<IpAddr>().is_ok_and(|strict| strict == strict.to_canonical());
    if !standard {
        found.push(format!("{path}: non-standard IP address {} {FUTURE}: use {canonical}", quote(given)));
    } else if parsed.is_ipv6() && parsed.to_string() != given {
        let words = "should be in RFC 5952 canonical format";
        found.push(format!("{path}: IPv6 address {} {words} ({canonical})", quote(given)));
    }
}

/// Warns of a network.
pub(super) fn network(given: &str, path: &str, found: &mut Vec<String>) {
    let Some(network) = sloppy_network(given) else { return };
    let canonical = format!("{}/{}", network.first(), network.bits);
    let before = found.len();
    if network.first() != network.address {
        let most = if network.address.is_ipv4() { 32 } else { 128 };
        let single = quote(&format!("{}/{most}", network.address));
        let choice = format!("(should be {} or {single}?)", quote(&canonical));
        found.push(format!("{path}: CIDR value {} is ambiguous in this context {choice}", quote(given)));
    }
    let parts = given.split_once('/');
    let standard = parts.is_some_and(|(address, bits)| {
        address.parse::<IpAddr>().is_ok_and(|strict| strict == strict.to_canonical())
            && (bits == "0" || !bits.starts_with('0'))
    });
    if !standard {
        let words = format!("{FUTURE}: use {}", quote(&canonical));
        found.push(format!("{path}: non-standard CIDR value {} {words}", quote(given)));
    }
    let written = format!("{}/{}", network.address, network.bits);
    if found.len() == before && network.address.is_ipv6() && written != given {
        let words = "should be in RFC 5952 canonical format";
        found.push(format!("{path}: IPv6 CIDR value {} {words} ({})", quote(given), quote(&written)));
    }
}
