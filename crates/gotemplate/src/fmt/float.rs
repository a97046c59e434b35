//! Floating-point and complex numbers.

use super::Printer;
use crate::value::Value;

/// No double has more significant digits than this, nor more digits behind its point than the other.
const MOST_DIGITS: usize = 800;
const MOST_FRACTION: usize = 1100;

impl Printer {
    /// A number with a point; `value` is what a bad verb shows.
    pub(super) fn float(&mut self, number: f64, verb: char, value: &Value<'_>) {
        match verb {
            'v' => self.float_as(number, 'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.float_as(number, verb, None),
            'e' | 'E' | 'f' => self.float_as(number, verb, Some(6)),
            'F' => self.float_as(number, 'f', Some(6)),
            _ => self.bad_verb(verb, value),
        }
    }

    /// `(1+2i)`: the second part always with its sign.
    pub(super) fn complex(&mut self, real: f64, imaginary: f64, verb: char, value: &Value<'_>) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F') {
            return self.bad_verb(verb, value);
        }
        self.out.push(b'(');
        self.float(real, verb, value);
        let plus = std::mem::replace(&mut self.spec.plus, true);
        self.float(imaginary, verb, value);
        self.spec.plus = plus;
        self.out.push_str("i)");
    }

    fn float_as(&mut self, number: f64, verb: char, precision: Option<usize>) {
        // More digits than fit the buffer need not be made, and no number has more than the most.
        let sensible = self.out.room().saturating_add(1).max(MOST_FRACTION);
        let precision = self.spec.precision.or(precision).map(|precision| precision.min(sensible));
        let mut digits = match verb {
            'b' => binary(number),
            'x' | 'X' => hexadecimal(number, precision),
            'e' | 'E' => exponential(number, precision.unwrap_or(6)),
            'f' => fixed(number, precision.unwrap_or(6)),
            _ => general(number, precision),
        };
        if self.spec.sharp && verb != 'b' {
            digits = with_point(&digits, verb, precision);
        }
        if matches!(verb, 'E' | 'G' | 'X') {
            digits.make_ascii_uppercase();
        }
        let sign = match (number.is_sign_negative(), self.spec.plus, self.spec.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (.., true) => " ",
            _ => "",
        };
        let length = sign.len() + digits.len();
        if !sign.is_empty() && self.spec.pads_with_zeros() && self.missing(|| length) > 0 {
            // The sign stands before the zeros.
            self.out.push_str(sign);
            self.padding(self.missing(|| length));
            self.out.push_str(&digits);
        } else {
            self.pad(format!("{sign}{digits}").as_bytes());
        }
    }
}

/// The significant digits of a number without trailing zeros, and how many of them stand before the point.
struct Decimal {
    digits: Vec<u8>,
    point: i32,
}

impl Decimal {
    /// The fewest digits that mean this number and no other.
    fn shortest(number: f64) -> Self {
        Self::from_exponential(&format!("{:e}", number.abs()))
    }

    /// Rounded to so many digits, at least one.
    fn rounded(number: f64, digits: usize) -> Self {
        let behind_point = digits.clamp(1, MOST_DIGITS) - 1;
        Self::from_exponential(&format!("{:.behind_point$e}", number.abs()))
    }

    fn from_exponential(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let point = if digits.is_empty() { 0 } else { exponent.parse::<i32>().unwrap_or(0) + 1 };
        Self { digits, point }
    }

    /// The digit at a place, counted from the first; zero beyond the last.
    fn digit(&self, place: i32) -> char {
        let digit = usize::try_from(place).ok().and_then(|place| self.digits.get(place));
        char::from(*digit.unwrap_or(&b'0'))
    }

    fn exponential(&self, behind_point: usize) -> String {
        let mut text = String::from(self.digit(0));
        if behind_point > 0 {
            text.push('.');
            text.extend((1..=behind_point as i32).map(|place| self.digit(place)));
        }
        let exponent = if self.digits.is_empty() { 0 } else { self.point - 1 };
        text + &signed_exponent('e', exponent)
    }

    fn fixed(&self, behind_point: usize) -> String {
        let mut text: String = (0..self.point).map(|place| self.digit(place)).collect();
        if text.is_empty() {
            text.push('0');
        }
        if behind_point > 0 {
            text.push('.');
            text.extend((0..behind_point as i32).map(|place| self.digit(self.point + place)));
        }
        text
    }
}

