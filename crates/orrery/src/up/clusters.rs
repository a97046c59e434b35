//! Which clusters may come to the broker: those of the inventory, followed as they come and go.
//!
//! A cluster is a ManagedCluster of the management space, unless it says that the hub does not accept it. Its agent shows a
//! certificate with the name `agent.CLUSTER`; or it says a password, if the Secret `broker-password` in the cluster's namespace
//! holds one.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use orrery_broker::{Access, Client, Role, access::PasswordHash};
use orrery_store::{Event, ListOptions, Object, Scope, Selector, Store, WatchError, Watched, Watcher};
use orrery_works::ClusterName;
use serde::Deserialize;
use tokio::sync::watch;

const SPACE: &str = "root";
const CLUSTERS: (&str, &str) = ("cluster.open-cluster-management.io", "managedclusters");
const SECRETS: (&str, &str) = ("", "secrets");
/// The Secret with the password of a cluster's agent, and the key in it.
const SECRET: &str = "broker-password";
const PASSWORD: &str = "password";
/// Passwords are kept as a fast hash, so that a short one could be found.
const SHORTEST_PASSWORD: usize = 16;

/// What is known about clusters.
#[derive(Debug, Default)]
struct Roll {
    accepted: BTreeSet<ClusterName>,
    passwords: BTreeMap<ClusterName, PasswordHash>,
}

impl Roll {
    /// Takes an object as it is now, or that it is gone. Says which cluster it concerns.
    fn take(&mut self, object: &Object) -> Option<ClusterName> {
        let key = object.key();
        let value = || object.value().to_vec();
        match (key.group(), key.resource()) {
            CLUSTERS => {
                let cluster: ClusterName = key.name().parse().ok()?;
                if !object.is_deletion() && is_accepted(&value()) {
                    self.accepted.insert(cluster.clone());
                } else {
                    self.accepted.remove(&cluster);
                }
                Some(cluster)
            }
            SECRETS if key.name() == SECRET => {
                let cluster: ClusterName = key.namespace().parse().ok()?;
                let password = if object.is_deletion() { None } else { password(&value()) };
                if !object.is_deletion() && password.is_none() {
                    tracing::warn!(
                        namespace = key.namespace(),
                        "the Secret {SECRET} is not used: it needs a {PASSWORD} of at least {SHORTEST_PASSWORD} bytes"
                    );
                }
                match password {
                    Some(password) => drop(self.passwords.insert(cluster.clone(), password)),
                    None => drop(self.passwords.remove(&cluster)),
                }
                Some(cluster)
            }
            _ => None,
        }
    }

    /// The agent of a cluster, if it may come in.
    fn client(&self, cluster: &ClusterName) -> Option<Client> {
        let password = self.passwords.get(cluster).copied();
        let role = Role::Agent(cluster.clone());
        self.accepted.contains(cluster).then_some(Client { role, password, certificate: true })
    }
}

/// Whether the hub accepts a cluster. One that says nothing was made here, and is wanted.
fn is_accepted(value: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Cluster {
        #[serde(default)]
        spec: Spec,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        hub_accepts_client: Option<bool>,
    }
    serde_json::from_slice(value).is_ok_and(|cluster: Cluster| cluster.spec.hub_accepts_client != Some(false))
}

fn password(value: &[u8]) -> Option<PasswordHash> {
    #[derive(Deserialize)]
    struct Secret {
        #[serde(default)]
        data: BTreeMap<String, String>,
    }
    let secret: Secret = serde_json::from_slice(value).ok()?;
    let password = STANDARD.decode(secret.data.get(PASSWORD)?).ok()?;
    (password.len() >= SHORTEST_PASSWORD).then(|| PasswordHash::of(password))
}

/// Keeps the list of clients as the inventory is, until the store closes or this is dropped. While `open` says no, no cluster
/// is on it.
pub(super) async fn follow(store: Store, access: Access, mut open: watch::Receiver<bool>) {
    let mut known = BTreeSet::new();
    loop {
        let Some((mut roll, mut clusters, mut secrets)) = look(&store) else { continue };
        settle(&roll, &access, &mut known, *open.borrow_and_update());
        loop {
            let watched = tokio::select! {
                watched = clusters.next() => watched,
                watched = secrets.next() => watched,
                // When nobody is left to say otherwise, it stays as it is.
                Ok(()) = open.changed() => {
                    settle(&roll, &access, &mut known, *open.borrow_and_update());
                    continue;
                }
            };
            match watched {
                Ok(Watched::Event(Event { object, .. })) => {
                    if let Some(cluster) = roll.take(&object).filter(|_| *open.borrow()) {
                        admit(&roll, &access, &mut known, &cluster);
                    }
                }
                Ok(Watched::Progress(_)) => {}
                Err(WatchError::Closed) => return,
                // What is no longer kept is looked at anew.
                Err(WatchError::TooSlow { .. } | WatchError::Compacted { .. }) => break,
            }
        }
    }
}

