//! The type of a body, as Go reads the header that names it.

/// The type without its parameters, in lower case; none where the header is not well formed.
pub(crate) fn media_type(header: &str) -> Option<String> {
    let (kind, parameters) = header.split_at(header.find(';').unwrap_or(header.len()));
    let kind = kind.trim().to_ascii_lowercase();
    let (major, minor) = kind.split_once('/').map_or((kind.as_str(), None), |(major, minor)| (major, Some(minor)));
    let named = is_token(major) && minor.is_none_or(is_token);
    (named && are_parameters(parameters)).then_some(kind)
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && token(text).len() == text.len()
}

/// What a text begins with that may be a word of a header.
fn token(text: &str) -> &str {
    let special = |character: char| !character.is_ascii_graphic() || r#"()<>@,;:\"/[]?="#.contains(character);
    &text[..text.find(special).unwrap_or(text.len())]
}

/// Whether a text is a row of parameters, in which no name has two values.
fn are_parameters(mut text: &str) -> bool {
    let mut known: Vec<(String, String)> = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() || text.trim_end() == ";" {
            return true;
        }
        let Some((name, value, rest)) = parameter(text) else { return false };
        if known.iter().any(|(other, earlier)| *other == name && *earlier != value) {
            return false;
        }
        known.push((name, value));
        text = rest;
    }
}

/// A parameter with the semicolon before it, and what comes after it.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let text = text.strip_prefix(';')?.trim_start();
    let name = token(text);
    let rest = text[name.len()..].trim_start().strip_prefix('=')?.trim_start();
    let (value, rest) = match rest.starts_with('"') {
        true => quoted(rest)?,
        false => Some((token(rest).to_owned(), &rest[token(rest).len()..])).filter(|(value, _)| !value.is_empty())?,
    };
    (!name.is_empty()).then(|| (name.to_ascii_lowercase(), value, rest))
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => value.push(characters.next()?.1),
            '\r' | '\n' => return None,
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types() {
        for (header, kind) in [
            ("application/json", Some("application/json")),
            ("Application/JSON; charset=utf-8;", Some("application/json")),
            (r#"application/json; charset="utf-8""#, Some("application/json")),
            ("application/json;a=b;a=b", Some("application/json")),
            ("json", Some("json")),
            (";", None),
            ("", None),
            ("application/", None),
            ("a/b/c", None),
            ("application/json x", None),
            ("application/json; charset", None),
            ("application/json;;", None),
            ("application/json;=", None),
            ("application/json;a=b;a=c", None),
            (r#"application/json; a="b"#, None),
            ("application/json; a=b c", None),
        ] {
            assert_eq!(media_type(header).as_deref(), kind, "{header}");
        }
    }
}
