//! Numbers with units, such as `500m` and `1Gi`: exact, compared by value, written in one canonical way.

use std::cmp::Ordering;

/// A number with a unit.
#[derive(Debug, Clone)]
pub struct Quantity {
    /// The value is `mantissa × 10^exponent`.
    mantissa: i128,
    exponent: i32,
    format: Format,
    /// The text it was read from, where that is kept rather than the canonical form.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// Why text is not a quantity.
pub type QuantityError = &'static str;

const FORMAT_WRONG: QuantityError =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: QuantityError = "unable to parse numeric part of quantity";
const SUFFIX: QuantityError = "unable to parse quantity's suffix";

/// Nothing smaller than this power of ten is kept.
const NANO: i32 = -9;
/// Resources of containers are kept to this power of ten.
const MILLI: i32 = -3;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// A quantity taken apart.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl Quantity {
    /// Nothing.
    pub fn zero() -> Self {
        Self { mantissa: 0, exponent: 0, format: Format::DecimalSi, text: None }
    }

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(FORMAT_WRONG);
        }
        let parts = split(text)?;
        let (binary, power, format) = unit(parts.suffix).ok_or(SUFFIX)?;
        let digits = format!("{}{}", parts.whole, parts.fraction);
        let mut mantissa: i128 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| NUMERIC)? };
        let fraction = i32::try_from(parts.fraction.len()).map_err(|_| NUMERIC)?;
        let mut exponent = if binary { -fraction } else { power.checked_sub(fraction).ok_or(NUMERIC)? };
        let kept = kept_text(&parts, &digits, binary, power, exponent, mantissa);
        if binary {
            mantissa = mantissa.checked_mul(1_i128 << power).ok_or(NUMERIC)?;
        }
        if parts.negative {
            mantissa = -mantissa;
        }
        if exponent < NANO {
            (mantissa, exponent) = (scaled(mantissa, exponent, NANO), NANO);
        }
        Ok(Self { mantissa, exponent, format, text: kept.then(|| text.to_owned()) }.capped())
    }

    /// Binary quantities end at the largest whole number of 64 bits.
    fn capped(mut self) -> Self {
        let most = Self { mantissa: i128::from(i64::MAX), exponent: 0, format: Format::BinarySi, text: None };
        if self.format == Format::BinarySi && self.compare(&most) == Ordering::Greater {
            return most;
        }
        let one = Self { mantissa: 1, ..Self::zero() };
        if self.format == Format::BinarySi && self.sign() > 0 && self.compare(&one) == Ordering::Less {
            self.format = Format::DecimalSi;
        }
        self
    }

    /// As it is written: the text it was read from where that is near enough to canonical, the canonical form otherwise.
    pub fn written(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.canonical())
    }

    /// Whether it is a whole number to who counts it in thousandths within 64 bits, as Kubernetes does: what is too large may
    /// be taken for a fraction, or for nothing.
    pub fn counts_as_whole(&self) -> bool {
        let number = self.mantissa as i64;
        let thousandths = match self.exponent - MILLI {
            ..0 => scaled(self.mantissa, self.exponent, MILLI) as i64,
            up @ (0..=3 | 6 | 9) => number.wrapping_mul(10_i64.pow(up.unsigned_abs())),
            up => 10_i64.checked_pow(up.unsigned_abs()).and_then(|factor| number.checked_mul(factor)).unwrap_or(0),
        };
        thousandths % 1000 == 0
    }

    /// Drops what is smaller than a thousandth, rounding away from zero, as the resources of containers are kept.
    pub fn rounded_to_milli(mut self) -> Self {
        if self.exponent < MILLI {
            self.mantissa = scaled(self.mantissa, self.exponent, MILLI);
            self.exponent = MILLI;
            self.text = None;
        }
        self
    }

    /// The one way to write a value in its format.
    fn canonical(&self) -> String {
        if self.mantissa == 0 {
            return "0".to_owned();
        }
        if self.format == Format::BinarySi
            && let Some(whole) = self.whole()
            && !(-1024 < whole && whole < 1024)
        {
            let (mut number, mut power) = (whole, 0);
            while number % 1024 == 0 && power + 1 < BINARY.len() {
                number /= 1024;
                power += 1;
            }
            return format!("{number}{}", BINARY[power]);
        }
        let (mut number, mut exponent) = (self.mantissa, self.exponent);
        while number % 10 == 0 {
            number /= 10;
            exponent += 1;
        }
        let up = exponent.rem_euclid(3);
        number = number.saturating_mul(10_i128.pow(up.unsigned_abs()));
        exponent -= up;
        let unit = DECIMAL.iter().find(|(_, power)| *power == exponent);
        match (self.format, unit) {
            (Format::DecimalExponent, _) if exponent == 0 => number.to_string(),
            (Format::DecimalExponent, _) | (_, None) => format!("{number}e{exponent}"),
            (_, Some((unit, _))) => format!("{number}{unit}"),
        }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        match self.mantissa.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Compares by value.
    pub fn compare(&self, other: &Self) -> Ordering {
        if self.exponent == other.exponent || self.sign() != other.sign() {
            return if self.sign() == other.sign() {
                self.mantissa.cmp(&other.mantissa)
            } else {
                self.sign().cmp(&other.sign())
            };
        }
        let low = self.exponent.min(other.exponent);
        let raised = |quantity: &Self| {
            let zeros = u32::try_from(quantity.exponent - low).ok()?;
            quantity.mantissa.checked_mul(10_i128.checked_pow(zeros)?)
        };
        match (raised(self), raised(other)) {
            (Some(left), Some(right)) => left.cmp(&right),
            // What overflows has the larger magnitude.
            (None, _) => self.sign().cmp(&0),
            (_, None) => 0.cmp(&other.sign()),
        }
    }

    /// The sum with another quantity, in the format of the first.
    pub fn plus(&self, other: &Self) -> Self {
        let low = self.exponent.min(other.exponent);
        let raised = |quantity: &Self| {
            let zeros = u32::try_from(quantity.exponent - low).unwrap_or(u32::MAX);
            quantity.mantissa.saturating_mul(10_i128.checked_pow(zeros).unwrap_or(i128::MAX))
        };
        let mantissa = raised(self).saturating_add(raised(other));
        let format = if self.mantissa == 0 { other.format } else { self.format };
        Self { mantissa, exponent: low, format, text: None }
    }

    /// About the value.
    pub fn approximate(&self) -> f64 {
        self.mantissa as f64 * 10_f64.powi(self.exponent)
    }

    /// The value where it is a whole number.
    pub fn whole(&self) -> Option<i128> {
        if self.exponent >= 0 {
            return self.mantissa.checked_mul(10_i128.checked_pow(self.exponent.unsigned_abs())?);
        }
        let divisor = 10_i128.checked_pow(self.exponent.unsigned_abs())?;
        (self.mantissa % divisor == 0).then(|| self.mantissa / divisor)
    }
}

