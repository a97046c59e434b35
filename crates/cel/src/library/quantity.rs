//! Amounts as Kubernetes writes them: `100m`, `1.5Gi`, `12e3`.

use std::cmp::Ordering;

use super::{Outcome, Run, fail, no_overload};
use crate::value::Value;

/// Amounts are exact to this many places after the point.
const PLACES: u32 = 9;
const ONE: i128 = 1_000_000_000;

/// An amount, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity(i128);

impl Quantity {
    pub(crate) fn compare(self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }

    /// Reads an amount. Digits beyond billionths are rounded away from zero; what is too large becomes the largest.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str =
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(FORM);
        }
        if !may_be_suffix(suffix) {
            return Err(FORM);
        }
        let (base, exponent) = scale(suffix).ok_or("unable to parse quantity's suffix")?;
        let magnitude = to_billionths(whole, fraction, base, exponent);
        Ok(Self(if negative { -magnitude } else { magnitude }))
    }

    /// The amount as a whole number, if it is one that fits.
    fn as_int(self) -> Option<i64> {
        (self.0 % ONE == 0).then(|| i64::try_from(self.0 / ONE).ok()).flatten()
    }
}

/// Whether a text has the form of a suffix: letters that occur in one, a sign, digits.
fn may_be_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter: char| "eEinumkKMGTP".contains(letter));
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a suffix stands for: a base and an exponent.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (10, 0),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            (10, digits.parse::<i32>().ok()?)
        }
    })
}

fn to_billionths(whole: &str, fraction: &str, base: i128, exponent: i32) -> i128 {
    let largest = i128::from(i64::MAX) * ONE;
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // Where the point stands in the digits, for amounts in powers of ten.
    let shift = PLACES as i64 - fraction.len() as i64 + if base == 10 { i64::from(exponent) } else { 0 };
    let keep = if base == 10 { (digits.len() as i64 + shift).clamp(0, 40) as usize } else { digits.len() };
    let rounded_up = keep < digits.len() && digits[keep..].bytes().any(|b| b != b'0');
    let digits = &digits[..keep.min(digits.len())];
    let Ok(mut amount) = (if digits.is_empty() { Ok(0) } else { digits.parse::<i128>() }) else { return largest };
    if base == 10 {
        let missing = keep.saturating_sub(digits.len()) as u32;
        amount = 10_i128.checked_pow(missing).and_then(|scale| amount.checked_mul(scale)).unwrap_or(i128::MAX);
        return amount.saturating_add(i128::from(rounded_up)).min(largest);
    }
    let scaled = amount.checked_mul(1_i128 << exponent).and_then(|amount| amount.checked_mul(ONE));
    let Some(scaled) = scaled else { return largest };
    match 10_i128.checked_pow(fraction.len() as u32) {
        Some(divisor) => (scaled / divisor + i128::from(scaled % divisor != 0)).min(largest),
        None => 1,
    }
}

pub(super) const TABLE: &[(&str, Run)] = &[
    ("quantity", |args| match args {
        [Value::String(text)] => {
            Quantity::parse(text.as_ref()).map_or_else(fail, |quantity| Ok(Value::Quantity(quantity)))
        }
        _ => no_overload(),
    }),
    ("isQuantity", |args| match args {
        [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text.as_ref()).is_ok())),
        _ => no_overload(),
    }),
    ("sign", |args| of(args, |quantity| Ok(Value::Int(quantity.0.signum() as i64)))),
    ("asApproximateFloat", |args| of(args, |quantity| Ok(Value::Double(quantity.0 as f64 / ONE as f64)))),
    ("asInteger", |args| {
        of(args, |quantity| {
            quantity.as_int().map_or_else(|| fail("cannot convert value to integer"), |value| Ok(Value::Int(value)))
        })
    }),
    ("isInteger", |args| of(args, |quantity| Ok(Value::Bool(quantity.as_int().is_some())))),
    ("add", |args| both(args, i128::saturating_add)),
    ("sub", |args| both(args, i128::saturating_sub)),
];

fn of<'v>(args: &[Value<'v>], make: fn(Quantity) -> Outcome<'static>) -> Outcome<'v> {
    match args {
        [Value::Quantity(quantity)] => make(*quantity),
        _ => no_overload(),
    }
}

fn both<'v>(args: &[Value<'v>], make: fn(i128, i128) -> i128) -> Outcome<'v> {
    let (a, b) = match args {
        [Value::Quantity(a), Value::Quantity(b)] => (a.0, b.0),
        [Value::Quantity(a), Value::Int(b)] => (a.0, i128::from(*b) * ONE),
        _ => return no_overload(),
    };
    Ok(Value::Quantity(Quantity(make(a, b))))
}