fn signed_exponent(letter: char, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{letter}{sign}{:02}", exponent.unsigned_abs())
}

fn exponential(number: f64, precision: usize) -> String {
    Decimal::rounded(number, precision.saturating_add(1)).exponential(precision)
}

fn fixed(number: f64, precision: usize) -> String {
    let exact = precision.min(MOST_FRACTION);
    let mut text = format!("{:.exact$}", number.abs());
    text.extend(std::iter::repeat_n('0', precision - exact));
    text
}

/// Whichever of the two forms is shorter, without trailing zeros.
fn general(number: f64, precision: Option<usize>) -> String {
    let decimal = match precision {
        Some(precision) => Decimal::rounded(number, precision.max(1)),
        None => Decimal::shortest(number),
    };
    let count = decimal.digits.len();
    let threshold = match precision.map(|precision| precision.max(1)) {
        // A whole number with few digits keeps the exponent away only as far as its digits reach.
        Some(precision) if precision > count && count as i32 >= decimal.point => count,
        Some(precision) => precision,
        None => 6,
    };
    let exponent = decimal.point - 1;
    if exponent < -4 || i64::from(exponent) >= threshold as i64 {
        decimal.exponential(count.saturating_sub(1))
    } else {
        decimal.fixed(usize::try_from(count as i32 - decimal.point).unwrap_or(0))
    }
}

/// A double's integer mantissa and the power of two it is multiplied with.
fn parts(number: f64) -> (u64, i32) {
    let bits = number.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52 & 0x7ff) as i32 {
        0 => (fraction, -1074),
        exponent => (fraction | 1 << 52, exponent - 1075),
    }
}

fn binary(number: f64) -> String {
    let (mantissa, exponent) = parts(number);
    format!("{mantissa}p{exponent:+}")
}

/// `0x1.8p+01`: one digit before the point, which is 1 unless the number is zero.
fn hexadecimal(number: f64, precision: Option<usize>) -> String {
    const FRACTION_DIGITS: usize = 15;
    let (mut mantissa, mut exponent) = parts(number);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // The leading bit goes to place 60, so that 15 digits follow it.
        let shift = mantissa.leading_zeros() as i32 - 3;
        mantissa <<= shift;
        exponent += 60 - shift;
    }
    if let Some(precision) = precision.filter(|&precision| precision < FRACTION_DIGITS) {
        let dropped = 4 * (FRACTION_DIGITS - precision);
        let rest = mantissa & ((1 << dropped) - 1);
        let half = 1 << (dropped - 1);
        mantissa >>= dropped;
        mantissa += u64::from(rest > half || rest == half && mantissa & 1 == 1);
        mantissa <<= dropped;
        if mantissa >> 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let all = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let fraction = match precision {
        None => all.trim_end_matches('0').to_owned(),
        Some(precision) => {
            let mut digits = all[..precision.min(FRACTION_DIGITS)].to_owned();
            digits.extend(std::iter::repeat_n('0', precision - digits.len()));
            digits
        }
    };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("0x{}{point}{fraction}{}", mantissa >> 60, signed_exponent('p', exponent))
}

/// What `#` asks for: always a point, and for some verbs no trailing zero cut off.
fn with_point(digits: &str, verb: char, precision: Option<usize>) -> String {
    // An upper-case X counts no digits: that is how Go does it.
    let mut wanted = if matches!(verb, 'g' | 'G' | 'x') { precision.unwrap_or(6) } else { 0 };
    let exponent = if matches!(verb, 'x' | 'X') { digits.find('p') } else { digits.find('e') };
    let (mantissa, exponent) = digits.split_at(exponent.unwrap_or(digits.len()));
    let significant = mantissa.chars().filter(|&c| c != '.').skip_while(|&c| c == '0').count();
    // The zero of "0" counts as a digit; so does the x of a hexadecimal prefix, as Go counts.
    wanted = wanted.saturating_sub(if mantissa == "0" { 1 } else { significant });
    let point = if mantissa.contains('.') { "" } else { "." };
    format!("{mantissa}{point}{}{exponent}", "0".repeat(wanted))
}
