//! Numeric constants: integers in four bases, decimal and hexadecimal floats, and complex numbers.

use crate::ast::Number;
use crate::lex::Kind;
use crate::quote::{BadChar, Shown, quote, unquote_char};

/// What the text of a number or character constant stands for, or the message of Go's refusal.
pub(super) fn constant(text: &str, kind: Kind) -> Result<Number, String> {
    match kind {
        Kind::CharConstant => match unquote_char(text) {
            Ok(code) => Ok(Number::Int(code)),
            Err(BadChar::Syntax) => Err("invalid syntax".to_owned()),
            Err(BadChar::Malformed) => Err(format!("malformed character constant: {text}")),
        },
        Kind::Complex => complex(text),
        _ => real_or_imaginary(text),
    }
}

fn real_or_imaginary(text: &str) -> Result<Number, String> {
    if let Some(Ok(imaginary)) = text.strip_suffix('i').map(float) {
        return Ok(Number::Complex(0.0, imaginary));
    }
    let looks_like_float = text.contains(['.', 'e', 'E', 'p', 'P']);
    if let Some(value) = integer(text) {
        // A hexadecimal integer may hold an `e`. Go recognises one only when no sign stands before it.
        let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
        let as_float = looks_like_float && !hexadecimal;
        return Ok(match i64::try_from(value) {
            Ok(value) if as_float => Number::Float(value as f64),
            Ok(value) => Number::Int(value),
            Err(_) if as_float => Number::Float(value as f64),
            Err(_) => Number::Overflow,
        });
    }
    let quoted = || quote(text.as_bytes(), Shown::Printable);
    match float(text) {
        Ok(_) if !looks_like_float => Err(format!("integer overflow: {}", quoted())),
        Ok(value) => Ok(Number::Float(value)),
        Err(_) => Err(format!("illegal number syntax: {}", quoted())),
    }
}

/// An integer that fits 64 bits: signed when it carries a sign, either way when not.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let signed = digits.len() < text.len();
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', ..] => (8, &digits[1..]),
        [] => return None,
        _ => (10, digits),
    };
    if !underscores_separate_digits(text) {
        return None;
    }
    let magnitude = digits
        .chars()
        .filter(|&c| c != '_')
        .try_fold(0u64, |sum, c| sum.checked_mul(u64::from(radix))?.checked_add(u64::from(c.to_digit(radix)?)))?;
    let value = sign * i128::from(magnitude);
    (!signed || i64::try_from(value).is_ok()).then_some(value)
}

