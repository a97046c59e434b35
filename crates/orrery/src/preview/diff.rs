//! The difference between two texts, line by line, in the unified form.

/// How many equal lines surround a change.
const CONTEXT: usize = 3;
/// From how many changed lines on no shortest way is looked for: memory grows with their square.
const MAX_CHANGED: usize = 1000;

/// What became of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Keep,
    Remove,
    Add,
}

/// The hunks that make one text of another; nothing when they are equal.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let steps = steps(&old, &new);
    let mut text = String::new();
    for hunk in hunks(&steps) {
        write(&steps, hunk, (&old, &new), &mut text);
    }
    text
}

/// The parts of the steps that are shown together.
fn hunks(steps: &[Step]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in steps.iter().enumerate().filter(|(_, step)| **step != Step::Keep) {
        let (start, end) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(steps.len()));
        match hunks.last_mut() {
            Some(last) if last.end >= start => last.end = end,
            _ => hunks.push(start..end),
        }
    }
    hunks
}

fn write(steps: &[Step], hunk: std::ops::Range<usize>, (old, new): (&[&str], &[&str]), text: &mut String) {
    let lines_of = |steps: &[Step], not: Step| steps.iter().filter(|step| **step != not).count();
    let before = &steps[..hunk.start];
    let (mut from, mut to) = (lines_of(before, Step::Add), lines_of(before, Step::Remove));
    let inside = &steps[hunk];
    let range = |start: usize, count: usize| match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    };
    let (removed, added) = (lines_of(inside, Step::Add), lines_of(inside, Step::Remove));
    text.push_str(&format!("@@ -{} +{} @@\n", range(from, removed), range(to, added)));
    for step in inside {
        let (sign, line) = match step {
            Step::Keep => (' ', old[from]),
            Step::Remove => ('-', old[from]),
            Step::Add => ('+', new[to]),
        };
        from += usize::from(*step != Step::Add);
        to += usize::from(*step != Step::Remove);
        text.push(sign);
        text.push_str(line);
        text.push('\n');
    }
}

/// What makes one list of lines of another.
fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    let middle =
        shortest(old, new).unwrap_or_else(|| [vec![Step::Remove; old.len()], vec![Step::Add; new.len()]].concat());
    [vec![Step::Keep; start], middle, vec![Step::Keep; end]].concat()
}

/// The fewest steps, found as Myers does: how far one gets with no change, with one, with two ….
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Step>> {
    let most = (old.len() + new.len()).min(MAX_CHANGED);
    // By diagonal, which is the place in `old` minus that in `new`, how far in `old` one has got.
    let mut reached = vec![0usize; 2 * most + 3];
    let at = |diagonal: isize| (diagonal + most as isize + 1) as usize;
    let mut history = Vec::new();
    for changed in 0..=most as isize {
        history.push(reached.clone());
        for diagonal in (-changed..=changed).step_by(2) {
            let down =
                diagonal == -changed || (diagonal != changed && reached[at(diagonal - 1)] < reached[at(diagonal + 1)]);
            let mut x = if down { reached[at(diagonal + 1)] } else { reached[at(diagonal - 1)] + 1 };
            let mut y = (x as isize - diagonal) as usize;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached[at(diagonal)] = x;
            if x >= old.len() && y >= new.len() {
                return Some(way_back(&history, (old.len(), new.len()), most));
            }
        }
    }
    None
}

/// The steps that led to the end.
fn way_back(history: &[Vec<usize>], (mut x, mut y): (usize, usize), most: usize) -> Vec<Step> {
    let at = |diagonal: isize| (diagonal + most as isize + 1) as usize;
    let mut steps = Vec::new();
    for (changed, reached) in history.iter().enumerate().rev() {
        let (changed, diagonal) = (changed as isize, x as isize - y as isize);
        let down =
            diagonal == -changed || (diagonal != changed && reached[at(diagonal - 1)] < reached[at(diagonal + 1)]);
        let from = if down { diagonal + 1 } else { diagonal - 1 };
        let (from_x, from_y) = (reached[at(from)], reached[at(from)] as isize - from);
        while x > from_x && y as isize > from_y {
            steps.push(Step::Keep);
            (x, y) = (x - 1, y - 1);
        }
        if changed > 0 {
            steps.push(if down { Step::Add } else { Step::Remove });
            (x, y) = (from_x, from_y as usize);
        }
    }
    steps.reverse();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one text becomes when the steps are taken.
    fn taken(old: &[&str], new: &[&str], steps: &[Step]) -> (Vec<String>, usize) {
        let (mut from, mut to, mut made) = (0, 0, Vec::new());
        for step in steps {
            match step {
                Step::Keep => {
                    assert_eq!(old[from], new[to]);
                    made.push(old[from].to_owned());
                    (from, to) = (from + 1, to + 1);
                }
                Step::Remove => from += 1,
                Step::Add => {
                    made.push(new[to].to_owned());
                    to += 1;
                }
            }
        }
        assert_eq!(from, old.len());
        (made, steps.iter().filter(|step| **step != Step::Keep).count())
    }

    #[test]
    fn hunks_show_what_changed_and_what_is_around_it() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let new = "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nl\nm\n";
        assert_eq!(
            unified(old, new),
            "@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -8,5 +8,5 @@\n h\n i\n j\n-k\n l\n+m\n"
        );
        assert_eq!(unified(old, old), "");
        assert_eq!(unified("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
        assert_eq!(unified("a\nb\n", "a\nc\nb\n"), "@@ -1,2 +1,3 @@\n a\n+c\n b\n");
    }

    #[test]
    fn the_steps_lead_from_one_to_the_other_and_are_the_fewest() {
        // All pairs of words of up to five letters out of two.
        let words: Vec<Vec<&str>> = (0..6usize)
            .flat_map(|length| (0..1usize << length).map(move |bits| (length, bits)))
            .map(|(length, bits)| (0..length).map(|at| if bits >> at & 1 == 0 { "a" } else { "b" }).collect())
            .collect();
        for old in &words {
            for new in &words {
                let (made, changed) = taken(old, new, &steps(old, new));
                assert_eq!(made, *new, "{old:?}");
                assert_eq!(changed, old.len() + new.len() - 2 * longest_in_common(old, new), "{old:?} {new:?}");
            }
        }
    }

    fn longest_in_common(old: &[&str], new: &[&str]) -> usize {
        match (old.split_first(), new.split_first()) {
            (Some((one, old)), Some((other, new))) if one == other => 1 + longest_in_common(old, new),
            (Some((_, rest)), Some((_, others))) => longest_in_common(rest, new).max(longest_in_common(old, others)),
            _ => 0,
        }
    }

    #[test]
    fn texts_with_nothing_in_common_are_replaced() {
        let lines = |prefix: &str| (0..3000).map(|number| format!("{prefix}{number}\n")).collect::<String>();
        let text = unified(&lines("a"), &lines("b"));
        assert!(text.starts_with("@@ -1,3000 +1,3000 @@\n-a0\n"));
        assert_eq!(text.lines().count(), 6001);
    }
}
