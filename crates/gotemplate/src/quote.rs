//! Go's quoted strings and characters, both ways.

use crate::unicode::{self, REPLACEMENT};

/// Which characters a quoted string shows as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything Go calls printable.
    Printable,
    /// Only printable ASCII.
    Ascii,
}

/// `bytes` between double quotes.
pub(crate) fn quote(bytes: &[u8], shown: Shown) -> String {
    let mut quoted = String::with_capacity(bytes.len() + 2);
    quoted.push('"');
    let mut at = 0;
    for (c, width) in unicode::decode_all(bytes) {
        if c == REPLACEMENT && width == 1 {
            quoted.push_str(&format!("\\x{:02x}", bytes[at]));
        } else {
            push_escaped(&mut quoted, c, '"', shown);
        }
        at += width;
    }
    quoted.push('"');
    quoted
}

/// `c` between single quotes.
pub(crate) fn quote_char(c: char, shown: Shown) -> String {
    let mut quoted = String::from('\'');
    push_escaped(&mut quoted, c, '\'', shown);
    quoted.push('\'');
    quoted
}

/// Whether `bytes` can stand between backquotes on one line, as they are.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    unicode::decode_all(bytes).all(|(c, width)| match c {
        REPLACEMENT => width > 1,
        '\t' => true,
        '`' | '\u{7f}' | '\u{feff}' => false,
        _ => c >= ' ',
    })
}

fn push_escaped(quoted: &mut String, c: char, quote: char, shown: Shown) {
    if c == quote || c == '\\' {
        quoted.push('\\');
        quoted.push(c);
        return;
    }
    if unicode::is_printable(c) && (shown == Shown::Printable || c.is_ascii()) {
        quoted.push(c);
        return;
    }
    match c {
        '\x07' => quoted.push_str("\\a"),
        '\x08' => quoted.push_str("\\b"),
        '\x0c' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\x0b' => quoted.push_str("\\v"),
        _ => quoted.push_str(&match u32::from(c) {
            code @ (0..0x20 | 0x7f) => format!("\\x{code:02x}"),
            code @ ..0x1_0000 => format!("\\u{code:04x}"),
            code => format!("\\U{code:08x}"),
        }),
    }
}

/// What a string literal with its quotes (double or back) means; `None` when Go would call it invalid syntax.
pub(crate) fn unquote(literal: &str) -> Option<Vec<u8>> {
    if let Some(raw) = literal.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        return Some(raw.bytes().filter(|&byte| byte != b'\r').collect());
    }
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (unit, after) = unescape(rest, '"')?;
        match unit {
            Unit::Byte(byte) => bytes.push(byte),
            Unit::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = after;
    }
    Some(bytes)
}

/// Why a character constant was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadChar {
    Syntax,
    Malformed,
}

/// The number that a character constant, with its quotes, stands for.
pub(crate) fn unquote_char(literal: &str) -> Result<i64, BadChar> {
    let inner = literal.strip_prefix('\'').ok_or(BadChar::Syntax)?;
    let (unit, rest) = unescape(inner, '\'').ok_or(BadChar::Syntax)?;
    if rest != "'" {
        return Err(BadChar::Malformed);
    }
    Ok(match unit {
        Unit::Byte(byte) => i64::from(byte),
        Unit::Char(c) => i64::from(u32::from(c)),
    })
}

enum Unit {
    /// `\x` and octal escapes name a byte, not a character.
    Byte(u8),
    Char(char),
}

/// Takes one character or escape sequence off `text`, inside quotes of the given kind.
fn unescape(text: &str, quote: char) -> Option<(Unit, &str)> {
    let mut chars = text.chars();
    let c = chars.next()?;
    if c == quote {
        return None;
    }
    if c != '\\' {
        return Some((Unit::Char(c), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let simple = match escape {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' => '\\',
        '\'' | '"' if escape == quote => quote,
        'x' => return Some((Unit::Byte(u8::try_from(number(rest, 2, 16)?).ok()?), &rest[2..])),
        'u' => return Some((Unit::Char(char::from_u32(number(rest, 4, 16)?)?), &rest[4..])),
        'U' => return Some((Unit::Char(char::from_u32(number(rest, 8, 16)?)?), &rest[8..])),
        '0'..='7' => {
            let from_digit = &text[1..];
            return Some((Unit::Byte(u8::try_from(number(from_digit, 3, 8)?).ok()?), &from_digit[3..]));
        }
        _ => return None,
    };
    Some((Unit::Char(simple), rest))
}

/// The number that the first `len` bytes of `text` spell.
fn number(text: &str, len: usize, radix: u32) -> Option<u32> {
    text.get(..len)?.chars().try_fold(0u32, |sum, c| Some(sum.checked_mul(radix)? + c.to_digit(radix)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_escapes_what_cannot_be_shown() {
        assert_eq!(quote(b"a\"'\\\n\x00\xff", Shown::Printable), r#""a\"'\\\n\x00\xff""#);
        assert_eq!(quote("é\u{2028}😀".as_bytes(), Shown::Printable), "\"é\\u2028😀\"");
        assert_eq!(quote("é😀".as_bytes(), Shown::Ascii), r#""\u00e9\U0001f600""#);
        assert_eq!(quote_char('\'', Shown::Printable), r"'\''");
    }

    #[test]
    fn unquoting_follows_go() {
        assert_eq!(unquote(r#""\x41\101\u00e9\t""#), Some("AA\u{e9}\t".into()));
        assert_eq!(unquote(r#""\xff""#), Some(vec![0xff]));
        assert_eq!(unquote("`a\r\\n`"), Some(b"a\\n".to_vec()));
        for bad in [r#""\'""#, r#""\q""#, r#""\400""#, r#""\ud800""#, r#""\x4""#, r#""\U00110000""#, r#""\x+1""#] {
            assert_eq!(unquote(bad), None, "{bad}");
        }
    }

    #[test]
    fn character_constants_are_numbers() {
        assert_eq!(unquote_char("'a'"), Ok(97));
        assert_eq!(unquote_char(r"'\''"), Ok(39));
        assert_eq!(unquote_char("'ab'"), Err(BadChar::Malformed));
        assert_eq!(unquote_char("''"), Err(BadChar::Syntax));
        assert_eq!(unquote_char(r#"'\"'"#), Err(BadChar::Syntax));
    }
}
