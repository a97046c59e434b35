//! The formats of texts that schemas name: `date-time`, `ipv4`, `uuid` and the like.

mod mail;
mod numbers;
mod uri;

use std::sync::LazyLock;

use regex::Regex;

use crate::format;

/// Formats that are defined, but by which objects are not checked yet: older servers do not know them.
const TOO_NEW: [&str; 2] = ["k8sshortname", "k8slongname"];

/// Whether objects are checked by a format. Dashes in its name do not count.
pub(in crate::custom) fn is_known(name: &str) -> bool {
    is_defined(name) && !TOO_NEW.contains(&name.replace('-', "").as_str())
}

/// Whether defaults are checked by a format.
pub(super) fn is_defined(name: &str) -> bool {
    !name.is_empty() && find(name).is_some()
}

/// Whether a text is written as a format wants it; formats that nobody knows want nothing.
pub(super) fn fits(name: &str, text: &str) -> bool {
    find(name).is_none_or(|format| format(text))
}

type Format = fn(&str) -> bool;

fn find(name: &str) -> Option<Format> {
    let name = name.replace('-', "");
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
}

macro_rules! pattern {
    ($text:literal) => {
        |text| {
            static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a sound pattern"));
            PATTERN.is_match(text)
        }
    };
}

const FORMATS: &[(&str, Format)] = &[
    ("bsonobjectid", pattern!("^[0-9a-fA-F]{24}$")),
    ("uri", uri::is_request_uri),
    ("email", mail::is_address),
    ("hostname", is_hostname),
    ("ipv4", |text| text.contains('.') && format::sloppy_address(text).is_some()),
    ("ipv6", |text| text.contains(':') && text.parse::<std::net::IpAddr>().is_ok()),
    ("cidr", |text| format::sloppy_network(text).is_some()),
    ("mac", is_mac),
    ("uuid", pattern!("(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")),
    ("uuid3", pattern!("(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$")),
    ("uuid4", pattern!("(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$")),
    ("uuid5", pattern!("(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$")),
    ("isbn", |text| numbers::is_isbn_10(text) || numbers::is_isbn_13(text)),
    ("isbn10", numbers::is_isbn_10),
    ("isbn13", numbers::is_isbn_13),
    ("creditcard", numbers::is_credit_card),
    ("ssn", |text| text.len() == 11 && numbers::is_social_security(text)),
    ("hexcolor", pattern!("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$")),
    ("rgbcolor", is_rgb_colour),
    ("byte", pattern!("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$")),
    ("password", |_| true),
    ("date", is_date),
    ("duration", is_duration),
    ("datetime", is_date_time),
    ("k8sshortname", |text| text.len() <= 63 && format::dns_label(text).is_empty()),
    ("k8slongname", |text| text.len() <= 253 && format::dns_subdomain(text).is_empty()),
];

fn is_hostname(text: &str) -> bool {
    // Symbols count as letters, but not in the last part of several.
    const PATTERN: &str = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
    static HOST: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).expect("a sound pattern"));
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && HOST.is_match(text)
}

/// Six, eight or twenty bytes: in pairs of digits with colons or dashes, or in fours with dots.
fn is_mac(text: &str) -> bool {
    let by = |separator: char, digits: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        let is_part = |part: &&str| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        counts.contains(&parts.len()) && parts.iter().all(is_part)
    };
    by(':', 2, [6, 8, 20]) || by('-', 2, [6, 8, 20]) || by('.', 4, [3, 4, 10])
}

fn is_rgb_colour(text: &str) -> bool {
    const PATTERN: &str = r"^rgb\([ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*,[ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*,[ \t\n\f\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \t\n\f\r]*\)$";
    static COLOUR: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).expect("a sound pattern"));
    COLOUR.is_match(text)
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    shape && text.parse::<jiff::civil::Date>().is_ok()
}

/// A date, a `t`, a time and a zone. What stands behind a second `t` does not count.
fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").expect("a sound pattern")
    });
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.captures(time) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// As Go writes spans of time, or with any number and unit somewhere in it.
fn is_duration(text: &str) -> bool {
    const GO: &str = r"^[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$";
    static GO_SPAN: LazyLock<Regex> = LazyLock::new(|| Regex::new(GO).expect("a sound pattern"));
    static PART: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"([0-9]+)[ \t\n\f\r]*([A-Za-zµ]+)").expect("a sound pattern"));
    if GO_SPAN.is_match(text) {
        return true;
    }
    let mut found = false;
    for part in PART.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(&part[2].to_lowercase());
    }
    found
}

/// The last spelling of a unit may go on: `hour`, `hours`.
fn is_unit(unit: &str) -> bool {
    const UNITS: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    UNITS.iter().any(|(short, long)| short.contains(&unit) || unit.starts_with(long))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        for (name, right, wrong) in [
            ("date", "2024-02-29", "2023-02-29"),
            ("date-time", "2024-01-01T10:00:00Z", "2024-01-01 10:00:00Z"),
            ("datetime", "2024-01-01t10:00:00.5+01:00", "2024-01-01T24:00:00Z"),
            ("duration", "1h30m", "soon"),
            ("duration", "3 weeks", "3 x"),
            ("ipv4", "10.0.0.01", "10.0.0"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0"),
            ("mac", "01:23:45:67:89:ab", "01:23:45:67:89"),
            ("mac", "0123.4567.89ab", "0123:4567:89ab"),
            ("uuid", "C56A4180-65AA-42EC-A945-5FD21DEC0538", "c56a4180"),
            ("uuid4", "c56a4180-65aa-42ec-a945-5fd21dec0538", "c56a4180-65aa-32ec-a945-5fd21dec0538"),
            ("email", "a.b@example.com", "a.b"),
            ("email", "Ada <ada@example.com>", "Ada <ada>"),
            ("uri", "https://example.com/a?b=c", "example.com"),
            ("uri", "/path", "http://a b/"),
            ("hostname", "a.example.com", "a_b.example.com"),
            ("byte", "aGk=", "aGk"),
            ("byte", "aGk=", ""),
            ("isbn10", "0-321-75104-3", "0321751044"),
            ("isbn13", "978-0321751041", "978-0321751042"),
            ("creditcard", "4111 1111 1111 1111", "4111111111111112"),
            ("ssn", "123-45-6789", "123456789"),
            ("hexcolor", "#fff", "#ffff"),
            ("rgbcolor", "rgb(1, 2,255)", "rgb(1,2,256)"),
            ("k8s-short-name", "a-b", "A"),
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
        ] {
            assert!(is_defined(name), "{name}");
            assert!(fits(name, right), "{name} {right}");
            assert!(!fits(name, wrong), "{name} {wrong}");
        }
        assert!(!is_known("k8s-short-name") && !is_defined("int32") && !is_known("") && fits("whatever", "x"));
    }
}
