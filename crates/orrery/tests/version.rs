//! What the program says of itself.

#[path = "support/hub.rs"]
#[expect(dead_code, reason = "each test uses a part")]
mod hub;

use hub::{orrery, run, stdout};

#[test]
fn the_version_for_people_and_programs() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&run(&mut orrery(&["version"]))), format!("orrery {version} (Kubernetes 1.34)\n"));
    let json: serde_json::Value = serde_json::from_str(&stdout(&run(&mut orrery(&["version", "-o", "json"])))).unwrap();
    assert_eq!(json, serde_json::json!({"version": version, "kubernetes": "1.34"}));
}

#[test]
fn every_shell_is_told_all_commands() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = stdout(&run(&mut orrery(&["completion", shell])));
        for word in ["up", "space", "kubeconfig", "data-dir"] {
            assert!(script.contains(word), "{shell} knows nothing of {word}");
        }
    }
    assert_eq!(run(&mut orrery(&["completion", "tcsh"])).status.code(), Some(2));
}

#[test]
fn wrong_usage_ends_with_two() {
    for arguments in [&["no-such-command"][..], &["up", "--no-such-flag"], &["space"], &[]] {
        assert_eq!(run(&mut orrery(arguments)).status.code(), Some(2), "{arguments:?}");
    }
}
