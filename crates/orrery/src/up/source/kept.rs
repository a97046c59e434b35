//! What a source of works remembers, kept in the store under keys that no resource of the API has.
//!
//! # Flow
//!
//! The first hub of an installation names the source. Whenever a hub begins to be the source, it writes the identity anew and
//! then reads all records; what it records later is written together with a check that the identity is still the one it wrote.
//!
//! # Guarantees
//!
//! - A hub that another has followed cannot write any more, even if it does not know yet.
//! - A store that was made anew or restored has no epoch: the source then makes another one.

use std::{collections::BTreeMap, io};

use anyhow::{Context, bail, ensure};
use orrery_store::{Batch, CommitError, Content, Expect, Key, ListOptions, Object, Revision, Scope, Store};
use orrery_works::{
    Epoch, SourceId,
    endpoint::Journal,
    source::{Ledger, Record},
};
use serde::{Deserialize, Serialize};

use super::record::{KeptCluster, KeptWork};

const GROUP: &str = "internal.orrery.io";
const CLUSTERS: &str = "sourceclusters";
const WORKS: &str = "sourceworks";
/// How often the identity is read anew when another hub changes it at the same time.
const ATTEMPTS: usize = 10;
/// The form of what is kept; another gets another number.
const FORMAT: u32 = 1;

/// Who the source is, and whose turn it is to be it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    source: String,
    /// How often a hub began to be the source.
    turn: u64,
    /// The epoch of the source. Absent until it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<String>,
    /// The history of the store in which that epoch was made. In another one it does not count.
    store: String,
}

fn identity_key() -> anyhow::Result<Key> {
    Ok(Key::new(GROUP, "source", "root", "", "identity")?)
}

fn scope(resource: &str) -> Scope {
    Scope::space(GROUP, resource, "root")
}

fn key(resource: &str, name: &str) -> io::Result<Key> {
    // Slashes part a key.
    let name = name.replace('%', "%25").replace('/', "%2F");
    Key::new(GROUP, resource, "root", "", &name).map_err(io::Error::other)
}

/// The name of the installation's source. It is made on the first start, or taken from `wanted`.
pub(in crate::up) async fn name(store: &Store, wanted: Option<&SourceId>) -> anyhow::Result<SourceId> {
    let settled = change(store, |kept| {
        let Some(kept) = kept else {
            let name = wanted.map_or_else(random_name, |wanted| Ok(wanted.to_string()))?;
            return Ok(Some(Identity { source: name, turn: 0, epoch: None, store: String::new() }));
        };
        let Some(wanted) = wanted.filter(|wanted| wanted.as_str() != kept.source) else { return Ok(None) };
        let works = store.list(&scope(WORKS), &ListOptions { limit: 1, ..ListOptions::default() })?;
        if !works.objects.is_empty() {
            bail!(
                "source-id is {wanted}, but clusters have works from this installation under the name {}: they would keep them \
                 and get all works again; leave source-id as it was",
                kept.source
            );
        }
        Ok(Some(Identity { source: wanted.to_string(), epoch: None, ..kept.clone() }))
    })
    .await?;
    Ok(settled.0.source.parse()?)
}

fn random_name() -> anyhow::Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)?;
    Ok(format!("orrery-{:08x}", u32::from_le_bytes(random)))
}

/// Changes the identity by compare-and-swap, if it is to change, and says what it is then and since when.
async fn change(
    store: &Store,
    decide: impl Fn(Option<&Identity>) -> anyhow::Result<Option<Identity>>,
) -> anyhow::Result<(Identity, Revision)> {
    let key = identity_key()?;
    for _ in 0..ATTEMPTS {
        let existing = store.get(&key);
        let kept: Option<Identity> =
            existing.as_deref().map(read).transpose().context("cannot read who the source is")?;
        let changed = decide(kept.as_ref())?;
        let expect = existing.as_ref().map_or(Expect::Absent, |object| Expect::At(object.modified()));
        let Some(changed) = changed else {
            let (kept, existing) = kept.zip(existing).context("there is no source")?;
            return Ok((kept, existing.modified()));
        };
        match store.commit(Batch::new().put(key.clone(), expect, write(&changed)?)).await {
            Ok(committed) => return Ok((changed, committed.revision)),
            // Another hub of the installation was faster, or may have been: what it wrote is what counts.
            Err(CommitError::Conflict { .. } | CommitError::Unknown(_)) => drop(store.catch_up().await?),
            Err(error) => return Err(error).context("cannot keep who the source is"),
        }
    }
    bail!("who the source is changes all the time")
}

