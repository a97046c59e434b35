//! The recorded cases, one JSON object a line.

use std::{collections::BTreeMap, io::Read};

use flate2::read::GzDecoder;
use serde::Deserialize;

const CASES: &[u8] = include_bytes!("../../testdata/kpt/cases.jsonl.gz");

/// Files by path.
pub(crate) type Tree = BTreeMap<String, File>;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) verb: String,
    /// The argument DIR; none if empty.
    pub(crate) dir: String,
    /// Where the program was started, below the world.
    pub(crate) cwd: String,
    pub(crate) args: Vec<String>,
    /// Runs before the one that was recorded.
    #[serde(default)]
    pub(crate) first: Vec<Step>,
    /// The package before.
    #[serde(rename = "in")]
    pub(crate) before: Tree,
    /// The package after.
    #[serde(rename = "out")]
    pub(crate) after: Tree,
    /// What each function got, in order.
    pub(crate) seen: Tree,
    /// What else appeared in the folder that kpt was started in.
    pub(crate) other: Tree,
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    /// The file with all results.
    pub(crate) results: Option<String>,
    pub(crate) empty_dirs: Vec<String>,
    pub(crate) modes: BTreeMap<String, String>,
    /// What a second run did.
    pub(crate) again: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Step {
    pub(crate) dir: String,
    pub(crate) args: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub(crate) struct File {
    pub(crate) text: Option<String>,
    /// For a file that is no text.
    pub(crate) hex: Option<String>,
    /// For a link.
    pub(crate) link: Option<String>,
    #[serde(default)]
    pub(crate) executable: bool,
}

impl File {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match (&self.text, &self.hex) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(hex)) => {
                let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits");
                (0..hex.len()).step_by(2).map(digit).collect()
            }
            (None, None) => Vec::new(),
        }
    }
}

pub(crate) fn read_all() -> Vec<Case> {
    let mut text = String::new();
    GzDecoder::new(CASES).read_to_string(&mut text).expect("the cases are compressed text");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is a case")).collect()
}
