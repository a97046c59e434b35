//! Topics of both dialects: what is published where, and what a topic says about a message.

use std::fmt;

use crate::{ClusterName, SourceId};

/// The four channels of the conversation; both dialects have them under different topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// From one source to one cluster.
    SourceEvents,
    /// From one cluster to one source.
    AgentEvents,
    /// From one source to all clusters.
    SourceBroadcast,
    /// From one cluster to all sources.
    AgentBroadcast,
}

/// What a topic says about the messages on it. A broker's access rules are about topics, so this can be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The channel.
    pub channel: Channel,
    /// The source; absent on a cluster's broadcast.
    pub source: Option<SourceId>,
    /// The cluster; absent on a source's broadcast.
    pub cluster: Option<ClusterName>,
}

/// Why a topic cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// The configured pattern is not of the shape that is needed.
    #[error("topic {pattern:?} should look like {example:?}")]
    Pattern {
        /// What was configured.
        pattern: String,
        /// What it could be.
        example: &'static str,
    },
    /// The pattern speaks of another source or cluster.
    #[error("topic {pattern:?} does not allow {name:?}")]
    Other {
        /// The pattern.
        pattern: String,
        /// The name that does not fit.
        name: String,
    },
    /// A message for everyone needs a broadcast topic, and none is configured.
    #[error("no {0} topic is configured")]
    NoBroadcast(&'static str),
}

/// The topics of one end in one dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topics {
    /// The fixed topics of the design document.
    Seed,
    /// The configurable topics of the OCM implementation.
    Ocm(Box<OcmTopics>),
}

impl Topics {
    /// The filters a source subscribes to, for one delivery per group of sources when a group is named.
    pub fn source_filters(&self, source: &SourceId, group: Option<&str>) -> Vec<String> {
        let filters = match self {
            Self::Seed => {
                vec![format!("/sources/{source}/clusters/+/manifestsstatus"), "/sources/resync/+/manifests".to_owned()]
            }
            Self::Ocm(topics) => {
                let mut filters = vec![topics.agent_events.filter(Some(source.as_str()), None)];
                filters.extend(topics.agent_broadcast.as_ref().map(|pattern| pattern.filter(None, None)));
                filters
            }
        };
        match group {
            Some(group) => filters.into_iter().map(|filter| shared(group, filter)).collect(),
            None => filters,
        }
    }

    /// The filters the agent of a cluster subscribes to.
    pub fn agent_filters(&self, cluster: &ClusterName) -> Vec<String> {
        match self {
            Self::Seed => vec![
                format!("/sources/+/clusters/{cluster}/manifests"),
                "/sources/+/resync/clusters/manifestsstatus".to_owned(),
            ],
            Self::Ocm(topics) => {
                let mut filters = vec![topics.source_events.filter(None, Some(cluster.as_str()))];
                filters.extend(topics.source_broadcast.as_ref().map(|pattern| pattern.filter(None, None)));
                filters
            }
        }
    }

    /// The filters that match everything the agent of a cluster publishes, and nothing of others: what a broker may let it.
    pub fn agent_publishes(&self, cluster: &ClusterName) -> Vec<String> {
        match self {
            Self::Seed => vec![
                format!("/sources/+/clusters/{cluster}/manifestsstatus"),
                format!("/sources/resync/{cluster}/manifests"),
            ],
            Self::Ocm(topics) => {
                let mut filters = vec![topics.agent_events.filter(None, Some(cluster.as_str()))];
                let broadcast = topics.agent_broadcast.as_ref();
                filters.extend(broadcast.map(|pattern| pattern.filter(None, Some(cluster.as_str()))));
                filters
            }
        }
    }

