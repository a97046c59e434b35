//! The warnings that an answer carries: each once, and cut where they would be too long together.

use std::collections::HashSet;

/// So many characters are sent in full.
const TOGETHER: usize = 4 * 1024;
/// Where there are more, each warning is cut to so many.
const EACH: usize = 256;

/// What is sent of some warnings.
pub(crate) fn sent(warnings: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut sent = Vec::new();
    let (mut written, mut cuts) = (0, false);
    for warning in warnings.iter().filter(|warning| !warning.is_empty()) {
        if cuts && written >= TOGETHER {
            break;
        }
        if !seen.insert(warning) {
            continue;
        }
        let length = warning.chars().count();
        sent.push(warning.clone());
        written += if cuts { length.min(EACH) } else { length };
        if !cuts && written > TOGETHER {
            cuts = true;
            written = sent.iter().map(|warning| warning.chars().count().min(EACH)).sum();
        }
    }
    if cuts {
        for warning in &mut sent {
            if let Some((end, _)) = warning.char_indices().nth(EACH) {
                warning.truncate(end);
            }
        }
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_sent_as_they_are_and_each_once() {
        let few = ["a", "", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(sent(few), ["a", "b"]);
        let one = vec!["x".repeat(TOGETHER)];
        assert_eq!(sent(one.clone()), one);
    }

    #[test]
    fn where_there_are_too_many_each_is_cut_and_the_rest_is_dropped() {
        let many = (0..100_000).map(|number| format!("{number}{}", "\u{e9}".repeat(300))).collect();
        let sent = sent(many);
        assert!(sent.iter().all(|warning| warning.chars().count() == EACH));
        assert_eq!(sent.len(), TOGETHER / EACH);
    }
}
