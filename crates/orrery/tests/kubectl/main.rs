//! kubectl of several versions, as people have it, against spaces: what it prints is what it prints at a real server.
//!
//! By default the kubectl on the path, 1.20 and 1.36; with `ORRERY_KUBECTL=all` the whole range. `./test` fetches those that are missing. With
//! `ORRERY_KUBECTL_RECORD=KUBECONFIG` nothing is tested: what is expected is recorded from the server of that kubeconfig, which must be fresh.

mod normal;
mod session;

use orrery_testkit::kubectl::{self, Kubectl, Version};

/// One test for each version, so that they run beside each other and a failure names the one.
macro_rules! versions {
    ($($name:ident: $version:expr;)+) => {
        $(
            #[test]
            fn $name() {
                check($version);
            }
        )+
    };
}

versions! {
    the_one_on_the_path: Version::OnPath;
    v1_20: Version::Minor(20);
    v1_24: Version::Minor(24);
    v1_28: Version::Minor(28);
    v1_31: Version::Minor(31);
    v1_34: Version::Minor(34);
    v1_36: Version::Minor(36);
}

/// Without any kubectl nothing was shown.
#[test]
fn there_is_a_kubectl() {
    let found = Version::ALL.iter().any(|version| version.find().is_some());
    assert!(found, "no kubectl on the path and none in {}: run ./test, which fetches some", kubectl::cache().display());
}

fn check(version: Version) {
    if !version.is_wanted() {
        return eprintln!("left out: {version} runs with ORRERY_KUBECTL=all");
    }
    let Some(program) = version.find() else {
        return eprintln!(
            "left out: {version} is not there (npm could not fetch it into {})",
            kubectl::cache().display()
        );
    };
    match std::env::var_os("ORRERY_KUBECTL_RECORD") {
        Some(server) => session::record(&Kubectl::with_kubeconfig(&program, server.as_ref())),
        None => session::replay(&program),
    }
}
