//! Backups: a snapshot of the newest revision in a file of its own, and a new store made out of one.

use std::path::Path;

use super::{
    files::{Disk, Files},
    io_error, kind_of, replay, snapshot, snapshot_name,
};
use crate::{
    core::Core,
    error::OpenError,
    feed::HistoryBound,
    revision::{Epoch, Revision},
};

/// How far a restore moves the revision on. The store that was backed up may have gone on since; more changes than this
/// are not made between a backup and its use.
const REVISION_JUMP: u64 = 1_000_000_000;

/// Writes everything as it is now to a file.
pub(crate) fn write(core: &Core, file: &Path) -> Result<Revision, OpenError> {
    let (files, name) = locate(file)?;
    // The current revision is neither compacted nor in the future.
    let pin = core.pin(None).map_err(|error| refused(file, &error.to_string()))?;
    snapshot::write_file(&files, core, &pin, core.epoch(), &name)
        .map_err(|error| io_error("write", &files.describe(&name), error))?;
    Ok(pin.revision)
}

/// Makes a store out of a backup.
pub(crate) fn restore(backup: &Path, directory: &Path) -> Result<Epoch, OpenError> {
    let (files, name) = locate(backup)?;
    let core = Core::new(HistoryBound::default());
    let (header, _) = replay::read_snapshot(&files, name, &core)?;
    let target = Disk::open(directory)?;
    let failed = |action| move |error| io_error(action, &directory.to_string_lossy(), error);
    if target.list().map_err(failed("list"))?.iter().any(|name| kind_of(name).is_some()) {
        return Err(OpenError::NotEmpty { path: directory.to_owned() });
    }
    let epoch = Epoch::random()?;
    core.start_at(header.revision.plus(REVISION_JUMP));
    let pin = core.pin_oldest();
    let name = snapshot_name(pin.revision);
    snapshot::write_file(&target, &core, &pin, epoch, &name).map_err(failed("write a snapshot to"))?;
    Ok(epoch)
}

/// The directory of a file, and its name there.
fn locate(file: &Path) -> Result<(Disk, String), OpenError> {
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| refused(file, "it is not the name of a file"))?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((Disk::shared(directory), name.to_owned()))
}

fn refused(file: &Path, why: &str) -> OpenError {
    io_error("use", &file.to_string_lossy(), std::io::Error::other(why.to_owned()))
}
