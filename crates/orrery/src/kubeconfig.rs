//! Kubeconfig files: read, changed in what is ours, and written so that nobody ever sees half of one.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use orrery_apiserver::yaml;
use serde_json::{Value, json};

/// A kubeconfig as its file holds it; what we do not know in it stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Kubeconfig(Value);

/// How to reach one space as somebody. All of it stands under one name in a kubeconfig.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The address of the API.
    pub server: &'a str,
    /// The certificates by which it is known, as PEM.
    pub authority: &'a str,
    /// A client certificate, as PEM.
    pub certificate: &'a str,
    /// Its private key, as PEM.
    pub key: &'a str,
}

impl Default for Kubeconfig {
    fn default() -> Self {
        let empty = || json!([]);
        Self(json!({
            "apiVersion": "v1", "kind": "Config", "preferences": {},
            "clusters": empty(), "users": empty(), "contexts": empty(), "current-context": "",
        }))
    }
}

impl Kubeconfig {
    /// Reads a file. One that does not exist, or is empty, is an empty kubeconfig.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("cannot read the kubeconfig {}", path.display())),
        };
        Self::parse(&bytes).with_context(|| format!("{} is not a kubeconfig", path.display()))
    }

    fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let value = yaml::parse(bytes).map_err(|problem| anyhow::anyhow!(problem))?;
        let Value::Object(mut fields) = value else { bail!("it has no fields") };
        if let Some(kind) = fields.get("kind")
            && kind != "Config"
        {
            bail!("its kind is {kind}, not Config");
        }
        // kubectl writes null for what is empty.
        fields.retain(|_, value| !value.is_null());
        let Value::Object(mut whole) = Self::default().0 else { bail!("it has no fields") };
        whole.extend(fields);
        for list in ["clusters", "users", "contexts"] {
            if !whole[list].is_array() {
                bail!("its {list} are not a list");
            }
        }
        Ok(Self(Value::Object(whole)))
    }

    /// Sets cluster, user and context of this name. The context becomes the current one if there is none.
    pub fn set_entry(&mut self, name: &str, entry: &Entry<'_>) {
        let cluster = json!({"server": entry.server, "certificate-authority-data": STANDARD.encode(entry.authority)});
        let user = json!({
            "client-certificate-data": STANDARD.encode(entry.certificate),
            "client-key-data": STANDARD.encode(entry.key),
        });
        self.move_servers(name, entry.server);
        self.set("clusters", "cluster", name, cluster);
        self.set("users", "user", name, user);
        self.set_context(name, name, name);
        if self.current_context().is_empty() {
            self.use_context(name);
        }
    }

    /// Addresses of spaces lie below that of their installation: when it moves, they move with it.
    fn move_servers(&mut self, name: &str, server: &str) {
        let Some(old) = self.cluster(name).and_then(|cluster| cluster["server"].as_str()).map(str::to_owned) else {
            return;
        };
        let prefix = format!("{}/spaces/", old.trim_end_matches('/'));
        for entry in self.0["clusters"].as_array_mut().into_iter().flatten() {
            let current = entry["cluster"]["server"].as_str().unwrap_or_default();
            if let Some(space) = current.strip_prefix(&prefix) {
                entry["cluster"]["server"] = json!(format!("{server}/spaces/{space}"));
            }
        }
    }

    /// Sets a context. What else it says (its namespace) stays.
    pub fn set_context(&mut self, name: &str, cluster: &str, user: &str) {
        let mut context = self.context(name).cloned().unwrap_or_else(|| json!({}));
        context["cluster"] = json!(cluster);
        context["user"] = json!(user);
        self.set("contexts", "context", name, context);
    }

    /// Sets a cluster.
    pub fn set_cluster(&mut self, name: &str, cluster: Value) {
        self.set("clusters", "cluster", name, cluster);
    }

    /// The name of the context that is used when none is named; empty if there is none.
    pub fn current_context(&self) -> &str {
        self.0["current-context"].as_str().unwrap_or_default()
    }

    /// Makes a context the current one.
    pub fn use_context(&mut self, name: &str) {
        self.0["current-context"] = json!(name);
    }

    /// What a context says.
    pub fn context(&self, name: &str) -> Option<&Value> {
        self.find("contexts", "context", name)
    }

    /// What is said of a cluster.
    pub fn cluster(&self, name: &str) -> Option<&Value> {
        self.find("clusters", "cluster", name)
    }

    /// What is said of a user.
    pub fn user(&self, name: &str) -> Option<&Value> {
        self.find("users", "user", name)
    }

    fn find(&self, list: &str, what: &str, name: &str) -> Option<&Value> {
        let entries = self.0[list].as_array()?;
        Some(&entries.iter().find(|entry| entry["name"] == name)?[what])
    }

    fn set(&mut self, list: &str, what: &str, name: &str, value: Value) {
        let Some(entries) = self.0[list].as_array_mut() else { return };
        match entries.iter_mut().find(|entry| entry["name"] == name) {
            Some(entry) => entry[what] = value,
            None => entries.push(json!({"name": name, what: value})),
        }
    }

    /// As a file holds it.
    pub fn to_yaml(&self) -> Vec<u8> {
        yaml::write(&self.0)
    }

    /// Writes the file at once as a whole, for nobody but its owner to read. What a link points to is written, not the link.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        write_private(&target, &self.to_yaml())
            .with_context(|| format!("cannot write the kubeconfig {}", path.display()))
    }
}

