//! The authorities as they are kept in the store, under a key that no resource of the API has.

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use orrery_store::{Batch, CommitError, Content, Expect, Key, Object, Store};
use serde::{Deserialize, Serialize};

use super::{Authorities, Authority};

/// How often the authorities are read anew when another hub changes them at the same time.
const ATTEMPTS: usize = 10;

/// The form below; another gets another number.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    authorities: Vec<Pair>,
}

#[derive(Serialize, Deserialize)]
struct Pair {
    certificate: String,
    key: String,
}

impl Authorities {
    /// The authorities of the installation that has this store. They are made if there are none, and changed if it is time.
    pub async fn open(store: &Store, now: Timestamp) -> anyhow::Result<Self> {
        let key = Key::new("internal.orrery.io", "authorities", "root", "", "tls")?;
        for _ in 0..ATTEMPTS {
            let existing = store.get(&key);
            let kept = existing.as_deref().map(read).transpose().context("cannot read the authorities in the store")?;
            let (changed, expect) = match (&kept, &existing) {
                (Some(kept), Some(object)) => (kept.aged(now)?, Expect::At(object.modified())),
                _ => (Some(Self::first(now)?), Expect::Absent),
            };
            let Some(changed) = changed else {
                return kept.context("there is no certificate authority");
            };
            match store.commit(Batch::new().put(key.clone(), expect, write(&changed)?)).await {
                Ok(_) => return Ok(changed),
                // Another hub of the installation was faster, or may have been: what it wrote is what counts.
                Err(CommitError::Conflict { .. } | CommitError::Unknown(_)) => drop(store.catch_up().await?),
                Err(error) => return Err(error).context("cannot keep the certificate authority in the store"),
            }
        }
        bail!("the certificate authority in the store changes all the time")
    }
}

fn read(object: &Object) -> anyhow::Result<Authorities> {
    let record: Record = serde_json::from_slice(&object.value().to_vec())?;
    ensure!(record.format == FORMAT, "they have format {}, this program reads format {FORMAT}", record.format);
    let read = |pair: &Pair| Authority::read(pair.certificate.clone(), &pair.key);
    Ok(Authorities { list: record.authorities.iter().map(read).collect::<anyhow::Result<_>>()? })
}

fn write(authorities: &Authorities) -> anyhow::Result<Content> {
    let pair =
        |authority: &Authority| Pair { certificate: authority.certificate.clone(), key: authority.key.serialize_pem() };
    let record = Record { format: FORMAT, authorities: authorities.list.iter().map(pair).collect() };
    Ok(Content::new(serde_json::to_vec(&record)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_hubs_of_a_store_have_one_authority() {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let hubs: Vec<_> = (0..8)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move { Authorities::open(&store, now).await.unwrap().bundle() })
            })
            .collect();
        let mut bundles = Vec::new();
        for hub in hubs {
            bundles.push(hub.await.unwrap());
        }
        assert!(bundles.windows(2).all(|pair| pair[0] == pair[1]), "{bundles:?}");
        let later = Authorities::open(&store, now + super::super::OVERLAP).await.unwrap();
        assert_eq!(later.bundle(), bundles[0]);
    }

    #[tokio::test]
    async fn a_form_of_another_version_is_left_alone() {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let key = Key::new("internal.orrery.io", "authorities", "root", "", "tls").unwrap();
        let content = Content::new(r#"{"format":2,"authorities":[]}"#);
        store.commit(Batch::new().put(key.clone(), Expect::Absent, content)).await.unwrap();
        let refused = Authorities::open(&store, Timestamp::from_second(1_800_000_000).unwrap()).await;
        let message = format!("{:#}", refused.err().unwrap());
        assert!(message.contains("format 2, this program reads format 1"), "{message}");
        assert_eq!(store.get(&key).unwrap().value().to_vec(), br#"{"format":2,"authorities":[]}"#);
    }
}
