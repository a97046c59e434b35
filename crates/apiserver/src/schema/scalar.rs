//! Scalars with a syntax of their own inside JSON strings: base64, times, quantities, escapes.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::quantity::{Quantity, QuantityError};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Checks base64 and writes it without line breaks; the error is the place of the first byte that does not fit.
pub(super) fn base64(text: &str) -> Result<String, usize> {
    let bytes = text.as_bytes();
    let mut normal = String::with_capacity(text.len());
    let mut at = 0;
    let next = |at: &mut usize| {
        while matches!(bytes.get(*at), Some(b'\r' | b'\n')) {
            *at += 1;
        }
        let byte = bytes.get(*at).copied();
        *at += usize::from(byte.is_some());
        byte
    };
    loop {
        let mut group = [0u8; 4];
        for place in 0..4 {
            match next(&mut at) {
                None if place == 0 => return Ok(normal),
                None => return Err(at - place),
                Some(b'=') => {
                    if place < 2 {
                        return Err(at - 1);
                    }
                    if place == 2 && next(&mut at) != Some(b'=') {
                        return Err(if at == bytes.len() { at } else { at - 1 });
                    }
                    if let Some(_more) = next(&mut at) {
                        return Err(at - 1);
                    }
                    for byte in group.iter_mut().skip(place) {
                        *byte = b'=';
                    }
                    normal.extend(group.iter().map(|byte| char::from(*byte)));
                    return Ok(normal);
                }
                Some(byte) if ALPHABET.contains(&byte) => group[place] = byte,
                Some(_) => return Err(at - 1),
            }
        }
        normal.extend(group.iter().map(|byte| char::from(*byte)));
    }
}

/// Writes bytes in base64.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Reads bytes from base64 that was checked before.
pub(crate) fn decode_base64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

/// The text a quantity is kept as; quotes, where it has them, are still around it.
pub(super) fn quantity(token: &str) -> Result<Value, QuantityError> {
    let text = token.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(token);
    Quantity::parse(text.trim()).map(|quantity| quantity.written().into())
}

/// A time in seconds, in UTC.
pub(super) fn time(text: &str) -> Result<String, String> {
    Moment::parse(text, "2006-01-02T15:04:05Z07:00").map(|moment| moment.seconds())
}

/// A time in microseconds, in UTC.
pub(super) fn micro_time(text: &str) -> Result<String, String> {
    Moment::parse(text, "2006-01-02T15:04:05.000000Z07:00").map(|moment| moment.micros())
}

/// The seconds since 1970 of a time; none where the text is not one.
pub(crate) fn unix_seconds(text: &str) -> Option<i64> {
    Moment::parse(text, "").ok().map(|moment| moment.seconds)
}

/// A point in time as seconds since 1970 and microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    pub(crate) micros: u32,
}

impl Moment {
    /// The first moment of the first year, which is how Go says that there is none.
    pub(crate) const NONE: Self = Self { seconds: -62_135_596_800, micros: 0 };

