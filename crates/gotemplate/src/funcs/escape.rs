//! `html`, `js` and `urlquery`: text made safe for where it goes.

use std::borrow::Cow;

use super::Outcome;
use crate::fmt::{self, Buffer, TooLong};
use crate::unicode;
use crate::value::Value;

pub(super) fn html<'a>(arguments: &[Value<'a>], limit: usize) -> Outcome<'a> {
    escaped(arguments, limit, |text, out| {
        for &byte in text {
            match byte {
                b'"' => out.push_str("&#34;"),
                b'\'' => out.push_str("&#39;"),
                b'&' => out.push_str("&amp;"),
                b'<' => out.push_str("&lt;"),
                b'>' => out.push_str("&gt;"),
                0 => out.push_str("\u{FFFD}"),
                _ => out.push(byte),
            }
        }
    })
}

pub(super) fn js<'a>(arguments: &[Value<'a>], limit: usize) -> Outcome<'a> {
    escaped(arguments, limit, |text, out| {
        let mut at = 0;
        for (c, width) in unicode::decode_all(text) {
            match c {
                '\\' | '\'' | '"' => {
                    out.push(b'\\');
                    out.push_char(c);
                }
                '<' | '>' | '&' | '=' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
                // Go copies a delete as it is, and an invalid byte too: to it, that is a printable U+FFFD.
                '\x7f' => out.push(b'\x7f'),
                _ if unicode::is_printable(c) => out.push_bytes(&text[at..at + width]),
                _ => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            }
            at += width;
        }
    })
}

pub(super) fn urlquery<'a>(arguments: &[Value<'a>], limit: usize) -> Outcome<'a> {
    escaped(arguments, limit, |text, out| {
        for &byte in text {
            match byte {
                b' ' => out.push(b'+'),
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte),
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
    })
}

fn escaped<'a>(arguments: &[Value<'a>], limit: usize, escape: impl Fn(&[u8], &mut Buffer)) -> Outcome<'a> {
    let text = joined(arguments, limit)?;
    let mut out = Buffer::new(limit);
    escape(&text, &mut out);
    Ok(Value::shared(out.finish()?))
}

/// The arguments as `print` would write them, except that nil is `<no value>`.
fn joined<'v>(arguments: &'v [Value<'_>], limit: usize) -> Result<Cow<'v, [u8]>, TooLong> {
    if let [Value::Str(text)] = arguments {
        return Ok(Cow::Borrowed(text));
    }
    let printable: Vec<_> = arguments
        .iter()
        .map(|argument| match argument {
            Value::Nil => Value::borrowed(b"<no value>"),
            _ => argument.clone(),
        })
        .collect();
    fmt::print(&printable, limit).map(Cow::Owned)
}
