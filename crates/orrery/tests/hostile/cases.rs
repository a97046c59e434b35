//! Requests that are wrong in every way somebody thought of, and what a real server answered to each (`cases.jsonl`).

use orrery_testkit::ControlPlane;
use serde::Deserialize;
use serde_json::Value;

use crate::wire::{self, others_are_served};

#[derive(Deserialize)]
struct Case {
    name: String,
    method: String,
    path: String,
    #[serde(rename = "type")]
    content_type: Option<String>,
    body: Option<Body>,
    code: u16,
    /// What was said, or of it what is not in the words of one parser; none where all is well.
    answer: Option<Value>,
}

/// A body, or how to make it where it is large.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Text(String),
    Bytes(Vec<u8>),
    /// An object with so much text in it.
    Filled(usize),
    /// So many lists in each other.
    Lists(usize),
    /// So many objects in each other.
    Objects(usize),
    /// So many levels of lists of nine aliases.
    Bomb(usize),
    /// A YAML object with so many keys.
    Keys(usize),
    /// A JSON object with so many fields.
    Fields(usize),
}

impl Body {
    fn make(&self) -> Vec<u8> {
        const JSON: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hostile"}"#;
        const YAML: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hostile}\n";
        let text = match self {
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => return bytes.clone(),
            Self::Filled(size) => format!(r#"{JSON},"data":{{"a":"{}"}}}}"#, "x".repeat(*size)),
            Self::Lists(depth) => format!(r#"{JSON},"data":{}{}}}"#, "[".repeat(*depth), "]".repeat(*depth)),
            Self::Objects(depth) => format!(r#"{JSON},"x":{}1{}}}"#, r#"{"a":"#.repeat(*depth), "}".repeat(*depth)),
            Self::Bomb(levels) => {
                let level = |number: usize| {
                    let aliases = vec![format!("*a{number}"); 9].join(", ");
                    format!("a{}: &a{} [{aliases}]\n", number + 1, number + 1)
                };
                let first = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
                format!("{YAML}{first}{}", (0..*levels).map(level).collect::<String>())
            }
            Self::Fields(count) => {
                let fields: Vec<String> = (0..*count).map(|key| format!(r#""k{key}":1"#)).collect();
                format!(r#"{JSON},"x":{{{}}}}}"#, fields.join(","))
            }
            Self::Keys(count) => {
                format!("{YAML}x:\n{}", (0..*count).map(|key| format!(" k{key}: 1\n")).collect::<String>())
            }
        };
        text.into_bytes()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gets_the_answer_of_a_real_server() {
    let control_plane = ControlPlane::start().await;
    let mut wrong = Vec::new();
    for line in include_str!("cases.jsonl").lines() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let body = case.body.as_ref().map(Body::make).unwrap_or_default();
        let answer = wire::send(&control_plane, &case.method, &case.path, case.content_type.as_deref(), &body).await;
        let said = serde_json::from_slice(&answer.body)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&answer.body).into_owned()));
        if answer.code != case.code || case.answer.as_ref().is_some_and(|expected| !agrees(expected, &said)) {
            let expected = case.answer.unwrap_or_default();
            wrong.push(format!("{}\n- {} {expected}\n+ {} {said:.2000}", case.name, case.code, answer.code));
        }
    }
    assert!(wrong.is_empty(), "(- a real server, + here)\n{}", wrong.join("\n"));
    others_are_served(&control_plane).await;
    control_plane.stop().await;
}

/// Whether everything that is expected was said.
fn agrees(expected: &Value, said: &Value) -> bool {
    match expected {
        Value::Object(fields) => fields.iter().all(|(name, value)| said.get(name).unwrap_or(&Value::Null) == value),
        other => other == said,
    }
}
