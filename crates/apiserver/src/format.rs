//! The formats of names, labels and numbers, each with what clients of Kubernetes are told when a value does not fit.

use std::net::IpAddr;

/// What is wrong with a value; nothing where it fits.
pub type Faults = Vec<String>;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_WORDS: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// A sentence with examples and the regular expression that upstream checks.
fn regex(words: &str, expression: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{expression}')", examples.join(" or "))
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

/// Outside of a range.
pub fn range(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

fn edges(value: &str, first: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool, last: impl Fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    match bytes {
        [] => false,
        [only] => first(*only),
        [start, middle @ .., end] => first(*start) && last(*end) && middle.iter().all(|byte| inner(*byte)),
    }
}

fn lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(value: &str) -> bool {
    edges(value, lower, |byte| lower(byte) || byte == b'-', lower)
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_qualified(value: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_alphanumeric();
    edges(value, edge, |byte| edge(byte) || b"-_.".contains(&byte), edge)
}

/// A label of a domain name.
pub fn dns_label(value: &str) -> Faults {
    let mut faults = Faults::new();
    if value.len() > 63 {
        faults.push(too_long(63));
    }
    if !is_label(value) {
        if is_subdomain(value) {
            faults.push("must not contain dots".to_owned());
        } else {
            faults.push(regex(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                 and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            ));
        }
    }
    faults
}

/// A domain name in lower case.
pub fn dns_subdomain(value: &str) -> Faults {
    let mut faults = Faults::new();
    if value.len() > 253 {
        faults.push(too_long(253));
    }
    if !is_subdomain(value) {
        faults.push(regex(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    faults
}

/// The beginning of a domain name in lower case: a dash at its end is no longer the last character.
pub fn unfinished_subdomain(value: &str) -> Faults {
    let cut = value.strip_suffix('-').and_then(|start| start.char_indices().next_back().map(|(at, _)| &start[..at]));
    dns_subdomain(&cut.map_or(value.to_owned(), |start| format!("{start}a")))
}

/// A domain name in which underscores are allowed, as in what resolvers search.
pub fn subdomain_with_underscores(value: &str) -> Faults {
    let label = |part: &str| {
        let rest = part.strip_prefix('_').unwrap_or(part);
        edges(rest, lower, |byte| lower(byte) || b"-_".contains(&byte), lower)
    };
    let mut faults = Faults::new();
    if value.len() > 253 {
        faults.push(too_long(253));
    }
    if !value.split('.').all(label) {
        let part = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
        faults.push(regex(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', \
             and must start and end with an alphanumeric character",
            &format!("{part}(\\.{part})*"),
            &["example.com"],
        ));
    }
    faults
}

/// A domain name below a wildcard.
pub fn wildcard_subdomain(value: &str) -> Faults {
    let mut faults = Faults::new();
    if value.len() > 253 {
        faults.push(too_long(253));
    }
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        faults.push(regex(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of \
             lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!("\\*\\.{SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    faults
}

/// A label of a domain name that begins with a letter.
pub fn dns_1035_label(value: &str) -> Faults {
    let mut faults = Faults::new();
    if value.len() > 63 {
        faults.push(too_long(63));
    }
    if !edges(value, |byte| byte.is_ascii_lowercase(), |byte| lower(byte) || byte == b'-', lower) {
        faults.push(regex(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
             and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// A name with an optional domain in front: the key of a label.
pub fn qualified_name(value: &str) -> Faults {
    let examples = ["MyName", "my.name", "123-abc"];
    let mut faults = Faults::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                faults.extend(dns_subdomain(prefix).into_iter().map(|fault| format!("prefix part {fault}")));
            }
            name
        }
        _ => {
            let words = regex(QUALIFIED_WORDS, QUALIFIED, &examples);
            return vec![format!(
                "a qualified name {words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        faults.push(format!("name part {}", too_long(63)));
    }
    if !is_qualified(name) {
        faults.push(format!("name part {}", regex(QUALIFIED_WORDS, QUALIFIED, &examples)));
    }
    faults
}

/// The value of a label.
pub fn label_value(value: &str) -> Faults {
    let mut faults = Faults::new();
    if value.len() > 63 {
        faults.push(too_long(63));
    }
    if !value.is_empty() && !is_qualified(value) {
        faults.push(regex(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            &format!("({QUALIFIED})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// A key of the data of a config map or secret.
pub fn config_key(value: &str) -> Faults {
    let mut faults = Faults::new();
    if value.len() > 253 {
        faults.push(too_long(253));
    }
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        faults.push(regex(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    faults.extend(parent_directory(value));
    faults
}

fn parent_directory(value: &str) -> Option<String> {
    match value {
        "." => Some("must not be '.'".to_owned()),
        ".." => Some("must not be '..'".to_owned()),
        other if other.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

/// The name of an environment variable.
pub fn environment_name(value: &str) -> Faults {
    let mut faults = Faults::new();
    if value.is_empty() {
        faults.push("environment variable name must be non-empty".to_owned());
    }
    if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        faults.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    faults
}

/// The name of a port.
pub fn port_name(value: &str) -> Faults {
    let mut faults = Faults::new();
    if value.len() > 15 {
        faults.push(too_long(15));
    }
    if value.is_empty() || !value.bytes().all(|byte| lower(byte) || byte == b'-') {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !value.bytes().any(|byte| byte.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

/// A number of a port.
pub fn port_number(value: i64) -> Faults {
    if (1..=65_535).contains(&value) { Faults::new() } else { vec![range(1, 65_535)] }
}

/// A name that stands in paths as it is.
pub fn path_segment(value: &str) -> Faults {
    let mut faults = Faults::new();
    if matches!(value, "." | "..") {
        faults.push(format!("may not be '{value}'"));
    }
    faults.extend(path_segment_prefix(value));
    faults
}

/// The beginning of a name that stands in paths as it is.
pub fn path_segment_prefix(value: &str) -> Faults {
    ["/", "%"].iter().filter(|odd| value.contains(**odd)).map(|odd| format!("may not contain '{odd}'")).collect()
}

/// A percentage.
pub fn percent(value: &str) -> Faults {
    let fits = value
        .strip_suffix('%')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    if fits {
        return Faults::new();
    }
    vec![regex("a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", &["1%", "93%"])]
}

/// The name of an HTTP header.
pub fn header_name(value: &str) -> Faults {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Faults::new();
    }
    vec![regex(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// The reason of a condition.
pub fn condition_reason(value: &str) -> Faults {
    let bytes = value.as_bytes();
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let starts = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    if starts && bytes.last().is_some_and(word) && bytes.iter().all(|byte| word(byte) || b",:".contains(byte)) {
        return Faults::new();
    }
    vec![regex(
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
    )]
}

/// A name as programming languages have them.
pub fn identifier(value: &str) -> Faults {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if edges(value, |byte| byte.is_ascii_alphabetic() || byte == b'_', inner, inner) {
        return Faults::new();
    }
    vec![regex(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// What may stand in the path of a web address.
pub fn web_path(value: &str) -> Faults {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !value.is_empty() && value.bytes().all(fits) {
        return Faults::new();
    }
    vec!["Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')".to_owned()]
}

/// An address of either family, as old fields take it: numbers may have zeros in front.
pub fn ip_address(value: &str) -> Faults {
    match sloppy_address(value) {
        Some(_) => Faults::new(),
        None => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// An address of either family, written in the one way it has.
pub fn canonical_ip_address(value: &str) -> Faults {
    let Some(address) = sloppy_address(value) else { return ip_address(value) };
    let mut faults = Faults::new();
    match value.parse::<IpAddr>() {
        Err(_) => faults.push("must not have leading 0s".to_owned()),
        Ok(parsed) if parsed != parsed.to_canonical() => {
            faults.push("must not be an IPv4-mapped IPv6 address".to_owned());
        }
        Ok(_) => {}
    }
    let canonical = address.to_canonical().to_string();
    if faults.is_empty() && canonical != value {
        faults.push(format!("must be in canonical form ({})", crate::gotext::quote(&canonical)));
    }
    faults
}

/// A network of either family, as old fields take it.
pub fn cidr(value: &str) -> Faults {
    match sloppy_network(value) {
        Some(_) => Faults::new(),
        None => vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()],
    }
}

/// A network of either family, written in the one way it has.
pub fn canonical_cidr(value: &str) -> Faults {
    let Some(network) = sloppy_network(value) else { return cidr(value) };
    let strict = value
        .split_once('/')
        .is_some_and(|(address, bits)| address.parse::<IpAddr>().is_ok() && (bits == "0" || !bits.starts_with('0')));
    let canonical = format!("{}/{}", network.address, network.bits);
    let fault = if !strict {
        "must not have leading 0s in IP or prefix length".to_owned()
    } else if network.mapped {
        "must not have an IPv4-mapped IPv6 address".to_owned()
    } else if network.first() != network.address {
        "must not have bits set beyond the prefix length".to_owned()
    } else if canonical != value {
        format!("must be in canonical form ({})", crate::gotext::quote(&canonical))
    } else {
        return Faults::new();
    };
    vec![fault]
}

/// A network, or an address within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The address that was written.
    pub address: IpAddr,
    /// How many bits of it all addresses of the network have in common.
    pub bits: u8,
    /// Whether an address of the fourth version was written as one of the sixth.
    mapped: bool,
}

impl Network {
    /// The address without the bits that tell the addresses of the network apart.
    pub fn first(&self) -> IpAddr {
        let bits = u32::from(self.bits);
        match self.address {
            IpAddr::V4(address) => IpAddr::V4((u32::from(address) & !u32::MAX.checked_shr(bits).unwrap_or(0)).into()),
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::MAX.checked_shr(bits).unwrap_or(0)).into()),
        }
    }

    /// Whether an address lies in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let there = Self { address, ..*self };
        self.address.is_ipv4() == address.is_ipv4() && there.first() == self.first()
    }
}

/// Reads an address whose numbers may have zeros in front.
pub fn sloppy_address(value: &str) -> Option<IpAddr> {
    if value.contains(':') {
        return value.parse().ok();
    }
    match value.split('.').map(sloppy_number).collect::<Option<Vec<u8>>>()?.as_slice() {
        [a, b, c, d] => Some(IpAddr::from([*a, *b, *c, *d])),
        _ => None,
    }
}

/// Reads a small number that may have zeros in front.
fn sloppy_number(digits: &str) -> Option<u8> {
    let number = digits.trim_start_matches('0');
    match (digits, number) {
        ("", _) => None,
        (_, "") => Some(0),
        (_, number) if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok(),
        _ => None,
    }
}

/// Reads a network whose numbers may have zeros in front.
pub fn sloppy_network(value: &str) -> Option<Network> {
    let (address, bits) = value.split_once('/')?;
    let address = sloppy_address(address)?;
    let bits = sloppy_number(bits)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let mapped = address != address.to_canonical();
    (bits <= most).then_some(Network { address, bits, mapped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_worded_as_upstream_words_them() {
        assert_eq!(
            dns_1035_label("1a"),
            [
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end \
              with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert!(dns_label("a.b") == ["must not contain dots"] && dns_subdomain("a.b").is_empty());
        assert!(qualified_name("a/b/c").len() == 1 && qualified_name("ex.io/A_b").is_empty());
    }

    #[test]
    fn addresses_are_read_loosely_and_judged_strictly() {
        for (value, strict) in [
            ("10.9.8.7", ""),
            ("2001:db8::1", ""),
            ("010.0.0.1", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
            ("2001:DB8::1", "must be in canonical form (\"2001:db8::1\")"),
        ] {
            assert!(ip_address(value).is_empty(), "{value}");
            assert_eq!(canonical_ip_address(value).concat(), strict, "{value}");
        }
        for value in ["", "1.2.3", "1.2.3.256", "1.2.3.4.5", "a.b.c.d", "1.2.3.-4", ":::"] {
            assert_eq!(ip_address(value).len(), 1, "{value}");
        }
        for (value, strict) in [
            ("10.0.0.0/8", ""),
            ("0.0.0.0/0", ""),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("2001:DB8::/64", "must be in canonical form (\"2001:db8::/64\")"),
        ] {
            assert!(cidr(value).is_empty(), "{value}");
            assert_eq!(canonical_cidr(value).concat(), strict, "{value}");
        }
        assert!(cidr("10.0.0.0/33").len() == 1 && cidr("10.0.0.0").len() == 1 && cidr("::/129").len() == 1);
    }
}
