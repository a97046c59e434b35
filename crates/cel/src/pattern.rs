//! Regular expressions, with the errors of Go's.

use regex::Regex;

/// Patterns that would compile to more than this many bytes are refused.
const MAX_SIZE: usize = 1 << 20;

/// Compiles a pattern.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let built = regex::RegexBuilder::new(pattern).size_limit(MAX_SIZE).nest_limit(200).build();
    built.map_err(|error| format!("error parsing regexp: {}", describe(&error, pattern)))
}

/// What Go would say; what is wrong is between backquotes.
fn describe(error: &regex::Error, pattern: &str) -> String {
    let text = error.to_string();
    let known = [
        ("unclosed group", "missing closing )"),
        ("unopened group", "unexpected )"),
        ("unclosed character class", "missing closing ]"),
        ("repetition operator missing expression", "missing argument to repetition operator"),
        ("repetition quantifier", "invalid repeat count"),
        ("unrecognized escape sequence", "invalid escape sequence"),
        ("incomplete escape sequence", "trailing backslash at end of expression"),
        ("invalid character class range", "invalid character class range"),
        ("Unicode property not found", "invalid character class range"),
        ("invalid repetition count range", "invalid repeat count"),
    ];
    let message = known.iter().find(|(ours, _)| text.contains(ours)).map(|(_, go)| *go);
    match (message, error) {
        (Some("missing closing ]"), _) => {
            format!("missing closing ]: `{}`", &pattern[pattern.rfind('[').unwrap_or(0)..])
        }
        (Some("trailing backslash at end of expression"), _) => {
            "trailing backslash at end of expression: ``".to_owned()
        }
        (Some(message), _) => format!("{message}: `{pattern}`"),
        (None, regex::Error::CompiledTooBig(_)) => format!("expression too large: `{pattern}`"),
        (None, _) => format!("invalid or unsupported Perl syntax: `{pattern}`"),
    }
}
