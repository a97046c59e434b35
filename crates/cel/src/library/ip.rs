//! Addresses and ranges of them.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{Outcome, Run, fail, no_overload};
use crate::value::Value;

/// A range of addresses: `192.168.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) length: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Cidr {
    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
            }
        };
        Self { address, ..self }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && (Self { address, length: self.length }).masked().address == self.masked().address
    }

    fn contains_range(self, other: Self) -> bool {
        other.length >= self.length && self.contains(other.address)
    }
}

pub(super) const TABLE: &[(&str, Run)] = &[
    ("ip", |args| match args {
        [Value::String(text)] => parse(text.as_ref()).map_or_else(fail, |ip| Ok(Value::Ip(ip))),
        [Value::Cidr(cidr)] => Ok(Value::Ip(cidr.address)),
        _ => no_overload(),
    }),
    ("isIP", |args| match args {
        [Value::String(text)] => Ok(Value::Bool(parse(text.as_ref()).is_ok())),
        _ => no_overload(),
    }),
    ("ip.isCanonical", |args| match args {
        [Value::String(text)] => {
            parse(text.as_ref()).map_or_else(fail, |ip| Ok(Value::Bool(ip.to_string() == text.as_ref())))
        }
        _ => no_overload(),
    }),
    ("family", |args| match args {
        [Value::Ip(ip)] => Ok(Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
        _ => no_overload(),
    }),
    ("isUnspecified", |args| is(args, |ip| ip.is_unspecified())),
    ("isLoopback", |args| is(args, |ip| ip.is_loopback())),
    ("isLinkLocalMulticast", |args| is(args, is_link_local_multicast)),
    ("isLinkLocalUnicast", |args| is(args, is_link_local_unicast)),
    ("isGlobalUnicast", |args| {
        is(args, |ip| {
            let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
            !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip))
        })
    }),
    ("cidr", |args| match args {
        [Value::String(text)] => parse_cidr(text.as_ref()).map_or_else(fail, |cidr| Ok(Value::Cidr(cidr))),
        _ => no_overload(),
    }),
    ("isCIDR", |args| match args {
        [Value::String(text)] => Ok(Value::Bool(parse_cidr(text.as_ref()).is_ok())),
        _ => no_overload(),
    }),
    ("containsIP", |args| match args {
        [Value::Cidr(cidr), Value::Ip(ip)] => Ok(Value::Bool(cidr.contains(*ip))),
        [Value::Cidr(cidr), Value::String(text)] => {
            parse(text.as_ref()).map_or_else(fail, |ip| Ok(Value::Bool(cidr.contains(ip))))
        }
        _ => no_overload(),
    }),
    ("containsCIDR", |args| match args {
        [Value::Cidr(cidr), Value::Cidr(other)] => Ok(Value::Bool(cidr.contains_range(*other))),
        [Value::Cidr(cidr), Value::String(text)] => {
            parse_cidr(text.as_ref()).map_or_else(fail, |other| Ok(Value::Bool(cidr.contains_range(other))))
        }
        _ => no_overload(),
    }),
    ("prefixLength", |args| match args {
        [Value::Cidr(cidr)] => Ok(Value::Int(i64::from(cidr.length))),
        _ => no_overload(),
    }),
    ("masked", |args| match args {
        [Value::Cidr(cidr)] => Ok(Value::Cidr(cidr.masked())),
        _ => no_overload(),
    }),
];

fn is<'v>(args: &[Value<'v>], holds: fn(IpAddr) -> bool) -> Outcome<'v> {
    match args {
        [Value::Ip(ip)] => Ok(Value::Bool(holds(*ip))),
        _ => no_overload(),
    }
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.octets()[0] == 0xff && ip.octets()[1] & 0x0f == 2,
    }
}

fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// An address. Zones, and addresses of the fourth version in the form of the sixth, are refused.
fn parse(text: &str) -> Result<IpAddr, String> {
    if let Some((address, _)) = text.split_once('%')
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return Err(format!("IP address {text:?} with zone value is not allowed"));
    }
    let ip: IpAddr = text
        .parse()
        .map_err(|_| format!("IP Address {text:?} parse error during conversion from string: {}", reason(text)))?;
    refuse_mapped(ip, text)?;
    Ok(ip)
}

fn parse_cidr(text: &str) -> Result<Cidr, String> {
    let error = |reason: &str| {
        Err(format!("network address parse error during conversion from string: netip.ParsePrefix({text:?}): {reason}"))
    };
    let Some((address, length)) = text.rsplit_once('/') else { return error("no '/'") };
    let Ok(ip) = address.parse::<IpAddr>() else {
        return error(&reason(address));
    };
    let has_form =
        !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    if !has_form {
        return error(&format!("bad bits after slash: {length:?}"));
    }
    let most = if ip.is_ipv4() { 32 } else { 128 };
    match length.parse::<u8>().ok().filter(|length| *length <= most) {
        Some(length) => {
            refuse_mapped(ip, text)?;
            Ok(Cidr { address: ip, length })
        }
        None => error("prefix length out of range"),
    }
}

/// Why a text is no address, in the words of Go.
fn reason(text: &str) -> String {
    let (message, rest) = match text.chars().find(|c| matches!(c, '.' | ':' | '%')) {
        Some('.') => wrong_v4(text),
        Some(':') => ("unexpected character", text),
        Some(_) => ("missing IPv6 address", ""),
        None => ("unable to parse IP", ""),
    };
    let at = if rest.is_empty() { String::new() } else { format!(" (at {rest:?})") };
    format!("ParseAddr({text:?}): {message}{at}")
}

/// What is wrong with four numbers between dots, and from where on.
fn wrong_v4(text: &str) -> (&'static str, &str) {
    let mut dots = 0;
    let mut number: Option<u32> = None;
    for (at, c) in text.char_indices() {
        match (c.to_digit(10), number) {
            (Some(_), Some(0)) => return ("IPv4 field has octet with leading zero", ""),
            (Some(digit), _) => {
                let value = number.unwrap_or(0) * 10 + digit;
                if value > 255 {
                    return ("IPv4 field has value >255", "");
                }
                number = Some(value);
            }
            (None, _) if c != '.' => return ("unexpected character", &text[at..]),
            (None, None) => return ("IPv4 field must have at least one digit", &text[at..]),
            (None, Some(_)) if at + 1 == text.len() => return ("IPv4 field must have at least one digit", &text[at..]),
            (None, Some(_)) if dots == 3 => return ("IPv4 address too long", ""),
            (None, Some(_)) => (dots, number) = (dots + 1, None),
        }
    }
    ("IPv4 address too short", "")
}

fn refuse_mapped(ip: IpAddr, text: &str) -> Result<(), String> {
    match ip {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        _ => Ok(()),
    }
}