/// Begins to be the source: from now on no other hub can write its records, and these are what it knows.
pub(in crate::up) async fn begin(store: &Store) -> anyhow::Result<(Kept, Ledger)> {
    let history = store.epoch().to_string();
    store.catch_up().await?;
    let (identity, since) = change(store, |kept| {
        let kept = kept.context("there is no source")?;
        let epoch = kept.epoch.clone().filter(|_| kept.store == history);
        Ok(Some(Identity { turn: kept.turn + 1, epoch, store: history.clone(), ..kept.clone() }))
    })
    .await?;
    let mut ledger = Ledger { epoch: identity.epoch.as_deref().map(str::parse).transpose()?, ..Ledger::default() };
    for object in store.list(&scope(CLUSTERS), &ListOptions::default())?.objects {
        let kept: KeptCluster = read(&object).with_context(|| format!("cannot read {}", object.key()))?;
        ledger.clusters.push(kept.record()?);
    }
    for object in store.list(&scope(WORKS), &ListOptions::default())?.objects {
        let kept: KeptWork = read(&object).with_context(|| format!("cannot read {}", object.key()))?;
        ledger.works.push(kept.record()?);
    }
    let kept = Kept { store: store.clone(), identity, since };
    Ok((kept, ledger))
}

/// Keeps the records of the source for as long as this hub is it.
pub(in crate::up) struct Kept {
    store: Store,
    identity: Identity,
    /// When this hub last wrote the identity.
    since: Revision,
}

impl Kept {
    async fn note_epoch(&mut self, epoch: &Epoch) -> anyhow::Result<()> {
        let identity = Identity { epoch: Some(epoch.to_string()), ..self.identity.clone() };
        let batch = Batch::new().put(identity_key()?, Expect::At(self.since), write(&identity)?);
        self.since = self.store.commit(batch).await?.revision;
        self.identity = identity;
        Ok(())
    }

    /// Makes the last word about each thing durable, in as few commits as the store allows. Should a crash come between two, then
    /// what is known of clusters is written: it comes first in the order of keys. So no work is forgotten before the version
    /// that its successors must be above.
    async fn note(&mut self, changes: BTreeMap<Key, Option<Content>>) -> anyhow::Result<()> {
        let most = self.store.limits().operations.saturating_sub(1).clamp(1, 256);
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            let mut batch = Batch::new().check(identity_key()?, Expect::At(self.since));
            for (key, content) in changes.by_ref().take(most) {
                batch = match content {
                    Some(content) => batch.put(key, Expect::Anything, content),
                    None => batch.delete(key, Expect::Anything),
                };
            }
            self.store.commit(batch).await?;
        }
        Ok(())
    }

    async fn keep_all(&mut self, records: Vec<Record>) -> anyhow::Result<()> {
        let mut changes = BTreeMap::new();
        for record in records {
            match record {
                Record::Epoch(epoch) => self.note_epoch(&epoch).await?,
                Record::Cluster(record) => {
                    let content = write(&KeptCluster::of(&record))?;
                    changes.insert(key(CLUSTERS, record.cluster.as_str())?, Some(content));
                }
                Record::Work(record) => {
                    changes.insert(key(WORKS, record.id.as_str())?, Some(write(&KeptWork::of(&record))?));
                }
                Record::Forgotten(id) => drop(changes.insert(key(WORKS, id.as_str())?, None)),
            }
        }
        self.note(changes).await
    }
}

impl Journal<Record> for Kept {
    async fn keep(&mut self, records: Vec<Record>) -> io::Result<()> {
        self.keep_all(records).await.map_err(|error| io::Error::other(format!("{error:#}")))
    }
}

/// What is written under one key: the number of its form, and the rest.
#[derive(Serialize)]
struct Versioned<'a, T> {
    format: u32,
    #[serde(flatten)]
    kept: &'a T,
}

fn write<T: Serialize>(kept: &T) -> anyhow::Result<Content> {
    Ok(Content::new(serde_json::to_vec(&Versioned { format: FORMAT, kept })?))
}

fn read<T: for<'a> Deserialize<'a>>(object: &Object) -> anyhow::Result<T> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let value = object.value().to_vec();
    let Head { format } = serde_json::from_slice(&value)?;
    ensure!(format == FORMAT, "it has format {format}, this program reads format {FORMAT}");
    Ok(serde_json::from_slice(&value)?)
}

#[cfg(test)]
mod tests {
    use orrery_works::{
        ContentHash, Dialect, Sequence, StatusHash, Version,
        source::{ClusterRecord, Renewed, StatusRecord, WorkRecord},
    };

    use super::*;

    fn store() -> Store {
        Store::memory(orrery_store::Config::default()).unwrap()
    }

    fn work(id: &str, version: i64) -> WorkRecord {
        WorkRecord {
            id: id.parse().unwrap(),
            cluster: "cluster1".parse().unwrap(),
            name: "a work".into(),
            born: Version::new(1).unwrap(),
            version: Version::new(version).unwrap(),
            content: ContentHash([7; 32]),
            deleting: Some("2026-11-16T00:00:00.123456789Z".parse().unwrap()),
            status: Some(StatusRecord {
                version: Version::new(1).unwrap(),
                sequence: Sequence::new(2_122_068_407_904_899_072),
                hash: StatusHash::from_hex(&"ab".repeat(32)).unwrap(),
            }),
        }
    }