    /// The filters that match everything a source publishes, and nothing of others: what a broker may let it.
    pub fn source_publishes(&self, source: &SourceId) -> Vec<String> {
        match self {
            Self::Seed => vec![
                format!("/sources/{source}/clusters/+/manifests"),
                format!("/sources/{source}/resync/clusters/manifestsstatus"),
            ],
            Self::Ocm(topics) => {
                let mut filters = vec![topics.source_events.filter(Some(source.as_str()), None)];
                let broadcast = topics.source_broadcast.as_ref();
                filters.extend(broadcast.map(|pattern| pattern.filter(Some(source.as_str()), None)));
                filters
            }
        }
    }

    /// Reads a topic; `None` when it is none of ours.
    pub fn place(&self, topic: &str) -> Option<Place> {
        match self {
            Self::Seed => seed_place(topic),
            Self::Ocm(topics) => topics.place(topic),
        }
    }

    /// Where a message from a source to a cluster goes.
    pub fn source_events(&self, source: &SourceId, cluster: &ClusterName) -> Result<String, TopicError> {
        match self {
            Self::Seed => Ok(["/sources/", source.as_str(), "/clusters/", cluster.as_str(), "/manifests"].concat()),
            Self::Ocm(topics) => topics.source_events.resolve(source.as_str(), cluster.as_str()),
        }
    }

    /// Where a message from a cluster to a source goes.
    pub fn agent_events(&self, source: &SourceId, cluster: &ClusterName) -> Result<String, TopicError> {
        match self {
            Self::Seed => {
                Ok(["/sources/", source.as_str(), "/clusters/", cluster.as_str(), "/manifestsstatus"].concat())
            }
            Self::Ocm(topics) => topics.agent_events.resolve(source.as_str(), cluster.as_str()),
        }
    }

    /// Where a source asks every cluster.
    pub fn source_broadcast(&self, source: &SourceId) -> Result<String, TopicError> {
        match self {
            Self::Seed => Ok(format!("/sources/{source}/resync/clusters/manifestsstatus")),
            Self::Ocm(topics) => match &topics.source_broadcast {
                Some(pattern) => pattern.resolve(source.as_str(), ""),
                None => Err(TopicError::NoBroadcast("sourceBroadcast")),
            },
        }
    }

    /// Where a cluster asks every source; without a broadcast topic it can only ask the one it has a topic for.
    pub fn agent_broadcast(&self, cluster: &ClusterName, addressee: Option<&SourceId>) -> Result<String, TopicError> {
        match (self, addressee) {
            (Self::Seed, _) => Ok(format!("/sources/resync/{cluster}/manifests")),
            (Self::Ocm(topics), Some(source)) if topics.agent_broadcast.is_none() => {
                topics.agent_events.resolve(source.as_str(), cluster.as_str())
            }
            (Self::Ocm(topics), _) => match (&topics.agent_broadcast, topics.agent_events.literal_source()) {
                (Some(pattern), _) => pattern.resolve("", cluster.as_str()),
                (None, Some(source)) => topics.agent_events.resolve(&source, cluster.as_str()),
                (None, None) => Err(TopicError::NoBroadcast("agentBroadcast")),
            },
        }
    }
}

/// Whether a topic matches a filter, as a broker decides it. The group of a shared subscription is not part of the filter.
pub fn matches(filter: &str, topic: &str) -> bool {
    let (_, filter) = unshared(filter);
    let mut topic = topic.split('/');
    for level in filter.split('/') {
        match (level, topic.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (level, Some(word)) if level == word => {}
            _ => return false,
        }
    }
    topic.next().is_none()
}

/// Whether everything that `narrow` matches is matched by `wide` too. Groups of shared subscriptions are not looked at.
pub fn covers(wide: &str, narrow: &str) -> bool {
    let (_, wide) = unshared(wide);
    let (_, narrow) = unshared(narrow);
    let mut narrow = narrow.split('/');
    for level in wide.split('/') {
        match (level, narrow.next()) {
            ("#", _) => return true,
            ("+", Some(word)) if word != "#" => {}
            (level, Some(word)) if level == word => {}
            _ => return false,
        }
    }
    narrow.next().is_none()
}

