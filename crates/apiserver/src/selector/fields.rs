//! Field selectors: `metadata.name=a,status.phase!=Running`.

/// A conjunction of conditions on fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    /// The conditions.
    pub(crate) terms: Vec<FieldTerm>,
}

/// A field that must have a value, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldTerm {
    /// The field.
    pub(crate) field: String,
    /// The value.
    pub(crate) value: String,
    /// Whether the field must have it.
    pub(crate) equal: bool,
}

impl FieldSelector {
    /// Reads a selector.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        let mut pieces = split_terms(text);
        // The order decides which of several mistakes is named.
        pieces.sort_unstable();
        for term in pieces.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, equal, value)) = split_term(term) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            let value = unescape(value).map_err(|problem| format!("invalid field selector: {problem}"))?;
            if !(field.is_empty() && value.is_empty()) {
                terms.push(FieldTerm { field: field.to_owned(), value, equal });
            }
        }
        Ok(Self { terms })
    }

    /// Whether everything matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value a field must have, if one is required.
    pub(crate) fn required(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether the values of fields match.
    pub(crate) fn matches(&self, value_of: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|term| (value_of(&term.field) == term.value) == term.equal)
    }
}

/// The pieces between commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (position, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    for (position, _) in term.char_indices() {
        let rest = &term[position..];
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..position], equal, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, String> {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                Some(other) => return Err(format!("invalid escape sequence: \\{other}")),
                None => return Err("invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("unescaped character in value: {}", u32::from(character))),
            _ => text.push(character),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let got = FieldSelector::parse(text).map(|selector| {
            let terms = selector.terms.iter();
            let terms =
                terms.map(|term| format!("{}{}{}", term.field, if term.equal { "=" } else { "!=" }, term.value));
            terms.collect::<Vec<_>>().join(" & ")
        });
        assert_eq!(got.unwrap_or_else(|problem| problem), expected, "{text}");
    }

    #[test]
    fn selectors() {
        check("", "");
        check("metadata.name=a,,status.phase!=b", "metadata.name=a & status.phase!=b");
        check(r"a==x\,y\=z\\", r"a=x,y=z\");
        check("=b", "=b");
        check("=,metadata.name=a,!=", "metadata.name=a");
    }

    #[test]
    fn refusals() {
        check("metadata.name in (a,b)", "invalid selector: 'metadata.name in (a,b)'; can't understand 'b)'");
        check("a>b", "invalid selector: 'a>b'; can't understand 'a>b'");
        check("a=b=c", "invalid field selector: unescaped character in value: 61");
        check(r"a=a\b", r"invalid field selector: invalid escape sequence: \b");
    }
}
