//! Where two answers differ.

use serde_json::Value;

/// Every difference, as a sentence.
pub(crate) fn differences(want: &Value, got: &Value, at: &str) -> Vec<String> {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            let mut names: Vec<&String> = want.keys().chain(got.keys()).collect();
            names.sort_unstable();
            names.dedup();
            let compare = |name: &String| match (want.get(name), got.get(name)) {
                (Some(want), None) => vec![format!("{at}/{name}: missing, want {}", short(want))],
                (None, Some(got)) => vec![format!("{at}/{name}: unexpected {}", short(got))],
                (Some(want), Some(got)) => differences(want, got, &format!("{at}/{name}")),
                (None, None) => Vec::new(),
            };
            names.into_iter().flat_map(compare).collect()
        }
        (Value::Array(want), Value::Array(got)) => {
            let mut found = Vec::new();
            if want.len() != got.len() {
                found.push(format!("{at}: want {} items, got {}", want.len(), got.len()));
            }
            let pairs = want.iter().zip(got).enumerate();
            found.extend(pairs.flat_map(|(index, (want, got))| differences(want, got, &format!("{at}/{index}"))));
            found
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => Vec::new(),
        _ if want == got => Vec::new(),
        _ => vec![format!("{at}: want {}, got {}", short(want), short(got))],
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    // Cases that are not ours are looked at one by one.
    let most = if std::env::var_os("REPLAY_CASES").is_some() { usize::MAX } else { 400 };
    if text.chars().count() < most { text } else { text.chars().take(400).chain(['…']).collect() }
}
