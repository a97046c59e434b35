//! Format strings: finds the verbs with their flags and the values they are for.

use super::spec::Spec;
use super::{Printer, TooLong};
use crate::unicode;
use crate::value::Value;

/// Widths, precisions and argument numbers that are larger than this by far are refused.
const LARGE: i64 = 1_000_000;

/// How many steps the verbs of a format cost, whatever they write: with a precision, a number of few digits is worked out to
/// hundreds.
pub(crate) fn steps(format: &[u8], values: &[Value<'_>]) -> u64 {
    let verbs = format.iter().filter(|&&byte| byte == b'%').count() as u64;
    let has_points = values.iter().any(|value| matches!(value, Value::Float(_) | Value::Complex(..)));
    if has_points { verbs.saturating_mul(16) } else { verbs }
}

/// `format` with its verbs replaced by the values.
pub(crate) fn printf(format: &[u8], values: &[Value<'_>], limit: usize) -> Result<Vec<u8>, TooLong> {
    let mut directives = Directives {
        printer: Printer::new(limit),
        format,
        at: 0,
        values,
        next: 0,
        reordered: false,
        numbered_well: true,
    };
    directives.run();
    directives.printer.out.finish()
}

struct Directives<'f, 'v, 'a> {
    printer: Printer,
    format: &'f [u8],
    at: usize,
    values: &'v [Value<'a>],
    /// The value for the next verb.
    next: usize,
    /// Whether some verb chose its value by number; then unused values are not reported.
    reordered: bool,
    /// Whether the numbers in the current verb were valid.
    numbered_well: bool,
}

