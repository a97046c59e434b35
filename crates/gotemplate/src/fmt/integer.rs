//! Integers in any base, and as characters.

use super::Printer;
use crate::quote::{Shown, quote_char};
use crate::unicode::{self, MAX_RUNE, REPLACEMENT};
use crate::value::Value;

impl Printer {
    /// An integer by its magnitude and sign; `value` is what a bad verb shows.
    pub(super) fn integer(&mut self, magnitude: u64, negative: bool, verb: char, value: &Value<'_>) {
        match verb {
            'v' if self.spec.go_syntax && matches!(value, Value::Byte(_)) => {
                let sharp = std::mem::replace(&mut self.spec.sharp, true);
                self.digits(magnitude, negative, 16, 'x');
                self.spec.sharp = sharp;
            }
            'd' | 'v' => self.digits(magnitude, negative, 10, verb),
            'b' => self.digits(magnitude, negative, 2, verb),
            'o' | 'O' => self.digits(magnitude, negative, 8, verb),
            'x' | 'X' => self.digits(magnitude, negative, 16, verb),
            'c' => {
                let c = character(magnitude, negative);
                self.pad(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            'q' => {
                let shown = if self.spec.plus { Shown::Ascii } else { Shown::Printable };
                self.pad(quote_char(character(magnitude, negative), shown).as_bytes());
            }
            'U' => self.code_point(if negative { magnitude.wrapping_neg() } else { magnitude }),
            _ => self.bad_verb(verb, value),
        }
    }

    fn digits(&mut self, magnitude: u64, negative: bool, base: u64, verb: char) {
        let signed = negative || self.spec.plus || self.spec.space;
        let least = match (self.spec.precision, self.spec.width) {
            (Some(0), _) if magnitude == 0 => {
                let missing = self.spec.width.unwrap_or(0);
                let zero = std::mem::replace(&mut self.spec.zero, false);
                self.padding(missing);
                self.spec.zero = zero;
                return;
            }
            (Some(precision), _) => precision,
            (None, Some(width)) if self.spec.pads_with_zeros() => width.saturating_sub(usize::from(signed)),
            _ => 1,
        };
        // More than fits need not be made.
        let least = least.min(self.out.room().saturating_add(1));
        // Backwards: digits, zeros, prefix, sign.
        let mut text = Vec::with_capacity(68);
        let mut rest = magnitude;
        while rest > 0 || text.is_empty() {
            let digit = char::from_digit((rest % base) as u32, 16).unwrap_or('0') as u8;
            text.push(if verb == 'X' { digit.to_ascii_uppercase() } else { digit });
            rest /= base;
        }
        text.resize(text.len().max(least), b'0');
        if self.spec.sharp {
            match (base, verb) {
                (2, _) => text.extend(b"b0"),
                (8, _) if text.last() != Some(&b'0') => text.push(b'0'),
                (16, 'X') => text.extend(b"X0"),
                (16, _) => text.extend(b"x0"),
                _ => {}
            }
        }
        if verb == 'O' {
            text.extend(b"o0");
        }
        if signed {
            text.push(if negative {
                b'-'
            } else if self.spec.plus {
                b'+'
            } else {
                b' '
            });
        }
        text.reverse();
        self.pad_with_blanks(&text);
    }

    /// `U+0041`, with `#` also the character itself.
    fn code_point(&mut self, code: u64) {
        let digits = format!("{code:04X}");
        let least = self.spec.precision.unwrap_or(0).min(self.out.room().saturating_add(1));
        let mut text = format!("U+{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
        let shown = u32::try_from(code).ok().and_then(char::from_u32).filter(|&c| unicode::is_printable(c));
        if let Some(c) = shown.filter(|_| self.spec.sharp) {
            text.push_str(&format!(" '{c}'"));
        }
        self.pad_with_blanks(text.as_bytes());
    }
}

/// The character of a number, if it has one.
fn character(magnitude: u64, negative: bool) -> char {
    if negative || magnitude > MAX_RUNE {
        return REPLACEMENT;
    }
    u32::try_from(magnitude).ok().and_then(char::from_u32).unwrap_or(REPLACEMENT)
}