/// Writes a file at once as a whole, for nobody but its owner to read.
fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory)?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}.unfinished", std::process::id()));
    let result = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    result
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ENTRY: Entry<'_> = Entry { server: "https://new:1", authority: "ca", certificate: "cert", key: "key" };

    #[test]
    fn what_is_not_ours_stays() {
        let text = "\
# comments do not survive, as with kubectl
apiVersion: v1
kind: Config
current-context: mine
extensions: [{name: x, extension: {a: 1}}]
clusters:
- {name: mine, cluster: {server: 'https://mine'}}
- {name: orrery, cluster: {server: 'https://old:1'}}
- {name: orrery-a, cluster: {server: 'https://old:1/spaces/a'}}
- {name: other, cluster: {server: 'https://old:10/spaces/a'}}
contexts:
- {name: orrery, context: {cluster: orrery, user: orrery, namespace: web}}
users: null
";
        let mut kubeconfig = Kubeconfig::parse(text.as_bytes()).unwrap();
        kubeconfig.set_entry("orrery", &ENTRY);
        let again = Kubeconfig::parse(&kubeconfig.to_yaml()).unwrap();
        assert_eq!(again, kubeconfig);
        assert_eq!(again.current_context(), "mine");
        assert_eq!(again.context("orrery").unwrap()["namespace"], "web");
        let server = |name: &str| again.cluster(name).unwrap()["server"].as_str().unwrap().to_owned();
        assert_eq!(
            ["mine", "orrery", "orrery-a", "other"].map(server),
            ["https://mine", "https://new:1", "https://new:1/spaces/a", "https://old:10/spaces/a"]
        );
        assert_eq!(again.0["extensions"][0]["extension"]["a"], 1);
    }

    #[test]
    fn what_is_no_kubeconfig_is_refused() {
        for (text, problem) in [
            ("- a\n", "it has no fields"),
            ("kind: Pod\n", "not Config"),
            ("clusters: {}\n", "its clusters are not a list"),
            ("clusters: []\nclusters: []\n", "already"),
            ("{", "yaml"),
        ] {
            let error = format!("{:#}", Kubeconfig::parse(text.as_bytes()).unwrap_err());
            assert!(error.contains(problem), "{text:?}: {error}");
        }
        for text in ["", " \n", "{}", "apiVersion: v1\nkind: Config\nclusters: null\n"] {
            assert_eq!(Kubeconfig::parse(text.as_bytes()).unwrap(), Kubeconfig::default(), "{text:?}");
        }
    }

    #[test]
    fn files_are_for_their_owner_and_links_stay_links() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("new/file"), directory.path().join("link"));
        let mut kubeconfig = Kubeconfig::default();
        kubeconfig.set_entry("orrery", &ENTRY);
        kubeconfig.write(&file).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        kubeconfig.use_context("other");
        kubeconfig.write(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(Kubeconfig::read(&file).unwrap(), kubeconfig);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let left: Vec<_> =
            fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["file"]);
    }
}
