//! Numbers with a unit, written as people read them.

use std::{fmt, time::Duration};

use serde::Serialize;

/// A number and what it counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    pub(crate) unit: Unit,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    PerSecond,
    Nanoseconds,
    Bytes,
}

impl Quantity {
    /// So many in such a time.
    pub(crate) fn rate(count: usize, elapsed: Duration) -> Self {
        Self { value: count as f64 / elapsed.as_secs_f64(), unit: Unit::PerSecond }
    }

    pub(crate) fn duration(duration: Duration) -> Self {
        Self::nanoseconds(duration.as_nanos() as f64)
    }

    pub(crate) fn nanoseconds(value: f64) -> Self {
        Self { value, unit: Unit::Nanoseconds }
    }

    pub(crate) fn bytes(value: f64) -> Self {
        Self { value, unit: Unit::Bytes }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.unit {
            Unit::PerSecond if value >= 1e6 => write!(f, "{} M/s", significant(value / 1e6)),
            Unit::PerSecond => write!(f, "{}/s", grouped(value)),
            Unit::Nanoseconds if value >= 1e9 => write!(f, "{} s", significant(value / 1e9)),
            Unit::Nanoseconds if value >= 1e6 => write!(f, "{} ms", significant(value / 1e6)),
            Unit::Nanoseconds if value >= 1e3 => write!(f, "{} µs", significant(value / 1e3)),
            Unit::Nanoseconds => write!(f, "{} ns", significant(value)),
            Unit::Bytes => write!(f, "{} B", grouped(value)),
        }
    }
}

/// A number with three digits that mean something, and no zeros after the point that do not.
pub(crate) fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A whole number with its thousands set apart.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_people_write_them() {
        let nanoseconds =
            [0.0, 7.25, 412.4, 1_000.0, 20_060.0, 2_500_000.0, 1_070_000_000.0].map(Quantity::nanoseconds);
        assert_eq!(
            nanoseconds.map(|quantity| quantity.to_string()),
            ["0 ns", "7.25 ns", "412 ns", "1 µs", "20.1 µs", "2.5 ms", "1.07 s"]
        );
        let bytes = [300.4, 1_024.0, 123_456_789.0, -42.0].map(Quantity::bytes);
        assert_eq!(bytes.map(|quantity| quantity.to_string()), ["300 B", "1,024 B", "123,456,789 B", "-42 B"]);
    }

    #[test]
    fn rates_are_per_second() {
        assert_eq!(Quantity::rate(5, Duration::from_millis(500)).value, 10.0);
        assert_eq!(Quantity::rate(23_456, Duration::from_secs(1)).to_string(), "23,456/s");
        assert_eq!(Quantity::rate(5_230_000, Duration::from_secs(1)).to_string(), "5.23 M/s");
    }
}
