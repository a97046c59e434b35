//! Which names are identifiers of the Go language.

use crate::unicode::{is_digit, is_letter};

const KEYWORDS: [&str; 25] = [
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "default",
    "defer",
    "else",
    "fallthrough",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "interface",
    "map",
    "package",
    "range",
    "return",
    "select",
    "struct",
    "switch",
    "type",
    "var",
];

/// Whether `name` is an identifier: letters, digits and underscores, no digit first, and no keyword.
///
/// Words such as `true` and `nil` are identifiers that happen to be declared.
pub fn is_identifier(name: &str) -> bool {
    let begins = |c: char| c == '_' || is_letter(c);
    let mut chars = name.chars();
    chars.next().is_some_and(begins) && chars.all(|c| begins(c) || is_digit(c)) && !KEYWORDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_go() {
        for name in ["a", "_", "clusterName", "a1", "é", "界٣", "true", "nil", "iota", "Type", "any"] {
            assert!(is_identifier(name), "{name}");
        }
        for name in [
            "",
            "1a",
            "a-b",
            "a.b",
            "kubernetes.io/x",
            "a b",
            "type",
            "func",
            "range",
            "map",
            "default",
            "٣a",
            "½",
            "a\u{301}",
        ] {
            assert!(!is_identifier(name), "{name}");
        }
    }
}