/// The group of a shared subscription, if it is one, and the filter in it.
pub fn unshared(filter: &str) -> (Option<&str>, &str) {
    match filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/')) {
        Some((group, filter)) => (Some(group), filter),
        None => (None, filter),
    }
}

/// `$share/<group>/<filter>`: the broker gives each message to one member of the group.
fn shared(group: &str, filter: String) -> String {
    if filter.starts_with("$share/") { filter } else { format!("$share/{group}/{filter}") }
}

fn seed_place(topic: &str) -> Option<Place> {
    let mut levels = topic.strip_prefix("/sources/")?.split('/');
    let mut next = || levels.next();
    let words = (next()?, next()?, next()?, next(), next());
    let (channel, source, cluster) = match words {
        (source, "clusters", cluster, Some("manifests"), None) => (Channel::SourceEvents, Some(source), Some(cluster)),
        (source, "clusters", cluster, Some("manifestsstatus"), None) => {
            (Channel::AgentEvents, Some(source), Some(cluster))
        }
        (source, "resync", "clusters", Some("manifestsstatus"), None) => (Channel::SourceBroadcast, Some(source), None),
        ("resync", cluster, "manifests", None, None) => (Channel::AgentBroadcast, None, Some(cluster)),
        _ => return None,
    };
    Some(Place {
        channel,
        source: source.map(SourceId::new).transpose().ok()?,
        cluster: cluster.map(ClusterName::new).transpose().ok()?,
    })
}

/// The topics of an OCM configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcmTopics {
    source_events: Pattern,
    agent_events: Pattern,
    source_broadcast: Option<Pattern>,
    agent_broadcast: Option<Pattern>,
}

impl OcmTopics {
    /// The conventional topics, for any source and any cluster, with both broadcasts.
    pub fn conventional() -> Self {
        Self::parse(
            "sources/+/clusters/+/sourceevents",
            "sources/+/clusters/+/agentevents",
            Some("sources/+/sourcebroadcast"),
            Some("clusters/+/agentbroadcast"),
        )
        .expect("the conventional topics have the shape that is asked for")
    }

    /// Reads the four topics of a configuration file.
    pub fn parse(
        source_events: &str,
        agent_events: &str,
        source_broadcast: Option<&str>,
        agent_broadcast: Option<&str>,
    ) -> Result<Self, TopicError> {
        Ok(Self {
            source_events: Pattern::pair(source_events, "sourceevents", "sources/+/clusters/+/sourceevents")?,
            agent_events: Pattern::pair(agent_events, "agentevents", "sources/+/clusters/+/agentevents")?,
            source_broadcast: source_broadcast
                .map(|text| Pattern::of_source(text, "sourcebroadcast", "sources/+/sourcebroadcast"))
                .transpose()?,
            agent_broadcast: agent_broadcast
                .map(|text| Pattern::of_cluster(text, "agentbroadcast", "clusters/+/agentbroadcast"))
                .transpose()?,
        })
    }

    fn place(&self, topic: &str) -> Option<Place> {
        let candidates = [
            (Channel::SourceEvents, Some(&self.source_events)),
            (Channel::AgentEvents, Some(&self.agent_events)),
            (Channel::SourceBroadcast, self.source_broadcast.as_ref()),
            (Channel::AgentBroadcast, self.agent_broadcast.as_ref()),
        ];
        candidates.into_iter().find_map(|(channel, pattern)| pattern?.place(channel, topic))
    }
}

/// A topic of two or four levels before its last word: `(<word>/<name>)…/<word>`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    group: Option<String>,
    source: Option<Level>,
    cluster: Option<Level>,
    last: &'static str,
}

/// A free word and the name behind it, where `+` stands for any name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    word: String,
    name: String,
}

impl Level {
    const ANY: &str = "+";

