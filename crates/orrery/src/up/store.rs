//! Which store a control plane has, and how it is opened.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use anyhow::Context;
use orrery_store::{Store, etcd};

use super::Config;

/// Which store a control plane has.
#[derive(Clone, Debug, Default)]
pub enum StoreChoice {
    /// In the data directory.
    #[default]
    Embedded,
    /// In etcd, which several control planes can share.
    Etcd(Box<etcd::Config>),
}

/// Opens the store.
pub(super) async fn open(config: &Config) -> anyhow::Result<Store> {
    make_private(&config.data_dir)?;
    let settings = orrery_store::Config::default();
    match &config.store {
        StoreChoice::Embedded => {
            let directory = config.data_dir.join("store");
            let opened = tokio::task::spawn_blocking(move || {
                let store = Store::embedded(&directory, settings)?;
                tell_if_open(&directory);
                Ok::<_, orrery_store::OpenError>(store)
            });
            opened.await?.context("cannot open the store")
        }
        StoreChoice::Etcd(etcd) => {
            Store::etcd((**etcd).clone(), settings).await.context("cannot open the store given with --store")
        }
    }
}

/// Makes a directory that nobody but its owner can look into. One that is there stays as it is.
fn make_private(directory: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    let usable = made.and_then(|()| fs::metadata(directory));
    usable.map(drop).with_context(|| format!("cannot use the data directory {}", directory.display()))
}

/// Says so if others than the owner can look into a directory.
fn tell_if_open(directory: &Path) {
    let mode = fs::metadata(directory).map_or(0, |found| found.permissions().mode());
    if mode & 0o077 != 0 {
        let (directory, mode) = (directory.display(), format!("{:o}", mode & 0o7777));
        tracing::warn!(%directory, mode, "others can look into the store, where keys and secrets are: chmod 700 it");
    }
}

/// What there is to know about a store.
pub(super) fn describe(config: &Config, store: &Store) -> String {
    let objects = store.stats().objects;
    match &config.store {
        StoreChoice::Embedded => format!("{} ({objects} objects)", config.data_dir.join("store").display()),
        StoreChoice::Etcd(etcd) => format!("etcd at {} ({objects} objects)", etcd.endpoints.join(", ")),
    }
}