    /// Reads a time that was written by us.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::parse(text, "").ok()
    }

    /// Whether it can be written with a year of four digits.
    pub(crate) fn has_year(&self) -> bool {
        (Self::NONE.seconds..253_402_300_800).contains(&self.seconds)
    }

    /// Reads RFC 3339, with Go's words for what does not fit its reference layout.
    fn parse(text: &str, layout: &str) -> Result<Self, String> {
        let parts = [
            ("2006", 4),
            ("-", 1),
            ("01", 2),
            ("-", 1),
            ("02", 2),
            ("T", 1),
            ("15", 2),
            (":", 1),
            ("04", 2),
            (":", 1),
            ("05", 2),
        ];
        let mut rest = text;
        let mut numbers = Vec::with_capacity(6);
        let refused = |rest: &str, part: &str| {
            Err(format!(
                "parsing time {} as {}: cannot parse {} as {}",
                quote(text),
                quote(layout),
                quote(rest),
                quote(part)
            ))
        };
        for (part, width) in parts {
            if part.bytes().all(|byte| byte.is_ascii_digit()) {
                let digits = rest.get(..width).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
                let Some(number) = digits.and_then(|digits| digits.parse::<i64>().ok()) else {
                    return refused(rest, part);
                };
                numbers.push(number);
                rest = &rest[width..];
                let limits = [("month", 1..=12), ("hour", 0..=23), ("minute", 0..=59), ("second", 0..=59)];
                let named = ["year", "month", "day", "hour", "minute", "second"].get(numbers.len() - 1);
                if let Some((name, _)) =
                    limits.iter().find(|(name, limit)| named == Some(name) && !limit.contains(&number))
                {
                    return Err(format!("parsing time {}: {name} out of range", quote(text)));
                }
            } else {
                let Some(after) = rest.strip_prefix(part) else { return refused(rest, part) };
                rest = after;
            }
        }
        let exact = layout.contains(".000000");
        let micros = match fraction(rest, if exact { 6 } else { usize::MAX }) {
            Some((micros, after)) => {
                rest = after;
                micros
            }
            None if exact => return refused(rest, ".000000"),
            None => 0,
        };
        let Some((offset, after)) = offset(rest) else { return refused(rest, "Z07:00") };
        if !after.is_empty() {
            return Err(format!("parsing time {}: extra text: {}", quote(text), quote(after)));
        }
        let [year, month, day, hour, minute, second] = numbers[..] else { return refused(text, "2006") };
        // Which days there are depends on the month and the year, and so is asked last.
        if day < 1 || day > days_in_month(year, month) {
            return Err(format!("parsing time {}: day out of range", quote(text)));
        }
        let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
        Ok(Self { seconds, micros })
    }

    /// As text, in seconds.
    pub(crate) fn seconds(&self) -> String {
        let (year, month, day) = civil(self.seconds.div_euclid(86_400));
        let rest = self.seconds.rem_euclid(86_400);
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
    }

    /// As text, in microseconds.
    pub(crate) fn micros(&self) -> String {
        let seconds = self.seconds();
        format!("{}.{:06}Z", &seconds[..seconds.len() - 1], self.micros)
    }
}

/// A fraction of a second of at most so many digits, cut to microseconds, and what stands behind it.
///
/// A bounded fraction must have exactly its number of digits.
fn fraction(rest: &str, most: usize) -> Option<(u32, &str)> {
    let digits = rest.strip_prefix(['.', ','])?;
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len()).min(most);
    if end == 0 || (most != usize::MAX && end < most) {
        return None;
    }
    let micros = digits[..end]
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(6)
        .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    Some((micros, &digits[end..]))
}

/// The offset from UTC in seconds, and what stands behind it.
fn offset(rest: &str) -> Option<(i64, &str)> {
    if let Some(after) = rest.strip_prefix('Z') {
        return Some((0, after));
    }
    let bytes = rest.as_bytes().get(..6)?;
    let sign = match bytes[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let number = |from: usize| rest.get(from..from + 2)?.parse::<i64>().ok();
    let (hours, minutes) = (number(1)?, number(4)?);
    (bytes[3] == b':' && hours < 24 && minutes < 60).then(|| (sign * (hours * 3600 + minutes * 60), &rest[6..]))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of a date of the Gregorian calendar, by counting years from March.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date of a number of days since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

fn quote(text: &str) -> String {
    crate::field::quote(text)
}

/// The text of a string whose opening quote was read, and its length in bytes with the closing quote.
///
/// Half a surrogate pair and bytes that are not UTF-8 become U+FFFD, as in Go.
pub(crate) fn unescape(text: &[u8]) -> (String, usize) {
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => {
                let escape = text.get(at).copied().unwrap_or(b'\\');
                at += 1;
                let plain = match escape {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'u' => {
                        let character = code_point(text, &mut at);
                        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        continue;
                    }
                    other => other,
                };
                bytes.push(plain);
            }
            other => bytes.push(*other),
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), at)
}

/// The character of the four digits at hand, together with the second half of a pair where one follows.
fn code_point(text: &[u8], at: &mut usize) -> char {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(text.get(at..at + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(high) = unit(*at) else { return char::REPLACEMENT_CHARACTER };
    *at += 4;
    if (0xd800..0xdc00).contains(&high)
        && text.get(*at..*at + 2) == Some(b"\\u")
        && let Some(low) = unit(*at + 2).filter(|low| (0xdc00..0xe000).contains(low))
    {
        *at += 6;
        let joined = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER)
}
