//! Who may come in, and what they may publish and receive: the rules behind the built-in broker and behind `mosquitto.acl`.
//!
//! A client is the agent of one cluster or one source of works. What it may do follows from that alone, in both dialects,
//! so there is nothing to configure wrongly. A client that is not listed may do nothing.

use std::{collections::BTreeMap, fmt, sync::Arc};

use orrery_works::{
    ClusterName, NameError, SourceId,
    topic::{OcmTopics, Topics, covers, matches},
};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

/// What a client is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The agent of a cluster: it speaks for that cluster and for no other.
    Agent(ClusterName),
    /// A source of works: it speaks as that source, to every cluster.
    Source(SourceId),
}

/// Why a user name means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    /// It names no role.
    #[error("user {0:?} is neither agent.CLUSTER nor source.ID")]
    NoRole(String),
    /// What it names cannot be a name.
    #[error("user {user:?} has an impossible name")]
    Name {
        /// The user.
        user: String,
        /// What is wrong.
        #[source]
        error: NameError,
    },
}

impl Role {
    /// The user name of this role: what a client calls itself, and the common name of its certificate.
    pub fn user(&self) -> String {
        self.to_string()
    }

    /// Reads a user name.
    pub fn from_user(user: &str) -> Result<Self, UserError> {
        let name = |error| UserError::Name { user: user.to_owned(), error };
        match user.split_once('.') {
            Some(("agent", cluster)) => cluster.parse().map(Self::Agent).map_err(name),
            Some(("source", source)) => source.parse().map(Self::Source).map_err(name),
            _ => Err(UserError::NoRole(user.to_owned())),
        }
    }

    /// What it may do.
    pub fn rights(&self) -> Rights {
        let dialects = [Topics::Seed, Topics::Ocm(Box::new(OcmTopics::conventional()))];
        let mut rights = Rights::default();
        for topics in dialects {
            let (receive, publish) = match self {
                Self::Agent(cluster) => (topics.agent_filters(cluster), topics.agent_publishes(cluster)),
                Self::Source(source) => (topics.source_filters(source, None), topics.source_publishes(source)),
            };
            rights.receive.extend(receive);
            rights.publish.extend(publish);
        }
        rights
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(cluster) => write!(f, "agent.{cluster}"),
            Self::Source(source) => write!(f, "source.{source}"),
        }
    }
}

/// What a client may do, as filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Where it may publish.
    pub publish: Vec<String>,
    /// What it may subscribe to: these filters, and narrower ones.
    pub receive: Vec<String>,
}

impl Rights {
    /// Whether it may publish on a topic.
    pub fn may_publish(&self, topic: &str) -> bool {
        self.publish.iter().any(|filter| matches(filter, topic))
    }

    /// Whether it may have everything that a filter matches. The group of a shared subscription is not part of the filter.
    pub fn may_receive(&self, filter: &str) -> bool {
        self.receive.iter().any(|right| covers(right, filter))
    }
}

/// A client that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// What it is.
    pub role: Role,
    /// The password it may come in with, if any.
    pub password: Option<PasswordHash>,
    /// Whether it may come in with a certificate in its name.
    pub certificate: bool,
}

impl Client {
    /// A client that shows a certificate.
    pub fn with_certificate(role: Role) -> Self {
        Self { role, password: None, certificate: true }
    }

    /// A client that says a password.
    pub fn with_password(role: Role, password: &str) -> Self {
        Self { role, password: Some(PasswordHash::of(password)), certificate: false }
    }
}

/// What is kept of a password. The passwords of clients are made by machines and too long to be guessed, so that a fast
/// hash protects them: do not use it for passwords that people choose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PasswordHash([u8; 32]);

impl PasswordHash {
    /// Hashes a password.
    pub fn of(password: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(password.as_ref()).into())
    }

    /// Whether this is the password. Comparing hashes tells an attacker who measures time nothing about the password.
    fn admits(&self, password: &[u8]) -> bool {
        *self == Self::of(password)
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

/// All known clients, by user name.
pub type Clients = BTreeMap<String, Client>;

/// The clients that may come in, which change while the broker runs. Clones share one list.
#[derive(Clone, Debug)]
pub struct Access(Arc<watch::Sender<Clients>>);

impl Default for Access {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Clients::new())))
    }
}

impl Access {
    /// Lets a client in, from now on. Replaces what was known of the same role, and ends connections that used it.
    pub fn admit(&self, client: Client) {
        self.0.send_if_modified(|clients| {
            let known = clients.insert(client.role.user(), client.clone());
            known.as_ref() != Some(&client)
        });
    }

    /// Keeps a client out, from now on, and ends its connections.
    pub fn expel(&self, role: &Role) {
        self.0.send_if_modified(|clients| clients.remove(&role.user()).is_some());
    }

    /// Lets exactly these clients in.
    pub fn replace(&self, clients: impl IntoIterator<Item = Client>) {
        let clients: Clients = clients.into_iter().map(|client| (client.role.user(), client)).collect();
        self.0.send_if_modified(|known| {
            let changed = *known != clients;
            *known = clients;
            changed
        });
    }

    /// The clients as they are now, and news of changes.
    pub fn subscribe(&self) -> watch::Receiver<Clients> {
        self.0.subscribe()
    }

