//! Takes out of an output what is different each time: ages, times, identifiers, revisions, and how wide a column is.

use std::sync::LazyLock;

use regex::Regex;

static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
        (r#"(resourceVersion"?: )"\d+""#, "${1}\"REVISION\""),
        (r"(?m)(^| )(\d+[smhd])+( ago)?( |$)", "${1}AGE$4"),
        (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
        (r"one-[a-z0-9]{5}\b", "one-SUFFIX"),
        (r"\S+/kubectl-[a-z]+-\d+\S*", "FILE"),
    ];
    rules.map(|(pattern, by)| (Regex::new(pattern).expect("it is a pattern"), by)).into_iter().collect()
});

/// The output without what changes. How far a line is indented stays.
pub(crate) fn normal(output: &str) -> String {
    let mut lines = Vec::new();
    for line in without_managed_fields(output) {
        let indentation = line.len() - line.trim_start_matches(' ').len();
        let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let line = format!("{:indentation$}{}", "", words.join(" "));
        lines.push(CHANGING.iter().fold(line, |line, (pattern, by)| pattern.replace_all(&line, *by).into_owned()));
    }
    lines.join("\n") + "\n"
}

/// Who set which field is not kept yet.
fn without_managed_fields(output: &str) -> impl Iterator<Item = &str> {
    let mut inside = None;
    output.lines().filter(move |line| {
        let indentation = line.len() - line.trim_start().len();
        let text = line.trim_start();
        if let Some(outer) = inside {
            let still =
                indentation > outer || (indentation == outer && (text.starts_with("- ") || text.starts_with(']')));
            if still {
                return false;
            }
            inside = None;
        }
        if text.starts_with("managedFields:") || text.starts_with("\"managedFields\":") {
            inside = Some(indentation);
            return false;
        }
        true
    })
}

#[test]
fn what_changes_is_taken_out() {
    let output = "NAME       AGE\nsettings   12s\n  uid: 5650c1ca-d8f0-4c9c-aa5b-47bb76c87b9c\n  managedFields:\n  - manager: a\n    time: b\n  name: c\n";
    assert_eq!(normal(output), "NAME AGE\nsettings AGE\n  uid: UID\n  name: c\n");
}