/// All clusters and passwords, and what will happen to them.
fn look(store: &Store) -> Option<(Roll, Watcher, Watcher)> {
    let mut roll = Roll::default();
    let mut watch = |(group, resource): (&str, &str)| {
        let scope = Scope::space(group, resource, SPACE);
        let list = store.list(&scope, &ListOptions::default()).ok()?;
        for object in &list.objects {
            roll.take(object);
        }
        store.watch(scope, Selector::everything(), list.revision).ok()
    };
    let (clusters, secrets) = (watch(CLUSTERS)?, watch(SECRETS)?);
    Some((roll, clusters, secrets))
}

/// Makes the list what it should be. Only agents are ours to change.
fn settle(roll: &Roll, access: &Access, known: &mut BTreeSet<ClusterName>, open: bool) {
    let wanted = if open { roll.accepted.clone() } else { BTreeSet::new() };
    for gone in known.difference(&wanted) {
        access.expel(&Role::Agent(gone.clone()));
    }
    for cluster in &wanted {
        if let Some(client) = roll.client(cluster) {
            access.admit(client);
        }
    }
    *known = wanted;
}

fn admit(roll: &Roll, access: &Access, known: &mut BTreeSet<ClusterName>, cluster: &ClusterName) {
    match roll.client(cluster) {
        Some(client) => {
            access.admit(client);
            if known.insert(cluster.clone()) {
                tracing::info!(%cluster, "a cluster may come to the broker");
            }
        }
        None => {
            access.expel(&Role::Agent(cluster.clone()));
            if known.remove(cluster) {
                tracing::info!(%cluster, "a cluster may not come to the broker any more");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use orrery_broker::access::Clients;
    use orrery_store::{Batch, Content, Expect, Key};

    use super::*;

    async fn put(store: &Store, (group, resource): (&str, &str), namespace: &str, name: &str, value: &str) {
        let key = Key::new(group, resource, SPACE, namespace, name).unwrap();
        store.commit(Batch::new().put(key, Expect::Anything, Content::new(value))).await.unwrap();
    }

    async fn delete(store: &Store, (group, resource): (&str, &str), namespace: &str, name: &str) {
        let key = Key::new(group, resource, SPACE, namespace, name).unwrap();
        store.commit(Batch::new().delete(key, Expect::Present)).await.unwrap();
    }

    fn secret(password: &str) -> String {
        format!(r#"{{"data":{{"password":"{}"}}}}"#, STANDARD.encode(password))
    }

    async fn until(clients: &mut watch::Receiver<Clients>, expected: &[(&str, Option<&str>)]) {
        let expected: BTreeMap<String, Option<PasswordHash>> =
            expected.iter().map(|(user, password)| ((*user).to_owned(), password.map(PasswordHash::of))).collect();
        let are = |clients: &Clients| {
            clients.len() == expected.len()
                && clients.iter().all(|(user, client)| expected.get(user) == Some(&client.password))
        };
        clients.wait_for(are).await.unwrap();
    }

    #[tokio::test]
    async fn the_list_follows_the_inventory() {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        put(&store, CLUSTERS, "", "early", "{}").await;
        put(&store, CLUSTERS, "", "refused", r#"{"spec":{"hubAcceptsClient":false}}"#).await;
        let (access, leads) = (Access::default(), watch::Sender::new(true));
        access.admit(Client::with_certificate(Role::from_user("source.hub1").unwrap()));
        let mut clients = access.subscribe();
        let follower = tokio::spawn(follow(store.clone(), access.clone(), leads.subscribe()));
        until(&mut clients, &[("agent.early", None), ("source.hub1", None)]).await;

        put(&store, CLUSTERS, "", "refused", r#"{"spec":{"hubAcceptsClient":true}}"#).await;
        put(&store, SECRETS, "early", SECRET, &secret("a password that is long")).await;
        put(&store, SECRETS, "nowhere", SECRET, &secret("a password that is long")).await;
        put(&store, SECRETS, "refused", SECRET, &secret("short")).await;
        put(&store, SECRETS, "refused", "another", &secret("a password that is long")).await;
        let long = Some("a password that is long");
        until(&mut clients, &[("agent.early", long), ("agent.refused", None), ("source.hub1", None)]).await;

        // A hub that does not lead lets no agent in.
        leads.send_replace(false);
        until(&mut clients, &[("source.hub1", None)]).await;
        delete(&store, CLUSTERS, "", "refused").await;
        delete(&store, SECRETS, "early", SECRET).await;
        leads.send_replace(true);
        until(&mut clients, &[("agent.early", None), ("source.hub1", None)]).await;
        delete(&store, CLUSTERS, "", "early").await;
        until(&mut clients, &[("source.hub1", None)]).await;
        store.close().await;
        follower.await.unwrap();
    }
}
