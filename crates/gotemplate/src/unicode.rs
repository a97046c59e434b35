//! Characters as Go sees them: its Unicode classes, and UTF-8 that may be broken.

mod tables;

use std::borrow::Cow;

/// What stands for a byte that is not part of a valid character.
pub(crate) const REPLACEMENT: char = '\u{FFFD}';

/// The largest code point, as an unsigned number.
pub(crate) const MAX_RUNE: u64 = char::MAX as u64;

/// Whether `c` may be part of a name in a template.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    if c.is_ascii() {
        return c == '_' || c.is_ascii_alphanumeric();
    }
    is_letter(c) || is_digit(c)
}

pub(crate) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { contains(&tables::LETTER, c) }
}

pub(crate) fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { contains(&tables::DIGIT, c) }
}

/// Whether Go would show `c` as it is rather than escape it.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() { matches!(c, ' '..='~') } else { contains(&tables::PRINTABLE, c) }
}

fn contains(edges: &[u32], c: char) -> bool {
    edges.partition_point(|&edge| edge <= u32::from(c)) % 2 == 1
}

/// The first character of `bytes` and its width; a byte that is not valid UTF-8 is [`REPLACEMENT`] of width one.
pub(crate) fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let width = match *bytes.first()? {
        ascii @ 0..0x80 => return Some((char::from(ascii), 1)),
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return Some((REPLACEMENT, 1)),
    };
    let valid = bytes.get(..width).and_then(|sequence| std::str::from_utf8(sequence).ok());
    Some(valid.and_then(|text| text.chars().next()).map_or((REPLACEMENT, 1), |c| (c, width)))
}

/// The characters of `bytes`, each with its width; see [`decode`].
pub(crate) fn decode_all(mut bytes: &[u8]) -> impl Iterator<Item = (char, usize)> {
    std::iter::from_fn(move || {
        let (c, width) = decode(bytes)?;
        bytes = &bytes[width..];
        Some((c, width))
    })
}

/// How many characters `bytes` holds, counting each invalid byte as one.
pub(crate) fn count(bytes: &[u8]) -> usize {
    if bytes.is_ascii() { bytes.len() } else { decode_all(bytes).count() }
}

/// The text of `bytes`, with U+FFFD for **every** byte that is not part of a valid character.
///
/// That is how Go writes a broken string into JSON. [`String::from_utf8_lossy`] differs: it replaces a truncated character
/// of several bytes once.
pub fn to_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(decode_all(bytes).map(|(c, _)| c).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_go() {
        for c in ['a', 'Z', 'é', 'ß', '界', 'ʰ'] {
            assert!(is_letter(c) && is_alphanumeric(c) && is_printable(c), "{c}");
        }
        // A combining mark and a letter-like number are no letters, though Rust calls both alphabetic.
        for c in ['\u{0345}', 'Ⅷ', '\u{2028}', '\u{00AD}', '½'] {
            assert!(!is_alphanumeric(c), "{c:?}");
        }
        assert!(is_digit('٣') && is_alphanumeric('٣'));
        for c in ['\u{2028}', '\u{00A0}', '\u{00AD}', '\u{E000}', '\u{7f}', '\n'] {
            assert!(!is_printable(c), "{c:?}");
        }
    }

    #[test]
    fn every_invalid_byte_is_replaced() {
        assert_eq!(to_text(b"h\xe2\x98\xff"), "h\u{FFFD}\u{FFFD}\u{FFFD}");
        assert_eq!(to_text("☃".as_bytes()), "☃");
        assert_eq!(to_text(b"\xed\xa0\x80"), "\u{FFFD}\u{FFFD}\u{FFFD}", "half a surrogate pair");
        assert_eq!(count(b"a\xc3"), 2);
    }
}
