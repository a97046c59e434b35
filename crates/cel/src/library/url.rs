//! URLs as Go reads those of requests: absolute, or a path.

use std::{collections::BTreeMap, sync::Arc};

use super::{Outcome, Run, fail, no_overload};
use crate::value::{Key, Map, Value};

/// A URL taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    scheme: String,
    host: String,
    /// As it is written, or escaped where it has to be.
    path: String,
    query: String,
}

impl Url {
    /// Reads a URL.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let error = |reason: &str| Err(format!("parse {text:?}: {reason}"));
        if text.is_empty() {
            return error("empty url");
        }
        if text.chars().any(|c| c.is_ascii_control()) {
            return error("net/url: invalid control character in URL");
        }
        let (scheme, rest) = match split_scheme(text) {
            Ok(parts) => parts,
            Err(reason) => return error(reason),
        };
        let (rest, _fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') {
            return match scheme.is_empty() {
                false => Ok(Self {
                    text: text.to_owned(),
                    scheme,
                    host: String::new(),
                    path: String::new(),
                    query: query.to_owned(),
                }),
                true => error("invalid URI for request"),
            };
        }
        let has_authority = (!scheme.is_empty() || !rest.starts_with("///")) && rest.starts_with("//");
        let (host, path) = match rest.strip_prefix("//").filter(|_| has_authority) {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (authority, path) = rest.split_at(end);
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                (host.to_owned(), path)
            }
            None => (String::new(), rest),
        };
        if let Err(reason) = check_host(&host) {
            return error(&reason);
        }
        match unescape(path, false) {
            Ok(decoded) => {
                let path = if is_escaped(path) { path.to_owned() } else { escape_path(&decoded) };
                Ok(Self { text: text.to_owned(), scheme, host: decode_host(&host), path, query: query.to_owned() })
            }
            Err(bad) => error(&format!("invalid URL escape {bad:?}")),
        }
    }

    /// The number of bytes it was written with.
    pub(crate) fn length(&self) -> usize {
        self.text.len()
    }

    /// The host without its port and brackets, and the port.
    fn host_and_port(&self) -> (&str, &str) {
        let after_bracket = self.host.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match self.host[after_bracket..].rfind(':') {
            Some(at) if self.host[after_bracket + at + 1..].bytes().all(|b| b.is_ascii_digit()) => {
                (&self.host[..after_bracket + at], &self.host[after_bracket + at + 1..])
            }
            _ => (self.host.as_str(), ""),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        (host, port)
    }
}

fn split_scheme(text: &str) -> Result<(String, &str), &'static str> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            '0'..='9' | '+' | '-' | '.' => return Ok((String::new(), text)),
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((text[..at].to_ascii_lowercase(), &text[at + 1..])),
            _ => return Ok((String::new(), text)),
        }
    }
    Ok((String::new(), text))
}

fn check_host(host: &str) -> Result<(), String> {
    let port_from = match host.strip_prefix('[') {
        Some(_) => match host.rfind(']') {
            Some(end) => end + 1,
            None => return Err("missing ']' in host".to_owned()),
        },
        None => host.rfind(':').unwrap_or(host.len()),
    };
    let port = &host[port_from..];
    let valid = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    if !valid {
        return Err(format!("invalid port {port:?} after host"));
    }
    let bad = host.chars().find(|c| matches!(c, ' ' | '<' | '>' | '"' | '{' | '}' | '|' | '\\' | '^' | '`'));
    match bad {
        Some(bad) => Err(format!("invalid character {:?} in host name", bad.to_string())),
        None => Ok(()),
    }
}

fn decode_host(host: &str) -> String {
    unescape(host, false).unwrap_or_else(|_| host.to_owned())
}

/// A text with its escapes replaced; the first bad one if there is any.
fn unescape(text: &str, plus_is_blank: bool) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let digits = text.get(at + 1..at + 3).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(byte) => out.push(byte),
                    None => return Err(text.chars().skip(text[..at].chars().count()).take(3).collect()),
                }
                at += 3;
            }
            b'+' if plus_is_blank => {
                out.push(b' ');
                at += 1;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Whether a path is written with all escapes that it needs.
fn is_escaped(path: &str) -> bool {
    path.bytes()
        .all(|b| is_plain(b) || matches!(b, b'!' | b'\'' | b'(' | b')' | b'*' | b';' | b',' | b'[' | b']' | b'%'))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+/:=@".contains(&byte)
}

fn escape_path(path: &str) -> String {
    let escape = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(escape).collect()
}

pub(super) const TABLE: &[(&str, Run)] = &[
    ("url", |args| match args {
        [Value::String(text)] => match Url::parse(text.as_ref()) {
            Ok(url) => Ok(Value::Url(Arc::new(url))),
            Err(error) => fail(format!("URL parse error during conversion from string: {error}")),
        },
        _ => no_overload(),
    }),
    ("isURL", |args| match args {
        [Value::String(text)] => Ok(Value::Bool(Url::parse(text.as_ref()).is_ok())),
        _ => no_overload(),
    }),
    ("getScheme", |args| of(args, |url| Value::text(url.scheme.as_str()))),
    ("getHost", |args| of(args, |url| Value::text(url.host.as_str()))),
    ("getHostname", |args| of(args, |url| Value::text(url.host_and_port().0))),
    ("getPort", |args| of(args, |url| Value::text(url.host_and_port().1))),
    ("getEscapedPath", |args| of(args, |url| Value::text(url.path.as_str()))),
    ("getQuery", |args| of(args, query)),
];

fn of<'v>(args: &[Value<'v>], make: fn(&Url) -> Value<'static>) -> Outcome<'v> {
    match args {
        [Value::Url(url)] => Ok(make(url)),
        _ => no_overload(),
    }
}

/// The values of each parameter; those that are not well written are left out.
fn query(url: &Url) -> Value<'static> {
    let mut parameters: BTreeMap<String, Vec<Value<'static>>> = BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Ok(name), Ok(value)) = (unescape(name, true), unescape(value, true)) {
            parameters.entry(name).or_default().push(Value::text(value));
        }
    }
    let entry = |(name, values): (String, Vec<Value<'static>>)| {
        let key: Arc<str> = Arc::from(name);
        (Key::String(Arc::clone(&key)), (Value::text(key), Value::list(values)))
    };
    Value::Map(Map::Owned(Arc::new(parameters.into_iter().map(entry).collect())))
}