impl Directives<'_, '_, '_> {
    fn run(&mut self) {
        while self.at < self.format.len() && !self.printer.out.overflowed() {
            let rest = &self.format[self.at..];
            let literal = rest.iter().position(|&byte| byte == b'%').unwrap_or(rest.len());
            self.printer.out.push_bytes(&rest[..literal]);
            self.at += literal;
            if self.at < self.format.len() {
                self.at += 1;
                self.directive();
            }
        }
        self.report_unused();
    }

    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn directive(&mut self) {
        self.printer.spec = Spec::default();
        self.numbered_well = true;
        self.flags();
        let numbered = self.argument_number();
        let numbered = self.width(numbered);
        let numbered = self.precision(numbered);
        if !numbered {
            self.argument_number();
        }
        match unicode::decode(&self.format[self.at..]) {
            None => self.printer.out.push_str("%!(NOVERB)"),
            Some((verb, width)) => {
                self.at += width;
                self.verb(verb);
            }
        }
    }

    fn flags(&mut self) {
        let spec = &mut self.printer.spec;
        while let Some(byte) = self.format.get(self.at) {
            match byte {
                b'#' => spec.sharp = true,
                b'0' => spec.zero = true,
                b'+' => spec.plus = true,
                b'-' => spec.minus = true,
                b' ' => spec.space = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    /// The width, as a number or from a value. Says whether the value for the verb is chosen by now.
    fn width(&mut self, numbered: bool) -> bool {
        if self.peek() != Some(b'*') {
            self.printer.spec.width = self.number().map(|width| width as usize);
            if numbered && self.printer.spec.width.is_some() {
                // "%[3]2d"
                self.numbered_well = false;
            }
            return numbered;
        }
        self.at += 1;
        match self.number_from_value() {
            Some(width) => {
                self.printer.spec.width = Some(width.unsigned_abs() as usize);
                if width < 0 {
                    self.printer.spec.minus = true;
                    self.printer.spec.zero = false;
                }
            }
            None => self.printer.out.push_str("%!(BADWIDTH)"),
        }
        false
    }

    /// The precision behind a dot; see [`Self::width`].
    fn precision(&mut self, numbered: bool) -> bool {
        if self.peek() != Some(b'.') || self.at + 1 == self.format.len() {
            return numbered;
        }
        self.at += 1;
        if numbered {
            // "%[3].2d"
            self.numbered_well = false;
        }
        let numbered = self.argument_number();
        if self.peek() != Some(b'*') {
            self.printer.spec.precision = Some(self.number().unwrap_or(0) as usize);
            return numbered;
        }
        self.at += 1;
        self.printer.spec.precision = self.number_from_value().and_then(|precision| usize::try_from(precision).ok());
        if self.printer.spec.precision.is_none() {
            self.printer.out.push_str("%!(BADPREC)");
        }
        false
    }

    /// Digits here. A number that is far too large swallows the rest of the format.
    fn number(&mut self) -> Option<i64> {
        let (number, end) = number(self.format, self.at);
        self.at = end;
        number
    }

    /// The next value, when it is an integer of reasonable size.
    fn number_from_value(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        let number = match value {
            Value::Int(number) => *number,
            Value::Byte(number) => i64::from(*number),
            _ => return None,
        };
        (-LARGE..=LARGE).contains(&number).then_some(number)
    }

    /// An explicit argument number such as `[3]`, if one stands here. Says whether one does, well-formed.
    fn argument_number(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = &self.format[self.at..];
        let close = rest.iter().position(|&byte| byte == b']').filter(|_| rest.len() >= 3);
        let Some(close) = close else {
            self.at += 1;
            self.numbered_well = false;
            return false;
        };
        let (number, end) = number(&rest[..close], 1);
        self.at += close + 1;
        let Some(number) = number.filter(|_| end == close) else {
            self.numbered_well = false;
            return false;
        };
        match usize::try_from(number - 1) {
            Ok(index) if index < self.values.len() => self.next = index,
            _ => self.numbered_well = false,
        }
        true
    }

    fn verb(&mut self, verb: char) {
        if verb == '%' {
            return self.printer.out.push(b'%');
        }
        if !self.numbered_well {
            return self.complain(verb, "BADINDEX");
        }
        let Some(value) = self.values.get(self.next) else {
            return self.complain(verb, "MISSING");
        };
        self.next += 1;
        // `%w` wraps errors where that is possible. Here it is not, but its flags are those of `%v`.
        if matches!(verb, 'v' | 'w') {
            let spec = &mut self.printer.spec;
            spec.go_syntax = std::mem::take(&mut spec.sharp);
            // `%+v` asks for the names of struct fields, and there are no structs.
            spec.plus = false;
        }
        self.printer.value(value, verb);
    }

    fn complain(&mut self, verb: char, problem: &str) {
        self.printer.out.push_str("%!");
        self.printer.out.push_char(verb);
        self.printer.out.push_str(&format!("({problem})"));
    }

    fn report_unused(&mut self) {
        let unused = self.values.get(self.next..).unwrap_or_default();
        if self.reordered || unused.is_empty() {
            return;
        }
        self.printer.spec = Spec::default();
        self.printer.out.push_str("%!(EXTRA ");
        for (i, value) in unused.iter().enumerate() {
            if self.printer.out.overflowed() {
                return;
            }
            if i > 0 {
                self.printer.out.push_str(", ");
            }
            self.printer.typed(value);
        }
        self.printer.out.push(b')');
    }
}

/// The number whose digits begin at `start`, and where they end; a number far too large ends with the text.
fn number(text: &[u8], start: usize) -> (Option<i64>, usize) {
    let mut number = None;
    let mut end = start;
    while let Some(digit) = text.get(end).filter(|byte| byte.is_ascii_digit()) {
        let sum = number.unwrap_or(0);
        if sum > LARGE {
            return (None, text.len());
        }
        number = Some(sum * 10 + i64::from(digit - b'0'));
        end += 1;
    }
    (number, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_behind_the_one_that_is_too_long_are_left_alone() {
        let format = b"%[1]q".repeat(1000);
        let values = [Value::borrowed(b"text")];
        let mut directives = Directives {
            printer: Printer::new(20),
            format: &format,
            at: 0,
            values: &values,
            next: 0,
            reordered: false,
            numbered_well: true,
        };
        directives.run();
        assert_eq!(directives.at, 4 * b"%[1]q".len());
        assert!(directives.printer.out.finish().is_err());
    }
}
