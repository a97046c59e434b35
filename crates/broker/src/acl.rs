//! The same rules for a mosquitto of the user's own: an ACL file that is renewed as clients come and go.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use tokio::sync::watch;

use crate::access::{Clients, Role};

/// The name of the file in the data directory.
pub const FILE: &str = "mosquitto.acl";

/// The whole file for these clients. A client that is not listed may do nothing: mosquitto denies what no line allows.
pub fn render<'a>(users: impl IntoIterator<Item = (&'a str, &'a Role)>) -> String {
    let mut text = String::from(
        "# Written by orrery, and written again whenever a cluster comes or goes: changes by hand are lost.\n\
         # In mosquitto.conf:  acl_file <this file>, and with client certificates  use_identity_as_username true\n\
         # mosquitto reads it when it starts and on SIGHUP.\n",
    );
    for (user, role) in users {
        let rights = role.rights();
        let lines = [("write", &rights.publish), ("read", &rights.receive)];
        // Writing to a string cannot fail.
        let _ok = writeln!(text, "\nuser {user}");
        for (right, filters) in lines {
            for filter in filters {
                let _ok = writeln!(text, "topic {right} {filter}");
            }
        }
    }
    text
}

/// Puts text into a file so that a reader sees the old text or the new, never half of one. Returns whether it changed.
pub fn write(path: &Path, text: &str) -> io::Result<bool> {
    if fs::read(path).is_ok_and(|known| known == text.as_bytes()) {
        return Ok(false);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let draft = path.with_file_name(name);
    let file = fs::File::create(&draft)?;
    io::Write::write_all(&mut &file, text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    Ok(true)
}

/// Keeps the file as the clients are until nobody can change them any more, or until it is dropped. Those of `always` are in it
/// whoever comes and goes, under names of their own.
pub async fn keep(path: PathBuf, always: Vec<(String, Role)>, mut clients: watch::Receiver<Clients>) {
    loop {
        let always = always.iter().map(|(user, role)| (user.as_str(), role));
        let text = render(
            always.chain(clients.borrow_and_update().iter().map(|(user, client)| (user.as_str(), &client.role))),
        );
        let target = path.clone();
        let written = tokio::task::spawn_blocking(move || write(&target, &text)).await;
        match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(true) => {
                tracing::info!(path = %path.display(), "wrote the rules for mosquitto; it reads them on SIGHUP")
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(path = %path.display(), %error, "cannot write the rules for mosquitto"),
        }
        if clients.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Access, Client};

    fn role(user: &str) -> Role {
        Role::from_user(user).unwrap()
    }

    #[test]
    fn each_client_has_its_lines() {
        let text = render([("agent.cluster1", &role("agent.cluster1")), ("hub", &role("source.hub1"))]);
        let rules: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert_eq!(
            rules,
            [
                "user agent.cluster1",
                "topic write /sources/+/clusters/cluster1/manifestsstatus",
                "topic write /sources/resync/cluster1/manifests",
                "topic write sources/+/clusters/cluster1/agentevents",
                "topic write clusters/cluster1/agentbroadcast",
                "topic read /sources/+/clusters/cluster1/manifests",
                "topic read /sources/+/resync/clusters/manifestsstatus",
                "topic read sources/+/clusters/cluster1/sourceevents",
                "topic read sources/+/sourcebroadcast",
                "user hub",
                "topic write /sources/hub1/clusters/+/manifests",
                "topic write /sources/hub1/resync/clusters/manifestsstatus",
                "topic write sources/hub1/clusters/+/sourceevents",
                "topic write sources/hub1/sourcebroadcast",
                "topic read /sources/hub1/clusters/+/manifestsstatus",
                "topic read /sources/resync/+/manifests",
                "topic read sources/hub1/clusters/+/agentevents",
                "topic read clusters/+/agentbroadcast",
            ]
        );
    }

    #[test]
    fn a_file_changes_as_a_whole_and_only_when_it_must() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        assert!(write(&path, "one").unwrap());
        assert!(!write(&path, "one").unwrap());
        assert!(write(&path, "two").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
        assert!(write(&dir.path().join("missing").join(FILE), "one").is_err());
    }

    #[tokio::test]
    async fn the_file_follows_the_clients() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let access = Access::default();
        access.admit(Client::with_certificate(role("agent.cluster1")));
        let keeping = tokio::spawn(keep(path.clone(), vec![("hub".into(), role("source.hub1"))], access.subscribe()));
        access.admit(Client::with_certificate(role("agent.cluster2")));
        access.expel(&role("agent.cluster1"));
        drop(access);
        keeping.await.unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("user hub\n") && text.contains("user agent.cluster2\n") && !text.contains("cluster1"),
            "{text}"
        );
    }
}
