//! One measurement of a benchmark, and the choice of those that the user wants.

use anyhow::Context;

use crate::report::Line;

/// One measurement: its name, and what makes its lines of the report.
pub(crate) struct Measurement<Bench> {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Bench) -> anyhow::Result<Vec<Line>>,
}

/// The measurements whose names contain one of these words; all of them if no word is given.
pub(crate) fn choose<'a, Bench>(
    all: &'a [Measurement<Bench>],
    words: &[String],
) -> anyhow::Result<Vec<&'a Measurement<Bench>>> {
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let chosen: Vec<_> = all.iter().filter(|measurement| wanted(measurement.name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = all.iter().map(|measurement| measurement.name).collect();
        anyhow::bail!("no measurement has such a name; there are {}", names.join(", "));
    }
    Ok(chosen)
}

/// Runs measurements one after the other, and says which one is running.
pub(crate) fn run<Bench>(chosen: &[&Measurement<Bench>], bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (number, measurement) in chosen.iter().enumerate() {
        eprintln!("[{}/{}] {}", number + 1, chosen.len(), measurement.name);
        lines.extend((measurement.run)(bench).with_context(|| format!("cannot measure {}", measurement.name))?);
    }
    Ok(lines)
}