/// Divides by a power of ten, rounding away from zero.
fn scaled(mantissa: i128, from: i32, to: i32) -> i128 {
    let Some(divisor) = 10_i128.checked_pow((to - from).unsigned_abs()) else { return mantissa.signum() };
    let quotient = mantissa / divisor;
    if mantissa % divisor == 0 { quotient } else { quotient + mantissa.signum() }
}

/// Whether the text counts as canonical by the real server's rule of thumb.
fn kept_text(parts: &Parts<'_>, digits: &str, binary: bool, power: i32, exponent: i32, mantissa: i128) -> bool {
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    if binary {
        let room = 15 - length - power * 3 / 10 - 1;
        return room >= 0 && parts.fraction.is_empty() && mantissa & 7 != 0;
    }
    length <= 18 && exponent >= NANO && exponent % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let negative = text.starts_with('-');
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let rest = rest.trim_start_matches('0');
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (whole, rest) = rest.split_at(end);
    let whole = if whole.is_empty() { "0" } else { whole };
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len())),
        None => ("", rest),
    };
    let letters = suffix.trim_start_matches(|character| "eEinumkKMGTP".contains(character));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FORMAT_WRONG);
    }
    Ok(Parts { negative, whole, fraction, suffix })
}

/// Whether a suffix is binary, its power and its format.
fn unit(suffix: &str) -> Option<(bool, i32, Format)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(unit, _)| *unit == suffix) {
        return Some((false, *power, Format::DecimalSi));
    }
    if let Some(power) = BINARY.iter().skip(1).position(|unit| *unit == suffix) {
        return Some((true, i32::try_from(power + 1).ok()? * 10, Format::BinarySi));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    // Beyond this no value can be told from zero or infinity, and arithmetic on it would overflow.
    let power = exponent.parse::<i32>().ok().filter(|power| power.abs() < 1_000_000)?;
    Some((false, power, Format::DecimalExponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, written: &str) {
        assert_eq!(Quantity::parse(text).map(|quantity| quantity.written()).as_deref(), Ok(written), "{text}");
    }

    #[test]
    fn writes_what_the_real_server_writes() {
        for (text, written) in [
            ("0.5", "500m"),
            ("2.50", "2500m"),
            ("1024Mi", "1Gi"),
            ("1000Mi", "1000Mi"),
            ("1.500", "1.500"),
            ("1E400", "10e399"),
            ("1000m", "1"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1.5Gi", "1536Mi"),
            ("512", "512"),
            ("1000", "1k"),
            ("-3", "-3"),
            ("0.3n", "1n"),
            ("123456789012345678Ki", "9223372036854775807"),
        ] {
            check(text, written);
        }
    }

    #[test]
    fn refuses_with_the_real_servers_words() {
        for (text, error) in [
            ("", FORMAT_WRONG),
            ("x", FORMAT_WRONG),
            ("1 Gi", FORMAT_WRONG),
            ("1K", SUFFIX),
            ("1ee", SUFFIX),
            ("1Gi1", SUFFIX),
        ] {
            assert_eq!(Quantity::parse(text).map(|quantity| quantity.written()), Err(error), "{text}");
        }
    }

    #[test]
    fn rounds_resources_up_to_thousandths() {
        let rounded = |text| Quantity::parse(text).map(|quantity| quantity.rounded_to_milli().written());
        assert_eq!(rounded("100u").as_deref(), Ok("1m"));
        assert_eq!(rounded("-100u").as_deref(), Ok("-1m"));
        assert_eq!(rounded("1.5").as_deref(), Ok("1500m"));
    }

    #[test]
    fn compares_by_value() {
        let compared = |left, right| {
            Quantity::parse(left)
                .unwrap_or_else(|error| panic!("{left}: {error}"))
                .compare(&Quantity::parse(right).unwrap_or_else(|error| panic!("{right}: {error}")))
        };
        assert_eq!(compared("1", "1000m"), Ordering::Equal);
        assert_eq!(compared("1Ki", "1k"), Ordering::Greater);
        assert_eq!(compared("-1", "1u"), Ordering::Less);
        assert_eq!(compared("1E400", "1"), Ordering::Greater);
    }

    #[test]
    fn what_is_too_large_to_count_may_be_a_fraction() {
        let whole = |text| Quantity::parse(text).map(|quantity| quantity.counts_as_whole());
        for (text, expected) in
            [("1", true), ("1500m", false), ("1.5Gi", true), ("0.5", false), ("10Pi", false), ("100E", true)]
        {
            assert_eq!(whole(text), Ok(expected), "{text}");
        }
    }
}
