//! Compares what came out with what kpt made: bytes where they are the same, else objects and comments.

use std::collections::BTreeSet;

use orrery_krm::{Value, yaml::Stream};

use super::{
    case::{Case, File, Tree},
    world::Outcome,
};

/// Everything that differs, a line each.
pub(crate) fn differences(case: &Case, outcome: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    if (case.exit == 0) != (outcome.exit == 0) {
        lines.push(format!("exit {}, kpt {}: {}", outcome.exit, case.exit, outcome.stderr));
    }
    compare_trees("", &case.after, &outcome.package, &mut lines);
    compare_trees("seen/", &case.seen, &outcome.seen, &mut lines);
    compare_trees("beside/", &case.other, &outcome.other, &mut lines);
    if case.exit != 0 || outcome.exit != 0 {
        return lines;
    }
    if case.args.iter().any(|argument| argument == "stdout") && objects(&case.stdout) != objects(&outcome.stdout) {
        lines.push(format!("standard output: {}", first_difference(&case.stdout, &outcome.stdout)));
    }
    if let (Some(recorded), Some(results)) = (&case.results, &outcome.results)
        && objects(recorded) != objects(results)
    {
        lines.push(format!("results: {}", first_difference(recorded, results)));
    }
    let mut check = |what: &str, recorded: String, now: String| {
        if recorded != now {
            lines.push(format!("{what}: {now}, kpt {recorded}"));
        }
    };
    check("empty folders", format!("{:?}", case.empty_dirs), format!("{:?}", outcome.empty_dirs));
    check("modes", format!("{:?}", case.modes), format!("{:?}", outcome.modes));
    check("a second run", format!("{:?}", case.again), format!("{:?}", outcome.again));
    lines
}

fn compare_trees(prefix: &str, recorded: &Tree, now: &Tree, lines: &mut Vec<String>) {
    let names: BTreeSet<&String> = recorded.keys().chain(now.keys()).collect();
    for name in names {
        match (recorded.get(name), now.get(name)) {
            (Some(recorded), Some(now)) => {
                if let Some(difference) = compare_files(recorded, now, prefix.is_empty()) {
                    lines.push(format!("{prefix}{name}: {difference}"));
                }
            }
            (Some(_), None) => lines.push(format!("{prefix}{name} is missing")),
            (None, _) => lines.push(format!("{prefix}{name} should not be there")),
        }
    }
}

fn compare_files(recorded: &File, now: &File, with_comments: bool) -> Option<String> {
    let (Some(recorded), Some(now)) = (&recorded.text, &now.text) else {
        return (recorded.link != now.link || recorded.hex != now.hex).then(|| "other contents".to_owned());
    };
    if recorded == now {
        return None;
    }
    if objects(recorded).is_err() || objects(recorded) != objects(now) {
        return Some(first_difference(recorded, now));
    }
    let (before, after) = (comments(recorded), comments(now));
    (with_comments && before != after).then(|| format!("comments {after:?}, kpt {before:?}"))
}

/// The objects of a text; keys in any order.
fn objects(text: &str) -> Result<Vec<Value>, String> {
    // What stands for machine paths is no YAML without quotes.
    let text = text.replace("{PKG}", "/PKG").replace("{W}", "/W");
    let stream = Stream::parse(text).map_err(|error| error.to_string())?;
    stream.documents.iter().map(|document| Ok(with_config_read(document.value())?.sorted())).collect()
}

/// The function `echo-config` puts YAML into a field, and how that is laid out depends on its author's language.
fn with_config_read(object: Value) -> Result<Value, String> {
    let config = object.get("data").and_then(|data| data.get("config")).and_then(Value::as_str);
    match config {
        Some(text) => Ok(object.clone().with("data", objects(text)?)),
        None => Ok(object),
    }
}

/// The comments of a text in any order, without the blanks in them.
fn comments(text: &str) -> Vec<String> {
    let mut comments: Vec<String> = Vec::new();
    for line in text.lines() {
        let start = line.find("# ").filter(|&at| line[..at].trim_end().len() < at || at == 0);
        let words = start.map(|at| line[at..].split_whitespace().collect::<Vec<_>>().join(" "));
        comments.extend(words);
    }
    comments.sort();
    comments
}

fn first_difference(recorded: &str, now: &str) -> String {
    let mut lines = recorded.lines().zip(now.lines()).filter(|(a, b)| a != b);
    match lines.next() {
        Some((recorded, now)) => format!("{now:?}, kpt {recorded:?}"),
        None => format!("{} lines, kpt {}", now.lines().count(), recorded.lines().count()),
    }
}
