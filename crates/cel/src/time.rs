//! Points and spans of time: how they are read and written, and what their parts are.

/// Nanoseconds in a second.
pub(crate) const SECOND: i128 = 1_000_000_000;
/// The first moment of the year 1 and the last of the year 9999, in nanoseconds from 1970.
const EARLIEST: i128 = -62_135_596_800 * SECOND;
const LATEST: i128 = 253_402_300_799 * SECOND + (SECOND - 1);

/// A span of time as Go writes it: `1h30m`, `-1.5s`. In nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(|| {
            if rest.bytes().any(|b| b.is_ascii_digit()) {
                format!("time: missing unit in duration {text:?}")
            } else {
                invalid()
            }
        })?;
        let (whole, fraction) = rest[..number].split_once('.').unwrap_or((&rest[..number], ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(invalid());
        }
        let unit_end =
            rest[number..].find(|c: char| c.is_ascii_digit() || c == '.').map_or(rest.len(), |end| number + end);
        let unit = match &rest[number..unit_end] {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            other => return Err(format!("time: unknown unit {other:?} in duration {text:?}")),
        };
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        total = whole.checked_mul(unit).and_then(|whole| total.checked_add(whole)).ok_or_else(invalid)?;
        let digits = &fraction[..fraction.len().min(18)];
        if !digits.is_empty() {
            let scale = 10_i128.pow(digits.len() as u32);
            total += digits.parse::<i128>().map_err(|_| invalid())? * unit / scale;
        }
        rest = &rest[unit_end..];
    }
    i64::try_from(if negative { -total } else { total }).map_err(|_| invalid())
}

/// A span of time in a field of the format `duration`: Go's notation, or words such as `3 days`.
pub(crate) fn parse_field_duration(text: &str) -> Option<i64> {
    if let Ok(duration) = parse_duration(text) {
        return Some(duration);
    }
    let mut total: i128 = 0;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
        let number: i128 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let unit_end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let unit = match rest[..unit_end].to_lowercase().as_str() {
            "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1,
            "us" | "\u{b5}s" | "micro" | "micros" | "microsecond" | "microseconds" => 1_000,
            "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
            "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
            "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600 * SECOND,
            "d" | "day" | "days" => 86_400 * SECOND,
            "w" | "wk" | "wks" | "week" | "weeks" => 7 * 86_400 * SECOND,
            _ => return None,
        };
        total = number.checked_mul(unit).and_then(|part| total.checked_add(part))?;
        rest = rest[unit_end..].trim_start();
    }
    i64::try_from(total).ok()
}

/// A span of time as expressions write it: in seconds.
pub(crate) fn duration_text(nanos: i64) -> String {
    let (sign, nanos) = if nanos < 0 { ("-", -i128::from(nanos)) } else { ("", i128::from(nanos)) };
    let fraction = format!("{:09}", nanos % SECOND);
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{dot}{fraction}s", nanos / SECOND)
}

/// A point in time as RFC 3339 writes it, in nanoseconds from 1970.
pub(crate) fn parse_timestamp(text: &str) -> Result<i128, String> {
    let wrong = || format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse");
    let bytes = text.as_bytes();
    let number = |from: usize, length: usize| -> Option<i64> {
        let digits = text.get(from..from + length)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| bytes.get(*at) != Some(mark)) {
        return Err(wrong());
    }
    let parts = (number(0, 4), number(5, 2), number(8, 2), number(11, 2), number(14, 2), number(17, 2));
    let (Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)) = parts else {
        return Err(wrong());
    };
    let mut at = 19;
    let mut nanos = 0_i128;
    if matches!(bytes.get(at), Some(b'.' | b',')) {
        let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let kept = text.get(at + 1..at + 1 + digits.min(9)).filter(|kept| !kept.is_empty()).ok_or_else(wrong)?;
        nanos = kept.parse::<i128>().map_err(|_| wrong())? * 10_i128.pow(9 - kept.len() as u32);
        at += 1 + digits;
    }
    let offset = zone_offset(text.get(at..).unwrap_or_default()).ok_or_else(wrong)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) || hour > 23 || minute > 59 || second > 59 {
        return Err(format!("parsing time {text:?}: out of range"));
    }
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Ok(i128::from(seconds) * SECOND + nanos)
}

/// The date of a field of the format `date`, as a point in time.
pub(crate) fn parse_date(text: &str) -> Option<i128> {
    (text.len() == 10).then(|| parse_timestamp(&format!("{text}T00:00:00Z")).ok()).flatten()
}

/// Whether a point in time is one that expressions can hold.
pub(crate) fn in_range(nanos: i128) -> bool {
    (EARLIEST..=LATEST).contains(&nanos)
}

/// A point in time as RFC 3339.
pub(crate) fn timestamp_text(nanos: i128) -> String {
    let parts = Parts::of(nanos, 0);
    let fraction = format!("{:09}", nanos.rem_euclid(SECOND));
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    let Parts { year, month, day, hour, minute, second, .. } = parts;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{dot}{fraction}Z")
}

/// The offset of a time zone in seconds: `Z`, `+02:00`, `-08:00`.
fn zone_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':').filter(|(hours, minutes)| hours.len() == 2 && minutes.len() == 2)?;
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i64>().ok()).flatten();
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// The offset of a time zone that an expression names. Names of places would need a database that servers do not have.
pub(crate) fn named_zone(name: &str) -> Result<i64, String> {
    if matches!(name, "" | "UTC" | "Z") {
        return Ok(0);
    }
    let unknown = || format!("unknown time zone {name}");
    let Some((hours, minutes)) = name.split_once(':') else { return Err(unknown()) };
    let (negative, digits) = match hours.as_bytes().first() {
        Some(b'-') => (true, &hours[1..]),
        Some(b'+') => (false, &hours[1..]),
        _ => (false, hours),
    };
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| (0..100).contains(number));
    let (hours, minutes) = number(digits).zip(number(minutes)).ok_or_else(unknown)?;
    let offset = hours * 3600 + minutes * 60;
    Ok(if negative { -offset } else { offset })
}

/// A point in time taken apart, as a clock in a time zone shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) millisecond: i64,
    /// From 0.
    pub(crate) day_of_year: i64,
    /// From 0, which is Sunday.
    pub(crate) day_of_week: i64,
}

impl Parts {
    pub(crate) fn of(nanos: i128, offset: i64) -> Self {
        let seconds = nanos.div_euclid(SECOND) as i64 + offset;
        let days = seconds.div_euclid(86_400);
        let (year, month, day) = civil_from_days(days);
        let of_day = seconds.rem_euclid(86_400);
        Self {
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            millisecond: (nanos.rem_euclid(SECOND) / 1_000_000) as i64,
            day_of_year: days - days_from_civil(year, 1, 1),
            day_of_week: (days + 4).rem_euclid(7),
        }
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date. Years are counted from March, so that the day that comes and goes is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}
