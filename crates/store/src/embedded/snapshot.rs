//! Writing a snapshot beside the log, and removing what it makes superfluous.

use std::io;

use parking_lot::Mutex;

use super::{
    UNFINISHED,
    files::{File, Files},
    frame::{self, FILE_HEADER, FORMAT, FileHeader, Seed},
    log_name,
    replay::{LogFile, OBJECTS, SNAPSHOT_END},
    snapshot_name,
};
use crate::{
    codec,
    core::{Core, Pin},
    revision::{Epoch, Revision},
};

/// Objects are put in a frame until it has this size.
const FRAME_BYTES: usize = 1 << 20;

/// A snapshot on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    pub(crate) revision: Revision,
    pub(crate) bytes: u64,
}

/// Writes a snapshot of the oldest kept revision, then removes the last one and the logs that end before it.
///
/// `current` is where the log that is being written begins. A failure loses nothing: the log has everything.
pub(crate) fn write(
    files: &dyn Files,
    core: &Core,
    epoch: Epoch,
    closed: &Mutex<Vec<LogFile>>,
    current: Revision,
    last: &Mutex<Option<Snapshot>>,
) {
    let pin = core.pin_oldest();
    let before = *last.lock();
    if before.is_some_and(|snapshot| snapshot.revision == pin.revision) {
        return;
    }
    let name = snapshot_name(pin.revision);
    match write_file(files, core, &pin, epoch, &name) {
        Ok(bytes) => {
            let snapshot = Snapshot { revision: pin.revision, bytes };
            *last.lock() = Some(snapshot);
            core.counters.snapshots.add(1);
            remove_superfluous(files, snapshot, before, closed, current);
        }
        Err(error) => {
            let _ = files.remove(&format!("{name}{UNFINISHED}"));
            tracing::warn!(file = files.describe(&name), %error, "cannot write a snapshot, the log grows on");
        }
    }
}

/// Writes every object of a pinned revision to a file, which gets its name when it is durable. Returns its length.
pub(crate) fn write_file(files: &dyn Files, core: &Core, pin: &Pin<'_>, epoch: Epoch, name: &str) -> io::Result<u64> {
    let header = FileHeader { format: FORMAT, epoch, revision: pin.revision };
    let unfinished = format!("{name}{UNFINISHED}");
    let mut file = files.create(&unfinished)?;
    file.write_at(0, &header.encode())?;
    let mut writer = Writer { file: &mut *file, seed: header.seed(), end: FILE_HEADER as u64, buffer: Vec::new() };
    writer.begin(OBJECTS);
    let mut count = 0;
    for scope in core.image.scopes() {
        for object in pin.all_of(&scope) {
            codec::write_object(&object, &mut writer.buffer);
            count += 1;
            if writer.buffer.len() >= FRAME_BYTES {
                writer.flush()?;
                writer.begin(OBJECTS);
            }
        }
    }
    writer.flush()?;
    writer.begin(SNAPSHOT_END);
    codec::write_number(count, &mut writer.buffer);
    writer.flush()?;
    let end = writer.end;
    file.sync()?;
    files.rename(&unfinished, name)?;
    files.sync_names()?;
    Ok(end)
}

/// Appends frames to a file.
struct Writer<'a> {
    file: &'a mut dyn File,
    seed: Seed,
    end: u64,
    buffer: Vec<u8>,
}

impl Writer<'_> {
    fn begin(&mut self, kind: u8) {
        frame::begin(&mut self.buffer);
        self.buffer.push(kind);
    }

    fn flush(&mut self) -> io::Result<()> {
        frame::seal(&mut self.buffer, self.end, self.seed);
        self.file.write_at(self.end, &self.buffer)?;
        self.end += self.buffer.len() as u64;
        Ok(())
    }
}

/// Removes what is not needed to open the store any more. What cannot be removed now is removed at the next start.
fn remove_superfluous(
    files: &dyn Files,
    snapshot: Snapshot,
    before: Option<Snapshot>,
    closed: &Mutex<Vec<LogFile>>,
    current: Revision,
) {
    let mut names: Vec<String> = before.map(|before| snapshot_name(before.revision)).into_iter().collect();
    {
        let mut closed = closed.lock();
        let next_begins: Vec<Revision> = closed.iter().skip(1).map(|log| log.begins_after).chain([current]).collect();
        let superfluous = next_begins.iter().take(closed.len()).take_while(|next| **next <= snapshot.revision).count();
        names.extend(closed.drain(..superfluous).map(|log| log_name(log.begins_after)));
    }
    for name in names {
        if let Err(error) = files.remove(&name) {
            tracing::warn!(file = files.describe(&name), %error, "cannot remove a file that is no longer needed");
        }
    }
}