    /// The clients as they are now. Nothing can change while the answer is held.
    pub(crate) fn now(&self) -> watch::Ref<'_, Clients> {
        self.0.borrow()
    }

    /// Finds out who a client is, by what it shows.
    pub(crate) fn identify(&self, shown: &Shown) -> Option<Client> {
        shown.find_in(&self.now()).cloned()
    }
}

/// What a client shows to be let in.
#[derive(Clone)]
pub(crate) enum Shown {
    /// A certificate of ours with this name.
    Certificate(String),
    /// A user name and a password.
    Password(String, bytes::Bytes),
}

impl Shown {
    pub(crate) fn user(&self) -> &str {
        match self {
            Self::Certificate(user) | Self::Password(user, _) => user,
        }
    }

    /// The client that this proves to be.
    pub(crate) fn find_in<'c>(&self, clients: &'c Clients) -> Option<&'c Client> {
        clients.get(self.user()).filter(|client| match self {
            Self::Certificate(_) => client.certificate,
            Self::Password(_, password) => client.password.is_some_and(|hash| hash.admits(password)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> Role {
        Role::from_user("agent.cluster1").unwrap()
    }

    fn source() -> Role {
        Role::from_user("source.hub1").unwrap()
    }

    #[test]
    fn user_names_read_back() {
        for role in [agent(), source(), Role::from_user("agent.a.b").unwrap()] {
            assert_eq!(Role::from_user(&role.user()), Ok(role));
        }
        for user in ["", "admin", "agent", "agent.", "agent.a/b", "agent.+", "cluster1", "Agent.cluster1"] {
            assert!(Role::from_user(user).is_err(), "{user}");
        }
    }

    #[test]
    fn an_agent_speaks_for_its_cluster_alone() {
        let rights = agent().rights();
        for topic in [
            "/sources/hub1/clusters/cluster1/manifestsstatus",
            "/sources/resync/cluster1/manifests",
            "sources/hub1/clusters/cluster1/agentevents",
            "clusters/cluster1/agentbroadcast",
        ] {
            assert!(rights.may_publish(topic), "{topic}");
            assert!(!rights.may_publish(&topic.replace("cluster1", "cluster2")), "{topic}");
        }
        for topic in [
            "/sources/hub1/clusters/cluster1/manifests",
            "/sources/hub1/resync/clusters/manifestsstatus",
            "sources/hub1/clusters/cluster1/sourceevents",
            "sources/hub1/sourcebroadcast",
            "$SYS/broker",
        ] {
            assert!(!rights.may_publish(topic), "only sources speak on {topic}");
        }
    }

    #[test]
    fn an_agent_hears_its_cluster_alone() {
        let rights = agent().rights();
        for filter in [
            "/sources/+/clusters/cluster1/manifests",
            "/sources/hub1/clusters/cluster1/manifests",
            "sources/+/clusters/cluster1/sourceevents",
            "sources/hub1/sourcebroadcast",
            "/sources/+/resync/clusters/manifestsstatus",
            "$share/group/sources/+/clusters/cluster1/sourceevents",
        ] {
            assert!(rights.may_receive(filter), "{filter}");
        }
        for filter in [
            "#",
            "+/#",
            "/#",
            "$share/g/#",
            "sources/#",
            "sources/+/clusters/+/sourceevents",
            "sources/+/clusters/cluster2/sourceevents",
            "sources/+/clusters/cluster1/#",
            "/sources/+/clusters/+/manifests",
            "/sources/+/+/cluster1/manifests",
            "sources/+/clusters/cluster1/agentevents",
            "clusters/+/agentbroadcast",
            "$SYS/#",
        ] {
            assert!(!rights.may_receive(filter), "{filter}");
        }
    }

    #[test]
    fn a_source_speaks_as_itself_to_all() {
        let rights = source().rights();
        assert!(rights.may_publish("/sources/hub1/clusters/any/manifests"));
        assert!(rights.may_publish("sources/hub1/sourcebroadcast"));
        assert!(!rights.may_publish("sources/hub2/clusters/any/sourceevents"));
        assert!(!rights.may_publish("sources/hub1/clusters/any/agentevents"), "a source is no agent");
        assert!(rights.may_receive("$share/hubs//sources/hub1/clusters/+/manifestsstatus"));
        assert!(rights.may_receive("clusters/+/agentbroadcast"));
        assert!(!rights.may_receive("sources/+/clusters/+/agentevents"));
    }

    #[test]
    fn only_what_is_listed_comes_in() {
        let access = Access::default();
        let password = |user: &str, password: &'static str| {
            let shown = Shown::Password(user.to_owned(), bytes::Bytes::from_static(password.as_bytes()));
            access.identify(&shown).map(|client| client.role)
        };
        let certificate = |user: &str| access.identify(&Shown::Certificate(user.to_owned())).map(|client| client.role);
        assert_eq!(certificate("agent.cluster1"), None);
        access.admit(Client::with_password(agent(), "secret"));
        assert_eq!(password("agent.cluster1", "secret"), Some(agent()));
        assert_eq!(password("agent.cluster1", ""), None);
        assert_eq!(password("agent.cluster2", "secret"), None);
        assert_eq!(certificate("agent.cluster1"), None, "it has a password, not a certificate");
        access.admit(Client::with_certificate(agent()));
        assert_eq!(certificate("agent.cluster1"), Some(agent()));
        assert_eq!(password("agent.cluster1", "secret"), None, "the password was taken back");
        access.expel(&agent());
        assert_eq!(certificate("agent.cluster1"), None);
    }
}
