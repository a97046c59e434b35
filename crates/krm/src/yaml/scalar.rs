//! What a scalar means, and how a new one is spelled so that every YAML reader agrees.

use super::Scalar;

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// `'single'`
    Single,
    /// `"double"`
    Double,
    /// `|`
    Literal,
    /// `>`
    Folded,
}

/// The type that a scalar resolves to, by the rules of YAML 1.2 with the number notations of YAML 1.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `null`, `~`, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that fits 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Everything else.
    String,
}

impl Scalar {
    pub(crate) fn kind(&self, tag: Option<&str>) -> Kind {
        match tag {
            Some("!" | "!!str" | "!!binary" | "!<tag:yaml.org,2002:str>") => Kind::String,
            _ if self.style == Style::Plain => resolve(&self.text),
            _ => Kind::String,
        }
    }
}

/// The type of a scalar without quotes.
pub(crate) fn resolve(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" => return Kind::Bool(true),
        "false" | "False" | "FALSE" => return Kind::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Kind::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Kind::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Kind::Float(f64::NAN),
        _ => {}
    }
    let first = text.as_bytes()[0];
    if !(first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.')) {
        return Kind::String;
    }
    match integer(text) {
        Some(value) => Kind::Int(value),
        None if looks_like_float(text) => text.replace('_', "").parse().map_or(Kind::String, Kind::Float),
        None => Kind::String,
    }
}

fn integer(text: &str) -> Option<i64> {
    let digits = text.replace('_', "");
    let (negative, magnitude) = match digits.as_bytes().first()? {
        b'-' => (true, &digits[1..]),
        b'+' => (false, &digits[1..]),
        _ => (false, digits.as_str()),
    };
    let (radix, body) = match magnitude.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &magnitude[2..]),
        [b'0', b'o' | b'O', ..] => (8, &magnitude[2..]),
        [b'0', b'b' | b'B', ..] => (2, &magnitude[2..]),
        [b'0', _, ..] => (8, &magnitude[1..]),
        _ => (10, magnitude),
    };
    if body.is_empty() || !body.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(body, radix).ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

fn looks_like_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(m, e)| (m, Some(e)));
    let mut digits = 0;
    let mut dots = 0;
    for c in mantissa.chars() {
        match c {
            '0'..='9' => digits += 1,
            '.' => dots += 1,
            '_' if digits > 0 => {}
            _ => return false,
        }
    }
    let exponent_fits = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && e.bytes().all(|b| b.is_ascii_digit())
    });
    digits > 0 && dots <= 1 && exponent_fits
}

/// Words that readers of YAML 1.1 take for booleans. We read them as strings, and quote them when we write.
const BOOLEAN_WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off"];

/// Whether a string can stand without quotes on one line and is read back as the same string everywhere.
pub(crate) fn is_plain_safe(text: &str, in_flow: bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    if resolve(text) != Kind::String || BOOLEAN_WORDS.contains(&text.to_ascii_lowercase().as_str()) {
        return false;
    }
    let indicator = match first {
        b'-' | b'?' | b':' => bytes.get(1).is_none_or(|next| matches!(next, b' ' | b',' | b'[' | b']' | b'{' | b'}')),
        _ => b",[]{}#&*!|>'\"%@` =<".contains(&first),
    };
    if indicator || last == b' ' || last == b':' || text.starts_with("---") || text.starts_with("...") {
        return false;
    }
    if in_flow && text.contains([',', '[', ']', '{', '}']) {
        return false;
    }
    let printable = text.chars().all(|c| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}'));
    // Dates and base-60 numbers begin with a digit and hold only digits and these marks.
    let number_like = (first.is_ascii_digit() || first == b'-')
        && text.chars().all(|c| c.is_ascii_digit() || "-:.+_TtZz ,".contains(c));
    printable && !number_like && !text.contains(": ") && !text.contains(" #")
}

/// A string in the given style if that can hold it, else in the nearest one that can. Never a block style.
pub(crate) fn spell(text: &str, style: Style, in_flow: bool) -> String {
    match style {
        Style::Single if fits_single(text) => format!("'{}'", text.replace('\'', "''")),
        Style::Double | Style::Single => double_quoted(text),
        _ if is_plain_safe(text, in_flow) => text.to_owned(),
        _ => double_quoted(text),
    }
}

/// Whether a string can stand in single quotes on one line.
pub(crate) fn fits_single(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}'))
}

/// A string in double quotes; the result is a JSON string as well.
pub(crate) fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether a text of several lines can be written as a literal block and read back exactly.
pub(crate) fn fits_literal(text: &str) -> bool {
    let odd =
        |c: char| c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    // An indentation indicator would be needed when the first line begins with blanks, and a block that keeps the blank
    // lines at its end would take those that follow in the file: quotes are simpler.
    text.contains('\n') && !text.chars().any(odd) && !text.starts_with([' ', '\t', '\n']) && !text.ends_with("\n\n")
}
