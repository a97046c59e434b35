//! YAML as Kubernetes reads and writes it: version 1.1, by way of JSON.

mod read;
mod write;

use serde_json::Value;

pub(crate) use read::{repeated_problem, to_json};
pub use write::write;

/// Reads all documents of a file, which are divided by lines that begin with `---`. Those that hold nothing are left out.
pub fn documents(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    let mut before = 0;
    let mut start = 0;
    let ends = bytes.windows(4).enumerate().filter(|(_, window)| *window == b"\n---").map(|(at, _)| at + 1);
    for end in ends.chain([bytes.len()]) {
        // As many empty lines as there were before, so that problems are told by their line in the file.
        let document = [b"\n".repeat(before).as_slice(), &bytes[start..end]].concat();
        let value = parse(&document)?;
        if !value.is_null() {
            found.push(value);
        }
        before += bytes[start..end].iter().filter(|byte| **byte == b'\n').count();
        start = end;
    }
    Ok(found)
}

/// Reads a YAML document; a key that is repeated in one mapping is refused.
pub fn parse(bytes: &[u8]) -> Result<Value, String> {
    let read = to_json(bytes)?;
    match read.repeated.first() {
        Some(repeated) => Err(repeated.clone()),
        None => serde_json::from_slice(&read.json).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_of_documents_is_read_as_a_whole() {
        let read = |text: &str| documents(text.as_bytes());
        assert_eq!(read("a: 1\n---\nb: 2\n"), Ok(vec![json!({"a": 1}), json!({"b": 2})]));
        assert_eq!(read("# nothing\n---\n---\na: 1\n---\n"), Ok(vec![json!({"a": 1})]));
        assert_eq!(
            read("--- # first\na: |\n  x\n  ---\n--- {b: 2}\n"),
            Ok(vec![json!({"a": "x\n---\n"}), json!({"b": 2})])
        );
        assert_eq!(read(r#"{"a": [1]}"#), Ok(vec![json!({"a": [1]})]));
        assert_eq!(read(""), Ok(Vec::new()));
        let problem = read("a: 1\n---\nb: 2\nc: [\n").unwrap_err();
        assert!(problem.contains("line 4") || problem.contains("line 5"), "{problem}");
    }
}
