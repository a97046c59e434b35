//! What a kube-apiserver 1.34.4 answered in both forms, and what it said to damaged bodies.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use orrery_apiserver::protobuf;
use serde_json::Value;

use crate::client::Client;

/// An answer to the same question in JSON and in protobuf.
#[derive(serde::Deserialize)]
struct Answer {
    name: String,
    json: String,
    protobuf: String,
    watch: bool,
}

#[test]
fn answers_are_those_of_kubernetes() {
    let answers: Vec<Answer> = crate::cases("protobuf-served");
    for answer in &answers {
        let recorded = STANDARD.decode(&answer.protobuf).unwrap();
        let made = if answer.watch {
            let mut frames = Vec::new();
            for line in answer.json.lines() {
                let event: Value = serde_json::from_str(line).unwrap();
                protobuf::write_event(
                    &mut frames,
                    event["type"].as_str().unwrap(),
                    event["object"].to_string().as_bytes(),
                );
            }
            frames
        } else {
            protobuf::encode(answer.json.as_bytes()).unwrap_or_else(|| panic!("{} has no form", answer.name))
        };
        assert_eq!(made.escape_ascii().to_string(), recorded.escape_ascii().to_string(), "{}", answer.name);
    }
    assert!(answers.len() > 30);
}

/// A body that was sent, most of them damaged in some way.
#[derive(serde::Deserialize)]
struct Damaged {
    path: String,
    body: String,
    code: u16,
    message: String,
}

#[tokio::test]
async fn damage_is_named_as_kubernetes_names_it() {
    let client = Client::start().await;
    let mut differing = Vec::new();
    for (case, number) in crate::cases::<Damaged>("protobuf-damaged").iter().zip(0..) {
        let body = STANDARD.decode(&case.body).unwrap();
        let path = format!("{}?dryRun=All", case.path);
        let (code, _, answer) = client.raw(Method::POST, &path, "application/vnd.kubernetes.protobuf", body).await;
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let message = answer["message"].as_str().unwrap_or_default();
        // What is not Unicode in a kind or version is shown byte by byte there. What could be read was judged by other rules and other objects.
        let as_recorded = match case.code {
            400 if case.message.contains("\\x") => code == 400,
            400 => code == 400 && message == case.message,
            _ => code != 400,
        };
        if !as_recorded {
            differing.push(format!(
                "{number}: {} {}\n  recorded {} {}\n  here     {code} {message}",
                case.path,
                case.body.len(),
                case.code,
                case.message
            ));
        }
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}