    fn parse(word: &str, name: &str) -> Option<Self> {
        let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_name = name == Self::ANY || is_lower_name(name);
        (is_word && is_name).then(|| Self { word: word.to_owned(), name: name.to_owned() })
    }

    /// Appends the name to publish with: the literal one, or the one given. Says whether it fits.
    fn resolve(&self, name: &str, topic: &mut String) -> bool {
        for part in [&self.word, "/", name, "/"] {
            topic.push_str(part);
        }
        is_lower_name(name) && (self.name == Self::ANY || self.name == name)
    }

    /// The name to subscribe with: the one given fills a `+`.
    fn filter(&self, name: Option<&str>) -> String {
        let name = name.filter(|_| self.name == Self::ANY).unwrap_or(&self.name);
        format!("{}/{name}/", self.word)
    }

    fn matches(&self, word: &str, name: &str) -> bool {
        self.word == word && (self.name == Self::ANY || self.name == name) && is_lower_name(name)
    }
}

/// Names in these topics are `[a-z0-9-]+`.
fn is_lower_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

impl Pattern {
    fn pair(text: &str, last: &'static str, example: &'static str) -> Result<Self, TopicError> {
        let parse = || {
            let (group, rest) = split_group(text)?;
            let [word, source, second, cluster, end] = levels(rest)?;
            let source = Some(Level::parse(word, source)?);
            let cluster = Some(Level::parse(second, cluster)?);
            (end == last).then_some(Self { group, source, cluster, last })
        };
        parse().ok_or_else(|| TopicError::Pattern { pattern: text.to_owned(), example })
    }

    fn of_source(text: &str, last: &'static str, example: &'static str) -> Result<Self, TopicError> {
        let (group, level) = Self::single(text, last, example)?;
        Ok(Self { group, source: Some(level), cluster: None, last })
    }

    fn of_cluster(text: &str, last: &'static str, example: &'static str) -> Result<Self, TopicError> {
        let (group, level) = Self::single(text, last, example)?;
        Ok(Self { group, source: None, cluster: Some(level), last })
    }

    fn single(text: &str, last: &'static str, example: &'static str) -> Result<(Option<String>, Level), TopicError> {
        let parse = || {
            let (group, rest) = split_group(text)?;
            let [word, name, end] = levels(rest)?;
            let level = Level::parse(word, name)?;
            (end == last).then_some((group, level))
        };
        parse().ok_or_else(|| TopicError::Pattern { pattern: text.to_owned(), example })
    }

    fn literal_source(&self) -> Option<String> {
        self.source.as_ref().map(|level| level.name.clone()).filter(|name| name != Level::ANY)
    }

    fn filter(&self, source: Option<&str>, cluster: Option<&str>) -> String {
        let mut filter = match &self.group {
            Some(group) => format!("$share/{group}/"),
            None => String::new(),
        };
        filter.extend(self.source.as_ref().map(|level| level.filter(source)));
        filter.extend(self.cluster.as_ref().map(|level| level.filter(cluster)));
        filter.push_str(self.last);
        filter
    }

    fn resolve(&self, source: &str, cluster: &str) -> Result<String, TopicError> {
        let other = |name: &str| TopicError::Other { pattern: self.to_string(), name: name.to_owned() };
        // Words are short; names are not always.
        let mut topic = String::with_capacity(48 + source.len() + cluster.len());
        for (level, name) in [(&self.source, source), (&self.cluster, cluster)] {
            if level.as_ref().is_some_and(|level| !level.resolve(name, &mut topic)) {
                return Err(other(name));
            }
        }
        topic.push_str(self.last);
        Ok(topic)
    }

