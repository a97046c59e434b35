//! `html`, `js` and `urlquery`: text made safe for where it goes.

use std::borrow::Cow;

use super::Outcome;
use crate::fmt::{self, Buffer, TooLong};
use crate::unicode;
use crate::value::Value;

pub(super) fn html<'a>(arguments: &[Value<'a>], limit: usize) -> Outcome<'a> {
    escaped(arguments, limit, |text, out| {
        copy_except(
            text,
            out,
            |byte| matches!(byte, b'"' | b'\'' | b'&' | b'<' | b'>' | 0),
            |byte, out| {
                out.push_str(match byte {
                    b'"' => "&#34;",
                    b'\'' => "&#39;",
                    b'&' => "&amp;",
                    b'<' => "&lt;",
                    b'>' => "&gt;",
                    _ => "\u{FFFD}",
                });
            },
        );
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
    let is_reserved = |byte: u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_' | b'.' | b'~');
    escaped(arguments, limit, |text, out| {
        copy_except(text, out, is_reserved, |byte, out| match byte {
            b' ' => out.push(b'+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        });
    })
}

/// Copies `text` in as few pieces as possible, but the special bytes as `replace` writes them.
fn copy_except(text: &[u8], out: &mut Buffer, special: impl Fn(u8) -> bool, replace: impl Fn(u8, &mut Buffer)) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| special(byte)) {
        out.push_bytes(&rest[..at]);
        replace(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.push_bytes(rest);
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
