//! A report as a table for people.

use std::fmt;

use super::{Line, Report, Target, quantity::significant};
use crate::report::Quantity;

const HEADINGS: [&str; 6] = ["what", "measured", "target", "raw", "ratio", "bounded by"];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.setting {
            writeln!(f, "{line}")?;
        }
        let mut rows = vec![HEADINGS.map(str::to_owned)];
        rows.extend(self.lines.iter().map(cells));
        let widths = widths(&rows);
        writeln!(f)?;
        for (number, row) in rows.iter().enumerate() {
            write_row(f, row, &widths)?;
            if number == 0 {
                write_row(f, &widths.map(|width| "─".repeat(width)), &widths)?;
            }
        }
        if self.lines.iter().all(|line| line.raw.is_none()) {
            return Ok(());
        }
        writeln!(f, "\nraw is {}:", self.comparison)?;
        let width = self.lines.iter().map(|line| line.what.chars().count()).max().unwrap_or_default();
        for (line, raw) in self.lines.iter().filter_map(|line| Some((line, line.raw.as_ref()?))) {
            writeln!(f, "  {:<width$}  {}", line.what, raw.what)?;
        }
        Ok(())
    }
}

fn cells(line: &Line) -> [String; 6] {
    let raw = line.raw.as_ref();
    [
        line.what.clone(),
        line.measured.to_string(),
        target(line),
        raw.map_or_else(String::new, |raw| raw.measured.to_string()),
        raw.map_or_else(String::new, |raw| format!("{}×", significant(raw.ratio))),
        line.bound_by.to_owned(),
    ]
}

fn target(line: &Line) -> String {
    let Some(target) = line.target else { return String::new() };
    let quantity = |value| Quantity { value, unit: line.measured.unit };
    let text = match target {
        Target::AtLeast(bound) => format!("≥ {}", quantity(bound)),
        Target::AtMost(bound) => format!("≤ {}", quantity(bound)),
        Target::RatioAtMost(bound) => format!("≤ {}× raw", significant(bound)),
        Target::RatioAtLeast(bound) => format!("≥ {}× raw", significant(bound)),
    };
    match line.met {
        Some(true) => format!("{text} ✓"),
        Some(false) => format!("{text} ✗"),
        None => text,
    }
}

fn widths(rows: &[[String; 6]]) -> [usize; 6] {
    let mut widths = [0; 6];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

/// Numbers stand right, words left; nothing stands behind the last word.
fn write_row(f: &mut fmt::Formatter<'_>, cells: &[String; 6], widths: &[usize; 6]) -> fmt::Result {
    let mut text = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let padding = " ".repeat(width - cell.chars().count());
        let numeric = matches!(HEADINGS[column], "measured" | "raw" | "ratio");
        text += &if numeric { format!("{padding}{cell}") } else { format!("{cell}{padding}") };
        text += "  ";
    }
    writeln!(f, "{}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::quantity::Unit;

    #[test]
    fn a_table_is_aligned_and_says_what_was_missed() {
        let report = Report {
            version: "0.0.0",
            setting: vec!["2 cores".to_owned()],
            comparison: "the least",
            lines: vec![
                Line::new("puts", Quantity { value: 23_456.0, unit: Unit::PerSecond }, "the disk")
                    .target(Target::AtLeast(20_000.0))
                    .beside("an append", Quantity { value: 46_912.0, unit: Unit::PerSecond }),
                Line::new("a slow read", Quantity::nanoseconds(1_500.0), "memory").target(Target::AtMost(1_000.0)),
                Line::new("neither", Quantity::bytes(12.0), "nothing"),
            ],
        };
        let expected = "\
2 cores

what         measured  target             raw  ratio  bounded by
───────────  ────────  ────────────  ────────  ─────  ──────────
puts         23,456/s  ≥ 20,000/s ✓  46,912/s   0.5×  the disk
a slow read    1.5 µs  ≤ 1 µs ✗                       memory
neither          12 B                                 nothing

raw is the least:
  puts         an append
";
        let text = report.to_string();
        assert_eq!(text, expected);
    }

    #[test]
    fn json_has_the_numbers_and_the_judgement() {
        let line = Line::new("puts", Quantity { value: 2.0, unit: Unit::PerSecond }, "the disk")
            .target(Target::AtLeast(1.0))
            .beside("an append", Quantity { value: 4.0, unit: Unit::PerSecond });
        let expected = serde_json::json!({
            "what": "puts",
            "measured": { "value": 2.0, "unit": "per_second" },
            "target": { "at_least": 1.0 },
            "met": true,
            "raw": { "what": "an append", "measured": { "value": 4.0, "unit": "per_second" }, "ratio": 0.5 },
            "bound_by": "the disk",
        });
        assert_eq!(serde_json::to_value(&line).unwrap(), expected);
    }
}