/// Every underscore must stand between digits; a base prefix counts as a digit before it.
fn underscores_separate_digits(text: &str) -> bool {
    if !text.contains('_') {
        return true;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
    let (mut before_is_digit, hexadecimal, digits) = match unsigned {
        [b'0', b'x' | b'X', rest @ ..] => (true, true, rest),
        [b'0', b'o' | b'O' | b'b' | b'B', rest @ ..] => (true, false, rest),
        _ => (false, false, unsigned),
    };
    let is_digit = |byte: &u8| if hexadecimal { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    for (i, byte) in digits.iter().enumerate() {
        if *byte == b'_' {
            if !before_is_digit || !digits.get(i + 1).is_some_and(is_digit) {
                return false;
            }
            before_is_digit = false;
        } else {
            before_is_digit = is_digit(byte);
        }
    }
    true
}

#[derive(Debug, PartialEq, Eq)]
enum BadFloat {
    Syntax,
    Range,
}

/// A decimal or hexadecimal floating-point number, correctly rounded.
fn float(text: &str) -> Result<f64, BadFloat> {
    if !underscores_separate_digits(text) {
        return Err(BadFloat::Syntax);
    }
    let digits: String = text.chars().filter(|&c| c != '_').collect();
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
    let value = match unsigned.strip_prefix("0x").or(unsigned.strip_prefix("0X")) {
        Some(hexadecimal) => {
            let magnitude = hexadecimal_float(hexadecimal)?;
            if digits.starts_with('-') { -magnitude } else { magnitude }
        }
        // Rust's own reader also knows words such as "inf".
        None if unsigned.contains(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')) => {
            return Err(BadFloat::Syntax);
        }
        None => digits.parse::<f64>().map_err(|_| BadFloat::Syntax)?,
    };
    if value.is_infinite() { Err(BadFloat::Range) } else { Ok(value) }
}

/// The digits of a hexadecimal float behind its `0x`; the exponent of two is required.
fn hexadecimal_float(text: &str) -> Result<f64, BadFloat> {
    let (mantissa_text, exponent_text) = text.split_once(['p', 'P']).ok_or(BadFloat::Syntax)?;
    let (whole, fraction) = mantissa_text.split_once('.').unwrap_or((mantissa_text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(BadFloat::Syntax);
    }
    let mut exponent = exponent_value(exponent_text).ok_or(BadFloat::Syntax)?;
    let mut mantissa = 0u128;
    for (i, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = c.to_digit(16).ok_or(BadFloat::Syntax)?;
        let in_fraction = i >= whole.len();
        if mantissa >> 120 == 0 {
            mantissa = mantissa << 4 | u128::from(digit);
            exponent -= if in_fraction { 4 } else { 0 };
        } else {
            // Beyond 120 bits a digit matters only by not being zero.
            mantissa |= u128::from(digit != 0);
            exponent += if in_fraction { 0 } else { 4 };
        }
    }
    Ok(scale(mantissa, exponent))
}

/// The exponent of a float, cut off where nothing but zero or infinity lies beyond.
fn exponent_value(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// `mantissa × 2^exponent`, rounded half to even.
fn scale(mantissa: u128, exponent: i64) -> f64 {
    const MANTISSA_BITS: i64 = 53;
    const LEAST_EXPONENT: i64 = -1074;
    if mantissa == 0 {
        return 0.0;
    }
    let bits = i64::from(128 - mantissa.leading_zeros());
    let drop = (bits - MANTISSA_BITS).max(LEAST_EXPONENT - exponent).max(0);
    if drop > bits + 1 {
        return 0.0;
    }
    let kept = if drop >= 128 { 0 } else { mantissa >> drop };
    let half = 1u128 << (drop - 1).max(0);
    let dropped = if drop >= 128 { mantissa } else { mantissa & ((1u128 << drop) - 1) };
    let rounds_up = drop > 0 && (dropped > half || dropped == half && kept & 1 == 1);
    let rounded = (kept + u128::from(rounds_up)) as f64;
    // Two exact steps: the first stays a normal number, so that only one rounding ever happens.
    let power = exponent + drop;
    let first = power.clamp(-1000, 1000);
    let rest = (power - first).clamp(-1000, 1000);
    rounded * 2f64.powi(first as i32) * 2f64.powi(rest as i32)
}

/// A pair such as `1-2.5i`, read the way Go's scanner reads one.
fn complex(text: &str) -> Result<Number, String> {
    let (real, rest) = float_token(text);
    let sign_and_more = rest.strip_prefix(['+', '-']).ok_or("syntax error scanning complex number")?;
    let (imaginary, rest) = float_token(sign_and_more);
    if imaginary.is_empty() || !rest.starts_with('i') {
        return Err("syntax error scanning complex number".to_owned());
    }
    let imaginary = &text[real.len()..real.len() + 1 + imaginary.len()];
    let part = |token: &str| {
        float(token).map_err(|error| {
            let reason = match error {
                BadFloat::Syntax => "invalid syntax",
                BadFloat::Range => "value out of range",
            };
            format!("strconv.ParseFloat: parsing {}: {reason}", quote(token.as_bytes(), Shown::Printable))
        })
    };
    Ok(Number::Complex(part(real)?, part(imaginary)?))
}

/// The longest beginning of `text` that could be a float, and what follows it.
fn float_token(text: &str) -> (&str, &str) {
    let skip = |from: usize, class: fn(u8) -> bool| {
        from + text.as_bytes()[from..].iter().take_while(|&&byte| class(byte)).count()
    };
    let decimal: fn(u8) -> bool = |byte| byte.is_ascii_digit() || byte == b'_';
    let hexadecimal: fn(u8) -> bool = |byte| byte.is_ascii_hexdigit() || byte == b'_';
    let at = |position: usize, any_of: &[u8]| text.as_bytes().get(position).is_some_and(|byte| any_of.contains(byte));

    let mut end = usize::from(at(0, b"+-"));
    let (digits, exponents): (_, &[u8]) = if at(end, b"0") && at(end + 1, b"xX") {
        end += 2;
        (hexadecimal, b"pP")
    } else {
        (decimal, b"eEpP")
    };
    end = skip(end, digits);
    if at(end, b".") {
        end = skip(end + 1, digits);
    }
    if at(end, exponents) {
        end += 1;
        end += usize::from(at(end, b"+-"));
        end = skip(end, decimal);
    }
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<Number, String> {
        constant(text, Kind::Number)
    }

    #[test]
    fn integers_come_in_four_bases() {
        for (text, value) in
            [("10", 10), ("-0", 0), ("0x_1f", 31), ("017", 15), ("0o17", 15), ("0b11", 3), ("+1_0", 10)]
        {
            assert_eq!(number(text), Ok(Number::Int(value)), "{text}");
        }
        assert_eq!(number("0xffffffffffffffff"), Ok(Number::Overflow));
        assert_eq!(number("08"), Err("integer overflow: \"08\"".to_owned()));
        assert_eq!(number("1__0"), Err("illegal number syntax: \"1__0\"".to_owned()));
    }

    #[test]
    fn a_sign_before_a_hexadecimal_integer_with_an_e_makes_a_float() {
        assert_eq!(number("0xe"), Ok(Number::Int(14)));
        assert_eq!(number("-0xe"), Ok(Number::Float(-14.0)));
    }

    #[test]
    fn hexadecimal_floats_are_rounded_half_to_even() {
        for (text, value) in [
            ("0x1.8p1", 3.0),
            ("0x.8p1", 1.0),
            ("-0x1p-2", -0.25),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON),
            ("0x1.000000000000080000000000000000000000000000001p0", 1.0 + f64::EPSILON),
            ("0x1p-1074", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", 5e-324),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1p-99999999999999999999", 0.0),
        ] {
            assert_eq!(number(text), Ok(Number::Float(value)), "{text}");
        }
        assert!(number("0x1p1024").is_err() && number("0x1.8").is_err() && number("0x1p").is_err());
    }

    #[test]
    fn complex_numbers_have_two_parts_or_one() {
        assert_eq!(number("2.5i"), Ok(Number::Complex(0.0, 2.5)));
        assert_eq!(constant("1-2i", Kind::Complex), Ok(Number::Complex(1.0, -2.0)));
        assert_eq!(constant("0x1p2+0x2p-1i", Kind::Complex), Ok(Number::Complex(4.0, 1.0)));
        let refused = "strconv.ParseFloat: parsing \"0x1\": invalid syntax";
        assert_eq!(constant("0x1+2i", Kind::Complex), Err(refused.to_owned()));
    }
}
