//! What the original accepts and refuses, with its messages and positions.

use orrery_jsonpath::subset::Path;

/// A line of the file: a quoted path, the segments, and the error.
struct Case<'f> {
    path: String,
    segments: &'f str,
    error: &'f str,
}

fn case(line: &str) -> Option<Case<'_>> {
    let (path, answer) = line.split_once("-> ")?;
    let (segments, error) = answer.split_once(" err=")?;
    // The quoted strings of the file use no escape that JSON does not know.
    Some(Case { path: serde_json::from_str(path.trim()).ok()?, segments, error })
}

#[test]
fn every_case_agrees_with_the_original() {
    let lines = include_str!("../testdata/subset.txt").lines();
    let cases: Vec<Case<'_>> = lines.map(|line| case(line).unwrap_or_else(|| panic!("{line}"))).collect();
    assert_eq!(cases.len(), 30);
    for Case { path, segments, error } in cases {
        match Path::parse(&path) {
            Ok(parsed) => {
                let quoted: Vec<String> = parsed.segments().iter().map(|name| format!("{name:?}")).collect();
                assert_eq!((format!("[{}]", quoted.join(" ")).as_str(), "<nil>"), (segments, error), "{path}");
            }
            Err(refused) => assert_eq!(refused.to_string(), error, "{path}"),
        }
    }
}
