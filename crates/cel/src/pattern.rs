//! Regular expressions as Go has them, with Go's errors.

mod search;
mod translate;

use regex::{Regex, RegexBuilder};

pub(crate) use search::Pattern;

/// Patterns that would compile to more than this many bytes are refused.
const MAX_SIZE: usize = 4 << 20;
/// What a pattern may keep to be quick, in bytes.
const CACHE_SIZE: usize = 256 << 10;

/// Compiles a pattern.
///
/// # Errors
/// When it is none: in the words of Go.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = translate::translate(pattern).map_err(|error| format!("error parsing regexp: {error}"))?;
    builder(&translated.text, MAX_SIZE).build().map_err(|error| go_error(&error, pattern))
}

/// About how many bytes a compiled pattern takes; at least as many as a text that is no pattern is taken for.
#[must_use]
pub fn size(pattern: &str) -> usize {
    let Ok(translated) = translate::translate(pattern) else { return SMALLEST };
    let mut size = SMALLEST;
    while size < MAX_SIZE {
        match builder(&translated.text, size).build() {
            Err(regex::Error::CompiledTooBig(_)) => size *= 4,
            _ => break,
        }
    }
    size
}

/// Hardly any pattern takes less, in bytes.
const SMALLEST: usize = 4 << 10;

fn builder(translated: &str, size: usize) -> RegexBuilder {
    let mut builder = RegexBuilder::new(translated);
    builder.size_limit(size).dfa_size_limit(CACHE_SIZE).nest_limit(200);
    builder
}

fn go_error(error: &regex::Error, pattern: &str) -> String {
    format!("error parsing regexp: {}", describe(error, pattern))
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
        ("invalid character class range", "invalid character class range"),
        ("Unicode property", "invalid character class range"),
        ("invalid repetition count range", "invalid repeat count"),
        ("duplicate capture group name", "duplicate capture group name"),
    ];
    let message = known.iter().find(|(ours, _)| text.contains(ours)).map(|(_, go)| *go);
    match (message, error) {
        (Some(message), _) => format!("{message}: `{pattern}`"),
        (None, regex::Error::CompiledTooBig(_)) => format!("expression too large: `{pattern}`"),
        (None, _) => format!("invalid or unsupported Perl syntax: `{pattern}`"),
    }
}
