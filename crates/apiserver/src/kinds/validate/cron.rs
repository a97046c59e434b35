//! Rules for the schedules of cron jobs.

const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What is wrong with a schedule.
pub(super) fn fault(schedule: &str) -> Option<String> {
    // A zone in front is refused elsewhere; what follows it is judged all the same.
    let zoned = ["TZ=", "CRON_TZ="].iter().any(|prefix| schedule.starts_with(prefix));
    let schedule = schedule.split_once(' ').filter(|_| zoned).map_or(schedule, |(_, rest)| rest.trim());
    if let Some(rest) = schedule.strip_prefix('@') {
        if DESCRIPTORS.contains(&schedule) || rest.starts_with("every ") {
            return None;
        }
        return Some(format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != 5 {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let bounds: [(u32, u32, &[&str]); 5] = [(0, 59, &[]), (0, 23, &[]), (1, 31, &[]), (1, 12, &MONTHS), (0, 6, &DAYS)];
    fields
        .iter()
        .zip(bounds)
        .find_map(|(field, (low, high, names))| field.split(',').find_map(|part| part_fault(part, low, high, names)))
}

/// What is wrong with one part of a field: a value, a range, either with a step.
fn part_fault(part: &str, low: u32, high: u32, names: &[&str]) -> Option<String> {
    let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
    let number = |text: &str| -> Result<u32, String> {
        let named = names.iter().position(|name| *name == text.to_lowercase());
        if let Some(at) = named {
            return Ok(u32::try_from(at).unwrap_or(0) + u32::from(names.len() == 12));
        }
        text.parse::<u32>().map_err(|_| {
            let problem =
                if text.is_empty() || text.parse::<i64>().is_err() { "invalid syntax" } else { "value out of range" };
            if text.starts_with('-') && text.parse::<i64>().is_ok() {
                format!("negative number ({text}) not allowed: {text}")
            } else {
                format!(
                    "failed to parse int from {text}: strconv.Atoi: parsing {}: {problem}",
                    crate::field::quote(text)
                )
            }
        })
    };
    let (start, end) = if matches!(range, "*" | "?") {
        (low, high)
    } else {
        let (first, last) = range.split_once('-').map_or((range, None), |(first, last)| (first, Some(last)));
        let start = match number(first) {
            Ok(start) => start,
            Err(fault) => return Some(fault),
        };
        match last.map(number) {
            Some(Err(fault)) => return Some(fault),
            Some(Ok(end)) => (start, end),
            None if step.is_some() => (start, high),
            None => (start, start),
        }
    };
    if start < low {
        return Some(format!("beginning of range ({start}) below minimum ({low}): {part}"));
    }
    if end > high {
        return Some(format!("end of range ({end}) above maximum ({high}): {part}"));
    }
    if start > end {
        return Some(format!("beginning of range ({start}) beyond end of range ({end}): {part}"));
    }
    match step.map(number) {
        Some(Err(fault)) => Some(fault),
        Some(Ok(0)) => Some(format!("step of range should be a positive number: {part}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn schedules_that_fit_and_that_do_not() {
        for fits in ["* * * * *", "*/5 0 1,15 jan mon-fri", "0-30/2 3 ? * 0", "@daily", "@every 1h"] {
            assert_eq!(fault(fits), None, "{fits}");
        }
        assert_eq!(fault("@reboot").as_deref(), Some("unrecognized descriptor: @reboot"));
        assert_eq!(fault("60 * * * *").as_deref(), Some("end of range (60) above maximum (59): 60"));
        assert_eq!(fault("* *").as_deref(), Some("expected exactly 5 fields, found 2: [* *]"));
    }
}
