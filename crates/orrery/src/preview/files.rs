//! Objects in files, and which file each of them comes from.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use orrery_apiserver::yaml;
use serde_json::Value;

use crate::client::Refusal;

/// What stands for standard input.
const STDIN: &str = "-";
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// The objects of all files, each with where it is from.
pub(super) struct Given(Vec<(String, Value)>);

impl Given {
    /// Reads files, and the files in directories.
    pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut given = Self(Vec::new());
        for path in paths {
            if path.as_os_str() == STDIN {
                let mut bytes = Vec::new();
                std::io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
                given.add("standard input", &bytes)?;
                continue;
            }
            let files = if path.is_dir() { files_in(path)? } else { vec![path.clone()] };
            for file in files {
                let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
                given.add(&file.display().to_string(), &bytes)?;
            }
        }
        Ok(given)
    }

    pub(super) fn objects(&self) -> Vec<Value> {
        self.0.iter().map(|(_, object)| object.clone()).collect()
    }

    /// An error in terms of the files.
    pub(super) fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        match error.downcast::<Refusal>() {
            Ok(refusal) => Refusal { message: self.named(&refusal.message), ..refusal }.into(),
            Err(error) => error,
        }
    }

    /// A message of the server in which objects are called by their files.
    fn named(&self, message: &str) -> String {
        const BEFORE: &str = "spec.given[";
        let place = || {
            let start = message.find(BEFORE)?;
            let rest = &message[start + BEFORE.len()..];
            let (number, rest) = rest.split_once(']')?;
            let (origin, _) = self.0.get(number.parse::<usize>().ok()?)?;
            Some(format!("{}{origin}{rest}", &message[..start]))
        };
        place().unwrap_or_else(|| message.to_owned())
    }

    fn add(&mut self, file: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let documents = yaml::documents(bytes).map_err(|problem| anyhow::anyhow!(problem));
        for document in documents.with_context(|| format!("cannot read {file}"))? {
            self.add_object(file, document)?;
        }
        Ok(())
    }

    fn add_object(&mut self, file: &str, mut object: Value) -> anyhow::Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, version) = (text(&object["kind"]), text(&object["apiVersion"]));
        if kind.is_empty() || version.is_empty() {
            bail!("{file} holds something without apiVersion and kind, which is no object");
        }
        if kind.ends_with("List")
            && let Some(Value::Array(items)) = object.get_mut("items").map(Value::take)
        {
            return items.into_iter().try_for_each(|item| self.add_object(file, item));
        }
        let name = text(&object["metadata"]["name"]);
        self.0.push((format!("{file}: {kind} {name:?}"), object));
        Ok(())
    }
}

/// The files with objects in a directory, by name.
fn files_in(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("cannot read the directory {}", directory.display());
    let entries = fs::read_dir(directory).with_context(unreadable)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(unreadable)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if ENDINGS.contains(&ending) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("there are no .yaml, .yml or .json files in {}", directory.display());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_directories_and_lists_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("b.yaml", "apiVersion: v1\nkind: A\nmetadata: {name: one}\n---\n---\napiVersion: v1\nkind: B\n");
        write("a.json", r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "C"}]}"#);
        write("notes.txt", "not: [read");
        let given = Given::read(&[directory.path().to_owned()]).unwrap();
        let kinds: Vec<_> = given.objects().iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect();
        assert_eq!(kinds, ["C", "A", "B"]);
        let message = given.named("spec.given[1]: it is wrong");
        assert!(message.ends_with("b.yaml: A \"one\": it is wrong"), "{message}");
        assert_eq!(given.named("spec.given[9]: it is wrong"), "spec.given[9]: it is wrong");
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let problem = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            format!("{:#}", Given::read(&[path]).err().unwrap())
        };
        let bad = problem("bad.yaml", "apiVersion: v1\nkind: A\n---\na: [\n");
        assert!(bad.contains("bad.yaml: yaml: line"), "{bad}");
        assert!(problem("odd.yaml", "just text\n").contains("odd.yaml holds something without apiVersion and kind"));
        let empty = tempfile::tempdir().unwrap();
        let none = Given::read(&[empty.path().to_owned()]).err().unwrap().to_string();
        assert!(none.contains("there are no .yaml, .yml or .json files in"), "{none}");
        let missing = Given::read(&[directory.path().join("missing.yaml")]).err().unwrap().to_string();
        assert!(missing.contains("cannot read") && missing.contains("missing.yaml"), "{missing}");
    }
}
