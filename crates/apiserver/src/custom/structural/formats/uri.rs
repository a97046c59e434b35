//! URIs as they stand in requests: absolute ones, and paths that begin with a slash.

/// Whether a text is a URI of a request.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        // Without slashes it is opaque, if it has a scheme.
        return !scheme.is_empty();
    }
    let Some(after) = rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !rest.starts_with("///")) else {
        return is_escaped(rest);
    };
    let (authority, path) = after.find('/').map_or((after, ""), |at| after.split_at(at));
    is_authority(authority) && is_escaped(path)
}

/// The scheme, empty where there is none, and the rest; nothing if there is a colon with nothing before it.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return None,
            ':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

/// Whether percent signs are followed by two digits.
fn is_escaped(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |at: usize| bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    bytes.iter().enumerate().all(|(at, byte)| *byte != b'%' || digits(at))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').map_or(("", text), |(user, host)| (user, host));
    let is_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(is_user) || !is_escaped(user) {
        return false;
    }
    let port = match host.strip_prefix('[') {
        Some(inner) => match inner.find(']') {
            Some(end) => &inner[end + 1..],
            None => return false,
        },
        None => {
            let (name, port) = host.find(':').map_or((host, ""), |at| host.split_at(at));
            let is_host = |c: char| c.is_ascii_alphanumeric() || !c.is_ascii() || "-._~!$&'()*+,;=%\"<>[]".contains(c);
            // In names of hosts only what is not ASCII is escaped.
            let escapes =
                name.match_indices('%').all(|(at, _)| name[at..].len() > 2 && name.as_bytes()[at + 1] >= b'8');
            if !name.chars().all(is_host) || !is_escaped(name) || !escapes {
                return false;
            }
            port
        }
    };
    port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}
