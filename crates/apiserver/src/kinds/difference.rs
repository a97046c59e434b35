//! How two texts differ, line by line, in the form in which Kubernetes shows it within a message.

use std::{collections::HashMap, ops::Range};

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;
/// From how many lines on those that occur often are not looked for.
const MANY_LINES: usize = 200;

/// What changes between two texts, in hunks with some lines around each; empty if nothing does.
pub(super) fn unified(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut out = String::new();
    for hunk in hunks(&steps(&before, &after)) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let shown = |from: usize, to: usize| match to - from {
            1 => format!("{}", from + 1),
            0 => format!("{from},0"),
            length => format!("{},{length}", from + 1),
        };
        out.push_str(&format!(
            "@@ -{} +{} @@\n",
            shown(first.before.start, last.before.end),
            shown(first.after.start, last.after.end)
        ));
        for step in &hunk {
            for line in &before[step.before.clone()] {
                out.push_str(&format!("{}{line}\n", if step.same { ' ' } else { '-' }));
            }
            for line in after[step.after.clone()].iter().filter(|_| !step.same) {
                out.push_str(&format!("+{line}\n"));
            }
        }
    }
    out
}

/// Lines that are the same in both, or that take the place of others.
#[derive(Clone, Debug)]
struct Step {
    same: bool,
    before: Range<usize>,
    after: Range<usize>,
}

/// Lines that both texts have one after another.
#[derive(Clone, Copy, Debug)]
struct Block {
    before: usize,
    after: usize,
    length: usize,
}

/// The way from one text to the other.
fn steps(before: &[&str], after: &[&str]) -> Vec<Step> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in after.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if after.len() >= MANY_LINES {
        places.retain(|_, places| places.len() <= after.len() / 100 + 1);
    }
    let mut blocks = Vec::new();
    let mut open = vec![(0..before.len(), 0..after.len())];
    while let Some((first, second)) = open.pop() {
        let found = longest(before, after, &places, &first, &second);
        if found.length > 0 {
            open.push((first.start..found.before, second.start..found.after));
            open.push((found.before + found.length..first.end, found.after + found.length..second.end));
            blocks.push(found);
        }
    }
    blocks.sort_by_key(|block| (block.before, block.after));
    blocks.push(Block { before: before.len(), after: after.len(), length: 0 });
    let (mut first, mut second) = (0, 0);
    let mut steps: Vec<Step> = Vec::new();
    for block in blocks {
        if block.before > first || block.after > second {
            steps.push(Step { same: false, before: first..block.before, after: second..block.after });
        }
        let (end, other_end) = (block.before + block.length, block.after + block.length);
        match steps.last_mut().filter(|last| last.same) {
            Some(last) => (last.before.end, last.after.end) = (end, other_end),
            None if block.length > 0 => {
                steps.push(Step { same: true, before: block.before..end, after: block.after..other_end });
            }
            None => {}
        }
        (first, second) = (end, other_end);
    }
    steps
}

/// The most lines in sequence that both have within the ranges; the earliest of equally many.
fn longest(
    before: &[&str],
    after: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    first: &Range<usize>,
    second: &Range<usize>,
) -> Block {
    let mut best = Block { before: first.start, after: second.start, length: 0 };
    // How long the run is that ends at a line of the other text.
    let mut runs: HashMap<usize, usize> = HashMap::new();
    for at in first.clone() {
        let mut now = HashMap::new();
        for other in places.get(before[at]).into_iter().flatten().copied().filter(|other| second.contains(other)) {
            let length = other.checked_sub(1).and_then(|previous| runs.get(&previous)).copied().unwrap_or(0) + 1;
            now.insert(other, length);
            if length > best.length {
                best = Block { before: at + 1 - length, after: other + 1 - length, length };
            }
        }
        runs = now;
    }
    // Lines that were not looked for belong to it too.
    while best.before > first.start && best.after > second.start && before[best.before - 1] == after[best.after - 1] {
        best = Block { before: best.before - 1, after: best.after - 1, length: best.length + 1 };
    }
    while best.before + best.length < first.end
        && best.after + best.length < second.end
        && before[best.before + best.length] == after[best.after + best.length]
    {
        best.length += 1;
    }
    best
}

/// Parts of the way, without the long stretches in which nothing changes.
fn hunks(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut hunks: Vec<Vec<Step>> = Vec::new();
    let mut hunk: Vec<Step> = Vec::new();
    let last = steps.len().saturating_sub(1);
    let beginning = |step: &Step| {
        let length = step.before.len().min(CONTEXT);
        let (before, after) = (step.before.start, step.after.start);
        Step { same: true, before: before..before + length, after: after..after + length }
    };
    let ending = |step: &Step| {
        let length = step.before.len().min(CONTEXT);
        let (before, after) = (step.before.end, step.after.end);
        Step { same: true, before: before - length..before, after: after - length..after }
    };
    for (at, step) in steps.iter().enumerate() {
        if !step.same {
            hunk.push(step.clone());
        } else if at == 0 {
            hunk.push(ending(step));
        } else if at == last {
            hunk.push(beginning(step));
        } else if step.before.len() > 2 * CONTEXT {
            hunk.push(beginning(step));
            hunks.push(std::mem::take(&mut hunk));
            hunk.push(ending(step));
        } else {
            hunk.push(step.clone());
        }
    }
    hunks.push(hunk);
    hunks.retain(|hunk| hunk.iter().any(|step| !step.same));
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_some_lines_around_them() {
        let before: Vec<String> = (1..=20).map(|number| number.to_string()).collect();
        let mut after = before.clone();
        after[1] = "two".into();
        after.remove(15);
        let shown = unified(&before.join("\n"), &after.join("\n"));
        let wanted =
            "@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -13,7 +13,6 @@\n 13\n 14\n 15\n-16\n 17\n 18\n 19\n";
        assert_eq!(shown, wanted);
        assert_eq!(unified("a\nb", "a\nb"), "");
    }
}
