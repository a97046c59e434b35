//! Protobuf: the bytes of Kubernetes' own encoder, every kind in both directions, and what clients send and get.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod captured;
#[path = "../support/client.rs"]
mod client;
mod damaged;
mod filled;
mod recorded;
mod served;
mod stored;

use std::io::Read;

/// The lines of a file of recorded cases.
fn cases<T: serde::de::DeserializeOwned>(name: &str) -> Vec<T> {
    let path = format!("{}/tests/cases/{name}.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
