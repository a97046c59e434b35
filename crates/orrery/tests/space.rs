//! `orrery space` against a running control plane: made, listed, used, and kept apart.

#[path = "support/hub.rs"]
mod hub;

use std::{os::unix::fs::PermissionsExt, path::Path};

use http::Method;
use hub::{CONFIG_MAPS, config_map, connect, orrery, run, stdout, up};
use orrery::{client::refused_with, kubeconfig::Kubeconfig};
use serde_json::Value;

/// Runs `orrery space` with a kubeconfig; it must succeed.
fn space(kubeconfig: &Path, arguments: &[&str]) -> String {
    stdout(&run(orrery(&[&["space"], arguments].concat()).arg("--kubeconfig").arg(kubeconfig)))
}

/// Runs `orrery space` with a kubeconfig; it must fail in these words.
#[track_caller]
fn space_fails(kubeconfig: &Path, arguments: &[&str], words: &[&str]) {
    let output = run(orrery(&[&["space"], arguments].concat()).arg("--kubeconfig").arg(kubeconfig));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

#[tokio::test]
async fn spaces_are_made_listed_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let admin = hub.kubeconfig();
    assert_eq!(space(admin, &["list"]), "");
    assert_eq!(space(admin, &["create", "team-a", "--wait"]), "space \"team-a\" created\n");
    space(admin, &["create", "b"]);
    let table = space(admin, &["list"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "STATUS", "AGE"]);
    assert_eq!(rows[1..].iter().map(|row| row[..2].join(" ")).collect::<Vec<_>>(), ["b Ready", "team-a Ready"]);
    assert_eq!(
        space(admin, &["list", "-o", "name"]),
        "logicalspace.core.orrery.io/b\nlogicalspace.core.orrery.io/team-a\n"
    );
    assert!(space(admin, &["get", "team-a", "-o", "wide"]).contains(&format!("{}/spaces/team-a", hub.url())));
    let json: Value = serde_json::from_str(&space(admin, &["get", "team-a", "-o", "json"])).unwrap();
    assert_eq!((json["kind"].as_str(), json["metadata"]["name"].as_str()), (Some("LogicalSpace"), Some("team-a")));
    assert!(space(admin, &["list", "-o", "yaml"]).contains("\n    name: team-a\n"));
    assert_eq!(space(admin, &["delete", "b", "--wait"]), "space \"b\" deleted\n");
    assert_eq!(space(admin, &["list", "-o", "name"]), "logicalspace.core.orrery.io/team-a\n");

    space_fails(admin, &["get", "b"], &["there is no space \"b\"", "orrery space list"]);
    space_fails(admin, &["delete", "b"], &["there is no space \"b\""]);
    space_fails(admin, &["get", "../../../api/v1/namespaces"], &["there is no space"]);
    space_fails(admin, &["create", "team-a"], &["there is a space \"team-a\" already"]);
    space_fails(admin, &["create", "Team_A"], &["cannot make the space", "Team_A"]);
    space_fails(Path::new("/nowhere"), &["list"], &["there is no kubeconfig /nowhere"]);
    let kubeconfig = admin.to_owned();
    hub.kill();
    space_fails(&kubeconfig, &["list"], &["cannot reach https://127.0.0.1:", "orrery up"]);
}

#[tokio::test]
async fn a_kubeconfig_of_a_space_is_good_there_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &["--in-cluster-url", "https://orrery.hub.svc:6443"]);
    let admin = hub.kubeconfig();
    let file = directory.path().join("a.kubeconfig");
    for name in ["a", "b"] {
        space(admin, &["create", name]);
    }
    space(admin, &["kubeconfig", "a", "-o", file.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = connect(&file).await;
    client.send(Method::POST, CONFIG_MAPS, Some(&config_map("mine"))).await.unwrap();
    let mut admins = connect(admin).await;
    assert!(admins.get(&format!("/spaces/a{CONFIG_MAPS}/mine")).await.is_ok());
    assert!(admins.get_opt(&format!("/spaces/b{CONFIG_MAPS}/mine")).await.unwrap().is_none());
    // The same certificate at the addresses of others.
    let text = std::fs::read_to_string(&file).unwrap();
    for place in ["/spaces/b", "/spaces/*", ""] {
        let elsewhere = directory.path().join("elsewhere");
        std::fs::write(&elsewhere, text.replace("/spaces/a", place)).unwrap();
        let refusal = connect(&elsewhere).await.get("/api/v1/configmaps").await.unwrap_err();
        assert!(refused_with(&refusal, 401) || refused_with(&refusal, 403), "{place}: {refusal:#}");
    }
    assert!(
        space(admin, &["kubeconfig", "a", "--in-cluster"]).contains("server: https://orrery.hub.svc:6443/spaces/a\n")
    );
    space_fails(admin, &["kubeconfig", "nobody"], &["there is no space \"nobody\""]);
    // Another space that gets the name later is not the space that the certificate was for.
    space(admin, &["delete", "a", "--wait"]);
    space(admin, &["create", "a", "--wait"]);
    let refusal = connect(&file).await.get("/api/v1/configmaps").await.unwrap_err();
    assert!(refused_with(&refusal, 401), "{refusal:#}");
}

#[tokio::test]
async fn using_a_space_changes_the_context() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let admin = hub.kubeconfig();
    for name in ["a", "b-a"] {
        space(admin, &["create", name]);
    }
    let current = || {
        let kubeconfig = Kubeconfig::read(admin).unwrap();
        let context = kubeconfig.context(kubeconfig.current_context()).unwrap();
        let cluster = kubeconfig.cluster(context["cluster"].as_str().unwrap()).unwrap();
        (kubeconfig.current_context().to_owned(), cluster["server"].as_str().unwrap().to_owned())
    };
    for (name, context, path) in [
        ("a", "orrery-a", "/spaces/a"),
        ("b-a", "orrery-b-a", "/spaces/b-a"),
        ("a", "orrery-a", "/spaces/a"),
        ("root", "orrery", ""),
        ("root", "orrery", ""),
    ] {
        assert!(space(admin, &["use", name]).starts_with(&format!("now in space {name:?}: context {context:?}")));
        assert_eq!(current(), (context.to_owned(), format!("{}{path}", hub.url())));
        // Spaces are those of the installation, whichever one is used.
        assert_eq!(space(admin, &["list", "-o", "name"]).lines().count(), 2);
    }
    space_fails(admin, &["use", "nowhere"], &["there is no space \"nowhere\""]);
    assert_eq!(current().0, "orrery");
    connect(admin).await.get("/api/v1/namespaces").await.unwrap();
}
