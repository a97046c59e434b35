//! The objects a fresh space starts with: namespaces, roles, bindings, flow schemas.

use super::load::unpacked;

const BOOTSTRAP: &[u8] = include_bytes!("../../data/kube-1.34/bootstrap.jsonl.gz");

/// Each object as one line of JSON.
pub(super) fn objects() -> Vec<Box<str>> {
    let text = unpacked(BOOTSTRAP);
    String::from_utf8_lossy(&text).lines().filter(|line| !line.is_empty()).map(Into::into).collect()
}
