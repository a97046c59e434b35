//! What was measured, what was hoped for and what it is compared with: data first, text in `report/`.

mod quantity;
mod table;

use serde::Serialize;

pub(crate) use self::quantity::Quantity;

/// The outcome of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The version of the program.
    pub(crate) version: &'static str,
    /// Where and on what it ran, for people.
    pub(crate) setting: Vec<String>,
    /// What the column `raw` stands for.
    pub(crate) comparison: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// One thing that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) measured: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<Target>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) met: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<Raw>,
    /// What keeps it from being better.
    pub(crate) bound_by: &'static str,
}

/// What a measurement should reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// At most so many times the raw measurement.
    RatioAtMost(f64),
    /// At least so many times the raw measurement.
    RatioAtLeast(f64),
}

/// The least that the machine needs for the same, measured in the same run.
#[derive(Debug, Serialize)]
pub(crate) struct Raw {
    pub(crate) what: &'static str,
    pub(crate) measured: Quantity,
    /// The measurement divided by this one.
    pub(crate) ratio: f64,
}

impl Line {
    pub(crate) fn new(what: impl Into<String>, measured: Quantity, bound_by: &'static str) -> Self {
        Self { what: what.into(), measured, target: None, met: None, raw: None, bound_by }
    }

    /// The same line compared with a raw measurement of the same unit.
    pub(crate) fn beside(mut self, what: &'static str, raw: Quantity) -> Self {
        self.raw = Some(Raw { what, measured: raw, ratio: self.measured.value / raw.value });
        self.judge()
    }

    /// The same line with a target.
    pub(crate) fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self.judge()
    }

    fn judge(mut self) -> Self {
        let value = self.measured.value;
        let ratio = self.raw.as_ref().map(|raw| raw.ratio);
        self.met = self.target.and_then(|target| match target {
            Target::AtLeast(bound) => Some(value >= bound),
            Target::AtMost(bound) => Some(value <= bound),
            Target::RatioAtMost(bound) => ratio.map(|ratio| ratio <= bound),
            Target::RatioAtLeast(bound) => ratio.map(|ratio| ratio >= bound),
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(value: f64, target: Target) -> Option<bool> {
        let line = Line::new("it", Quantity::nanoseconds(value), "the machine").target(target);
        line.beside("raw", Quantity::nanoseconds(100.0)).met
    }

    #[test]
    fn targets_are_judged_at_their_bounds() {
        assert_eq!([met(5.0, Target::AtLeast(5.0)), met(4.9, Target::AtLeast(5.0))], [Some(true), Some(false)]);
        assert_eq!([met(5.0, Target::AtMost(5.0)), met(5.1, Target::AtMost(5.0))], [Some(true), Some(false)]);
        assert_eq!(
            [met(150.0, Target::RatioAtMost(1.5)), met(151.0, Target::RatioAtMost(1.5))],
            [Some(true), Some(false)]
        );
    }

    #[test]
    fn a_ratio_without_a_raw_measurement_is_not_judged() {
        let line = Line::new("it", Quantity::nanoseconds(1.0), "the machine");
        assert_eq!(line.target(Target::RatioAtMost(1.5)).met, None);
    }
}