    fn place(&self, channel: Channel, topic: &str) -> Option<Place> {
        let mut words = topic.split('/');
        let mut name = |level: &Option<Level>| -> Option<Option<&str>> {
            let Some(level) = level else { return Some(None) };
            let (word, name) = (words.next()?, words.next()?);
            level.matches(word, name).then_some(Some(name))
        };
        let (source, cluster) = (name(&self.source)?, name(&self.cluster)?);
        if words.next()? != self.last || words.next().is_some() {
            return None;
        }
        Some(Place {
            channel,
            source: source.map(SourceId::new).transpose().ok()?,
            cluster: cluster.map(ClusterName::new).transpose().ok()?,
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.filter(None, None))
    }
}

fn split_group(text: &str) -> Option<(Option<String>, &str)> {
    match text.strip_prefix("$share/") {
        Some(rest) => {
            let (group, topic) = rest.split_once('/')?;
            is_lower_name(group).then(|| (Some(group.to_owned()), topic))
        }
        None => Some((None, text)),
    }
}

fn levels<const N: usize>(text: &str) -> Option<[&str; N]> {
    let words: Vec<&str> = text.split('/').collect();
    words.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> (SourceId, ClusterName) {
        (SourceId::new("hub1").unwrap(), ClusterName::new("cluster1").unwrap())
    }

    #[test]
    fn the_documents_topics() {
        let (source, cluster) = names();
        assert_eq!(Topics::Seed.source_events(&source, &cluster).unwrap(), "/sources/hub1/clusters/cluster1/manifests");
        assert_eq!(
            Topics::Seed.agent_events(&source, &cluster).unwrap(),
            "/sources/hub1/clusters/cluster1/manifestsstatus"
        );
        assert_eq!(Topics::Seed.agent_broadcast(&cluster, None).unwrap(), "/sources/resync/cluster1/manifests");
        assert_eq!(Topics::Seed.source_broadcast(&source).unwrap(), "/sources/hub1/resync/clusters/manifestsstatus");
        assert_eq!(
            Topics::Seed.agent_filters(&cluster),
            ["/sources/+/clusters/cluster1/manifests", "/sources/+/resync/clusters/manifestsstatus"]
        );
        assert_eq!(
            Topics::Seed.source_filters(&source, Some("hubs")),
            ["$share/hubs//sources/hub1/clusters/+/manifestsstatus", "$share/hubs//sources/resync/+/manifests"]
        );
    }

    #[test]
    fn every_topic_reads_back_as_its_place() {
        let (source, cluster) = names();
        for topics in [Topics::Seed, Topics::Ocm(Box::new(OcmTopics::conventional()))] {
            let place = |channel, source, cluster| Some(Place { channel, source, cluster });
            let (s, c) = (Some(source.clone()), Some(cluster.clone()));
            let topic = topics.source_events(&source, &cluster).unwrap();
            assert_eq!(topics.place(&topic), place(Channel::SourceEvents, s.clone(), c.clone()));
            let topic = topics.agent_events(&source, &cluster).unwrap();
            assert_eq!(topics.place(&topic), place(Channel::AgentEvents, s.clone(), c.clone()));
            let topic = topics.source_broadcast(&source).unwrap();
            assert_eq!(topics.place(&topic), place(Channel::SourceBroadcast, s, None));
            let topic = topics.agent_broadcast(&cluster, None).unwrap();
            assert_eq!(topics.place(&topic), place(Channel::AgentBroadcast, None, c));
            for other in ["", "/", "sources", "/sources/a/b", "/sources/+/clusters/c/manifests", "a/b/c/d/e/f"] {
                assert_eq!(topics.place(other), None, "{other}");
            }
        }
    }

    #[test]
    fn filters_match_as_a_broker_does() {
        assert!(matches("/sources/+/clusters/c/manifests", "/sources/hub1/clusters/c/manifests"));
        assert!(matches("$share/g//sources/+", "/sources/x"));
        assert!(matches("#", "a/b"));
        assert!(!matches("/sources/+", "/sources/a/b"));
        assert!(!matches("/sources/+/b", "/sources/a"));
    }

    #[test]
    fn a_filter_covers_narrower_ones() {
        for (wide, narrow) in [("#", "a/+"), ("a/#", "a/b/#"), ("a/+", "a/b"), ("+/b", "+/b"), ("a/#", "a")] {
            assert!(covers(wide, narrow), "{wide} {narrow}");
        }
        for (wide, narrow) in [("a/+", "a/#"), ("a/b", "a/+"), ("+", "a/b"), ("a/+/c", "a/#"), ("a/b", "a"), ("a", "#")]
        {
            assert!(!covers(wide, narrow), "{wide} {narrow}");
        }
        assert!(covers("a/+", "$share/g/a/b"));
        assert!(!covers("$share/+/b", "$share/g/c"));
    }

    #[test]
    fn what_an_end_publishes_is_what_its_rights_match() {
        let (source, cluster) = names();
        for topics in [Topics::Seed, Topics::Ocm(Box::new(OcmTopics::conventional()))] {
            let may =
                |filters: Vec<String>, topic: String| filters.iter().filter(|filter| matches(filter, &topic)).count();
            let agent = || topics.agent_publishes(&cluster);
            assert_eq!(may(agent(), topics.agent_events(&source, &cluster).unwrap()), 1);
            assert_eq!(may(agent(), topics.agent_broadcast(&cluster, None).unwrap()), 1);
            assert_eq!(may(agent(), topics.source_events(&source, &cluster).unwrap()), 0);
            let source_may = || topics.source_publishes(&source);
            assert_eq!(may(source_may(), topics.source_events(&source, &cluster).unwrap()), 1);
            assert_eq!(may(source_may(), topics.source_broadcast(&source).unwrap()), 1);
            assert_eq!(may(source_may(), topics.agent_events(&source, &cluster).unwrap()), 0);
        }
    }

    #[test]
    fn configured_topics_resolve_as_the_go_code_does() {
        let (source, cluster) = names();
        let agent = OcmTopics::parse(
            "sources/hub1/consumers/cluster1/sourceevents",
            "sources/hub1/consumers/cluster1/agentevents",
            None,
            None,
        )
        .map(|topics| Topics::Ocm(Box::new(topics)))
        .unwrap();
        assert_eq!(agent.agent_filters(&cluster), ["sources/hub1/consumers/cluster1/sourceevents"]);
        assert_eq!(agent.agent_broadcast(&cluster, None).unwrap(), "sources/hub1/consumers/cluster1/agentevents");
        let other = SourceId::new("hub2").unwrap();
        assert!(agent.agent_events(&other, &cluster).is_err());

        let server = OcmTopics::parse(
            "sources/hub1/clusters/+/sourceevents",
            "$share/statussubscribers/sources/hub1/clusters/+/agentevents",
            None,
            None,
        )
        .map(|topics| Topics::Ocm(Box::new(topics)))
        .unwrap();
        assert_eq!(
            server.source_filters(&source, None),
            ["$share/statussubscribers/sources/hub1/clusters/+/agentevents"]
        );
        assert_eq!(server.source_events(&source, &cluster).unwrap(), "sources/hub1/clusters/cluster1/sourceevents");
        assert_eq!(server.source_broadcast(&source), Err(TopicError::NoBroadcast("sourceBroadcast")));
    }

    #[test]
    fn patterns_of_another_shape_are_refused() {
        for pattern in [
            "sources/+/clusters/+/agentevents",
            "/sources/+/clusters/+/sourceevents",
            "Sources/+/clusters/+/sourceevents",
            "sources/a.b/clusters/+/sourceevents",
            "sources/+/clusters/#/sourceevents",
            "$share/G/sources/+/clusters/+/sourceevents",
            "sources/+/sourceevents",
        ] {
            let topics = OcmTopics::parse(pattern, "sources/+/clusters/+/agentevents", None, None);
            assert!(topics.is_err(), "{pattern}");
        }
    }
}
