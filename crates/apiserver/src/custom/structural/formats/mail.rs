//! Addresses of mail: bare, or behind a name in angle brackets.

/// Whether a text is one address.
pub(super) fn is_address(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        Some((name, address)) => is_name(name.trim_matches([' ', '\t'])) && is_bare(address),
        None => is_bare(text),
    }
}

/// A name before an address: words, or quoted.
fn is_name(name: &str) -> bool {
    if is_quoted(name) {
        return true;
    }
    name.split([' ', '\t'])
        .filter(|word| !word.is_empty())
        .all(|word| is_quoted(word) || word.chars().all(|c| is_atom(c) || c == '.'))
}

fn is_bare(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    (is_dotted(local) || is_quoted(local)) && (is_dotted(domain) || is_literal(domain))
}

/// Words with single dots between them.
fn is_dotted(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.chars().all(is_atom))
}

fn is_literal(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.map(|inner| inner.strip_prefix("IPv6:").unwrap_or(inner));
    inner.is_some_and(|inner| inner.parse::<std::net::IpAddr>().is_ok())
}

fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else { return false };
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return false,
            '"' | '\n' | '\r' => return false,
            _ => {}
        }
    }
    text.len() > 1
}

fn is_atom(character: char) -> bool {
    character.is_ascii_alphanumeric() || !character.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(character)
}
