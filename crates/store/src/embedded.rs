//! The default backend: a log of checksummed frames and a snapshot, in one directory.
//!
//! ```text
//! LOCK                              held while a process has the directory open
//! snapshot-00000000000000041000     every object as it was at that revision
//! log-00000000000000038211          changes after that revision, until the next log begins
//! log-00000000000000054398
//! ```
//!
//! Opening reads the newest snapshot and the changes after it. A snapshot shows the oldest revision of the history in
//! memory, not the newest, so that history survives a restart. Logs that end before the snapshot are removed. A backup is
//! a snapshot of the newest revision, kept elsewhere.

pub(crate) mod backup;
#[cfg(test)]
mod faults;
mod files;
mod frame;
mod log;
mod replay;
#[cfg(any(test, fuzzing))]
mod simulated;
mod snapshot;

use std::{io, path::Path, sync::Arc};

use self::{
    files::{Disk, Files},
    log::WriteLog,
};
use crate::{core::Core, error::OpenError, revision::Revision};

/// A data directory that is not yet loaded.
pub(crate) struct Embedded {
    files: Arc<dyn Files>,
    sizes: Sizes,
}

/// How large files become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// A log file is closed when it has grown to this size: the unit in which disk is given back.
    log: u64,
    /// Logs before the snapshot are worth a new one when they have this size, or that of the last snapshot if it is
    /// larger: so writing snapshots costs at most as much as writing the log.
    worth_a_snapshot: u64,
    /// Room is asked for in steps of this size, so that most syncs need not write the file's size as well.
    allocation: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { log: 16 << 20, worth_a_snapshot: 32 << 20, allocation: 1 << 20 }
    }
}

impl Embedded {
    /// Takes a directory into use.
    pub(crate) fn on_disk(directory: &Path) -> Result<Self, OpenError> {
        Ok(Self { files: Arc::new(Disk::open(directory)?), sizes: Sizes::default() })
    }

    /// Reads everything back, cuts a torn tail, and begins to write after it.
    pub(crate) fn load(self, core: &Core) -> Result<WriteLog, OpenError> {
        let found = replay::replay(&*self.files, core)?;
        WriteLog::begin(self.files, found, self.sizes)
    }
}

/// Replays any bytes, as a whole log or as the content of a frame that checks. It may refuse them but must not panic.
#[cfg(fuzzing)]
pub fn fuzz_replay(bytes: &[u8]) {
    let header =
        frame::FileHeader { format: frame::FORMAT, epoch: crate::Epoch::from_bytes([7; 16]), revision: Revision::ZERO };
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let mut file = header.encode().to_vec();
    if choice % 2 == 0 {
        file.extend_from_slice(bytes);
    } else {
        let mut framed = Vec::new();
        frame::begin(&mut framed);
        framed.extend_from_slice(bytes);
        frame::seal(&mut framed, file.len() as u64, header.seed());
        file.extend_from_slice(&framed);
    }
    let name = if choice & 2 == 0 { log_name(Revision::ZERO) } else { snapshot_name(Revision::ZERO) };
    let files = simulated::Simulated::with_files([(name, file)]);
    let embedded = Embedded { files: Arc::new(files), sizes: Sizes::default() };
    let _ = embedded.load(&Core::new(crate::HistoryBound::default()));
}

pub(crate) fn io_error(action: &'static str, file: &str, source: io::Error) -> OpenError {
    OpenError::Io { action, file: file.to_owned(), source }
}

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Log(Revision),
    Snapshot(Revision),
    /// A file that was being made when the process ended.
    Unfinished,
}

const UNFINISHED: &str = ".unfinished";

fn log_name(revision: Revision) -> String {
    format!("log-{:020}", revision.get())
}

fn snapshot_name(revision: Revision) -> String {
    format!("snapshot-{:020}", revision.get())
}

fn kind_of(name: &str) -> Option<Kind> {
    if name.ends_with(UNFINISHED) {
        return Some(Kind::Unfinished);
    }
    let (kind, number) = name.split_once('-')?;
    let revision = Revision::new(number.parse().ok()?);
    match kind {
        "log" => Some(Kind::Log(revision)),
        "snapshot" => Some(Kind::Snapshot(revision)),
        _ => None,
    }
}
