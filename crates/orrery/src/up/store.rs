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
            let opened = tokio::task::spawn_blocking(move || Store::embedded(&directory, settings)).await?;
            opened.context("cannot open the store")
        }
        StoreChoice::Etcd(etcd) => {
            Store::etcd((**etcd).clone(), settings).await.context("cannot open the store given with --store")
        }
    }
}

/// Makes a directory that nobody but its owner can look into. One that is there stays as it is, and is told if others can.
fn make_private(directory: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    let usable = made.and_then(|()| fs::metadata(directory));
    let usable = usable.with_context(|| format!("cannot use the data directory {}", directory.display()))?;
    let mode = usable.permissions().mode();
    if mode & 0o077 != 0 {
        let directory = directory.display();
        tracing::warn!(%directory, mode = format!("{:o}", mode & 0o7777), "{OPEN}");
    }
    Ok(())
}

/// What is said of a data directory that is not its owner's alone.
const OPEN: &str = "others can enter the data directory, where keys and secrets are kept: chmod 700 it";

/// What there is to know about a store.
pub(super) fn describe(config: &Config, store: &Store) -> String {
    let objects = store.stats().objects;
    match &config.store {
        StoreChoice::Embedded => format!("{} ({objects} objects)", config.data_dir.join("store").display()),
        StoreChoice::Etcd(etcd) => format!("etcd at {} ({objects} objects)", etcd.endpoints.join(", ")),
    }
}
