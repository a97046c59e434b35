//! Strings: as they are, quoted, or in hexadecimal.

use super::Printer;
use crate::quote::{Shown, can_backquote, quote};
use crate::unicode;
use crate::value::Value;

impl Printer {
    /// A string; `value` is what a bad verb shows.
    pub(super) fn string(&mut self, text: &[u8], verb: char, value: &Value<'_>) {
        match verb {
            'v' if self.spec.go_syntax => self.quoted(text),
            'v' | 's' => self.pad(self.truncated(text)),
            'q' => self.quoted(text),
            'x' => self.hexadecimal(text, b"0123456789abcdefx"),
            'X' => self.hexadecimal(text, b"0123456789ABCDEFX"),
            _ => self.bad_verb(verb, value),
        }
    }

    /// As many characters as the precision allows.
    fn truncated<'s>(&self, text: &'s [u8]) -> &'s [u8] {
        match self.spec.precision {
            Some(precision) => {
                let end = unicode::decode_all(text).take(precision).map(|(_, width)| width).sum();
                &text[..end]
            }
            None => text,
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        // Between quotes it is no shorter, so what does not fit is not worth making.
        if !self.out.fits(text.len()) {
            return;
        }
        if self.spec.sharp && can_backquote(text) {
            return self.pad(&[b"`", text, b"`"].concat());
        }
        let shown = if self.spec.plus { Shown::Ascii } else { Shown::Printable };
        self.pad(quote(text, shown).as_bytes());
    }

    /// Two digits for each byte; `alphabet` ends with the letter of the prefix.
    fn hexadecimal(&mut self, text: &[u8], alphabet: &[u8; 17]) {
        let text = &text[..text.len().min(self.spec.precision.unwrap_or(usize::MAX))];
        if !self.out.fits(text.len().saturating_mul(2)) {
            return;
        }
        let prefix = [b'0', alphabet[16]];
        let mut digits = Vec::with_capacity(text.len() * 2);
        for (i, byte) in text.iter().enumerate() {
            if self.spec.space && i > 0 {
                digits.push(b' ');
            }
            if self.spec.sharp && (self.spec.space || i == 0) {
                digits.extend(prefix);
            }
            digits.push(alphabet[usize::from(byte >> 4)]);
            digits.push(alphabet[usize::from(byte & 15)]);
        }
        self.pad(&digits);
    }
}
