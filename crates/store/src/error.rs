//! What can go wrong, by what the caller can do about it.

use std::{io, path::PathBuf};

use crate::{key::Key, revision::Revision};

/// Why a batch was not committed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A key was not as expected; nothing was written. Read it again and decide anew.
    #[error("conflict on {key}: {}", describe_current(*current))]
    Conflict {
        /// The first key of the batch that was not as expected.
        key: Key,
        /// When it was last modified; `None` when it does not exist.
        current: Option<Revision>,
    },
    /// The batch breaks a rule and can never be committed as it is.
    #[error("batch refused: {0}")]
    Refused(String),
    /// The disk or the database is full; nothing was written. It works again when there is room.
    #[error("no room to write: {0}")]
    NoRoom(String),
    /// The batch was not acknowledged in time. It may or may not have been committed: read to find out.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// The backend cannot be reached or refuses us; nothing was written.
    #[error("backend unavailable: {0}")]
    Unavailable(String),
    /// The store was closed, or stopped because it could no longer promise durability.
    #[error("store stopped: {0}")]
    Stopped(String),
}

fn describe_current(current: Option<Revision>) -> String {
    current.map_or_else(|| "it does not exist".to_owned(), |revision| format!("it was last modified at {revision}"))
}

/// Why a read at a revision cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The revision is older than what is kept.
    #[error("revision {requested} has been compacted, the oldest kept is {oldest}")]
    Compacted {
        /// What was asked for.
        requested: Revision,
        /// The oldest revision that can be read.
        oldest: Revision,
    },
    /// The revision has not happened yet.
    #[error("revision {requested} is in the future, the newest is {newest}")]
    Future {
        /// What was asked for.
        requested: Revision,
        /// The newest revision.
        newest: Revision,
    },
}

/// Why a watch ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// What comes next is no longer kept: list again and watch from there.
    #[error("revision {requested} has been compacted, the oldest kept is {oldest}")]
    Compacted {
        /// The revision the watch should have gone on from.
        requested: Revision,
        /// The oldest revision that can be watched from.
        oldest: Revision,
    },
    /// The watcher did not keep up. Nothing was skipped: watch again from the last revision seen.
    #[error("watcher too slow, more than {queued} changes were waiting")]
    TooSlow {
        /// How many changes were waiting.
        queued: usize,
    },
    /// The store was closed.
    #[error("store closed")]
    Closed,
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the data directory open.
    #[error("data directory {} is in use by another process; stop it, or choose another directory", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A file is damaged. It was left as it is.
    #[error("{file} is damaged at byte {offset}: {problem}; nothing was changed, restore the directory from a backup")]
    Damaged {
        /// The file.
        file: String,
        /// Where the first damaged piece begins.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The file was written by a version of this program that stores in another format.
    #[error("{file} has format {found}, this program reads format {supported}; use the version that wrote it")]
    Format {
        /// The file.
        file: String,
        /// The format it has.
        found: u32,
        /// The format this program reads.
        supported: u32,
    },
    /// The operating system refused.
    #[error("cannot {action} {file}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file.
        file: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A store is to be made where there is one already.
    #[error("{} already has a store in it; restore into an empty directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The system has no randomness to make an epoch from.
    #[error("no randomness: {0}")]
    NoRandomness(String),
    /// The backend's server cannot be used.
    #[error("cannot use {endpoint}: {problem}")]
    Server {
        /// Which server.
        endpoint: String,
        /// What it said.
        problem: String,
    },
}