    fn cluster() -> ClusterRecord {
        ClusterRecord {
            cluster: "cluster1".parse().unwrap(),
            floor: Version::new(41).unwrap(),
            dialect: Some(Dialect::Ocm),
            knows_epochs: true,
            verified: Some("e1".parse().unwrap()),
            agreed: None,
            renewed: Some(Renewed { instead_of: "e1".parse().unwrap(), epoch: "e2".parse().unwrap() }),
        }
    }

    #[tokio::test]
    async fn the_name_is_made_once_and_may_change_only_while_no_cluster_knows_it() {
        let store = store();
        let made = name(&store, None).await.unwrap();
        assert!(made.as_str().starts_with("orrery-"), "{made}");
        assert_eq!(name(&store, None).await.unwrap(), made);
        let hub: SourceId = "hub1".parse().unwrap();
        assert_eq!(name(&store, Some(&hub)).await.unwrap(), hub);
        let (mut kept, _) = begin(&store).await.unwrap();
        kept.keep(vec![Record::Work(work("w", 1))]).await.unwrap();
        assert_eq!(name(&store, Some(&hub)).await.unwrap(), hub);
        let other = name(&store, Some(&made)).await.unwrap_err().to_string();
        assert!(other.contains("under the name hub1"), "{other}");
    }

    #[tokio::test]
    async fn what_is_kept_is_read_again() {
        let store = store();
        name(&store, None).await.unwrap();
        let (mut kept, ledger) = begin(&store).await.unwrap();
        assert!(ledger.epoch.is_none() && ledger.clusters.is_empty() && ledger.works.is_empty());
        let epoch: Epoch = "e1".parse().unwrap();
        let records = vec![
            Record::Epoch(epoch.clone()),
            Record::Work(work("a/b%2F", 1)),
            Record::Cluster(cluster()),
            Record::Work(work("gone", 1)),
            Record::Work(work("a/b%2F", 2)),
            Record::Forgotten("gone".parse().unwrap()),
        ];
        kept.keep(records).await.unwrap();
        let (mut kept, ledger) = begin(&store).await.unwrap();
        assert_eq!((&ledger.epoch, &ledger.clusters), (&Some(epoch), &vec![cluster()]));
        // The hub does not keep statuses: it knows which it had, but must hear them again.
        let mut heard_again = work("a/b%2F", 2);
        heard_again.status.as_mut().unwrap().hash = StatusHash::of_nothing();
        assert_eq!(ledger.works, [heard_again]);
        kept.keep(vec![Record::Forgotten("a/b%2F".parse().unwrap())]).await.unwrap();
        assert!(begin(&store).await.unwrap().1.works.is_empty());
    }

    #[tokio::test]
    async fn many_records_are_kept_in_few_commits() {
        let store = store();
        name(&store, None).await.unwrap();
        let (mut kept, _) = begin(&store).await.unwrap();
        let before = store.stats().commits;
        kept.keep((0..1000).map(|number| Record::Work(work(&format!("w{number}"), 1))).collect()).await.unwrap();
        assert!(store.stats().commits - before <= 4, "{}", store.stats().commits - before);
        assert_eq!(begin(&store).await.unwrap().1.works.len(), 1000);
    }

    #[tokio::test]
    async fn a_hub_that_was_followed_cannot_write() {
        let store = store();
        name(&store, None).await.unwrap();
        let (mut first, _) = begin(&store).await.unwrap();
        first.keep(vec![Record::Epoch("e1".parse().unwrap()), Record::Work(work("w", 1))]).await.unwrap();
        let (mut second, _) = begin(&store).await.unwrap();
        assert!(first.keep(vec![Record::Work(work("w", 2))]).await.is_err());
        assert!(first.keep(vec![Record::Epoch("e2".parse().unwrap())]).await.is_err());
        second.keep(vec![Record::Work(work("v", 1))]).await.unwrap();
        let (_, ledger) = begin(&store).await.unwrap();
        assert_eq!(ledger.epoch, Some("e1".parse().unwrap()));
        assert_eq!(ledger.works.iter().map(|work| work.version.get()).collect::<Vec<_>>(), [1, 1]);
    }

    #[tokio::test]
    async fn another_history_of_the_store_is_another_epoch() {
        let store = store();
        name(&store, None).await.unwrap();
        let (mut kept, _) = begin(&store).await.unwrap();
        kept.keep(vec![Record::Epoch("e1".parse().unwrap()), Record::Work(work("w", 5))]).await.unwrap();
        store.renew_epoch().await.unwrap();
        let (_, ledger) = begin(&store).await.unwrap();
        assert_eq!((ledger.epoch, ledger.works.len()), (None, 1));
    }

    #[tokio::test]
    async fn a_form_of_another_version_is_left_alone() {
        let store = store();
        let content = Content::new(r#"{"format":2,"source":"x"}"#);
        store.commit(Batch::new().put(identity_key().unwrap(), Expect::Absent, content)).await.unwrap();
        let refused = format!("{:#}", name(&store, None).await.unwrap_err());
        assert!(refused.contains("format 2, this program reads format 1"), "{refused}");
    }
}
