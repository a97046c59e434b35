//! Reading a data directory back into memory. It changes nothing; what is damaged is named and left alone.

use std::sync::mpsc::{SyncSender, sync_channel};

use super::{
    Kind,
    files::{File, Files},
    frame::{self, FILE_HEADER, FORMAT, FRAME_HEADER, FileHeader, Next},
    io_error, kind_of, log_name, snapshot_name,
};
use crate::{
    codec::Reader,
    core::{Change, Core},
    error::OpenError,
    revision::{Epoch, Revision},
};

/// What a frame is, by the first byte of its content.
pub(crate) const CHANGES: u8 = 1;
pub(crate) const OBJECTS: u8 = 2;
pub(crate) const SNAPSHOT_END: u8 = 3;

/// What was found in a directory, and where to go on.
pub(crate) struct Found {
    pub(crate) epoch: Option<Epoch>,
    pub(crate) revision: Revision,
    /// The log files that are needed, oldest first.
    pub(crate) logs: Vec<LogFile>,
    /// The snapshot in use, and its size.
    pub(crate) snapshot: Option<(Revision, u64)>,
    /// Files that can be removed.
    pub(crate) leftovers: Vec<String>,
}

/// A log file that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogFile {
    /// The newest revision before it.
    pub(crate) begins_after: Revision,
    /// The newest revision in it.
    pub(crate) newest: Revision,
    /// Where its last whole frame ends.
    pub(crate) end: u64,
}

/// Reads everything into the core.
pub(crate) fn replay(files: &dyn Files, core: &Core) -> Result<Found, OpenError> {
    let names = files.list().map_err(|error| io_error("list", &files.describe(""), error))?;
    let mut logs = Vec::new();
    let mut snapshots = Vec::new();
    let mut leftovers = Vec::new();
    for name in names {
        match kind_of(&name) {
            Some(Kind::Log(revision)) => logs.push(revision),
            Some(Kind::Snapshot(revision)) => snapshots.push(revision),
            Some(Kind::Unfinished) => leftovers.push(name),
            None => {}
        }
    }
    logs.sort_unstable();
    snapshots.sort_unstable();
    let newest = snapshots.pop();
    leftovers.extend(snapshots.into_iter().map(snapshot_name));

    let mut found = Found { epoch: None, revision: Revision::ZERO, logs: Vec::new(), snapshot: None, leftovers };
    if let Some(revision) = newest {
        load_snapshot(files, revision, core, &mut found)?;
    }
    core.start_at(found.revision);
    // A log is needed if the one after it begins after the snapshot; the last one always is.
    let needed = logs.partition_point(|begins_after| *begins_after <= found.revision).saturating_sub(1);
    found.leftovers.extend(logs[..needed].iter().copied().map(log_name));
    for (position, begins_after) in logs.iter().enumerate().skip(needed) {
        let last = position + 1 == logs.len();
        load_log(files, *begins_after, last, core, &mut found)?;
    }
    if let Some(epoch) = found.epoch {
        core.set_epoch(epoch);
    }
    Ok(found)
}

/// A file being read frame by frame.
struct Frames<'a> {
    files: &'a dyn Files,
    name: String,
    file: Box<dyn File>,
    header: FileHeader,
    offset: u64,
}

impl<'a> Frames<'a> {
    fn open(files: &'a dyn Files, name: String) -> Result<Self, OpenError> {
        let described = files.describe(&name);
        let failed = |error| io_error("read", &described, error);
        let file = files.open(&name).map_err(failed)?;
        let mut bytes = [0; FILE_HEADER];
        let length = file.read_at(0, &mut bytes).map_err(failed)?;
        let header = FileHeader::decode(&bytes[..length]).map_err(|problem| OpenError::Damaged {
            file: described.clone(),
            offset: 0,
            problem: problem.to_owned(),
        })?;
        if header.format != FORMAT {
            return Err(OpenError::Format { file: described, found: header.format, supported: FORMAT });
        }
        Ok(Self { files, name, file, header, offset: FILE_HEADER as u64 })
    }

    fn next(&mut self) -> Result<Next, OpenError> {
        let next = frame::read(&*self.file, self.offset, self.header.seed());
        let next = next.map_err(|error| io_error("read", &self.files.describe(&self.name), error))?;
        if let Next::Damaged(problem) = next {
            return Err(self.damaged(problem));
        }
        Ok(next)
    }

    /// Goes on behind a frame with this content.
    fn skip(&mut self, content: &[u8]) {
        self.offset += (FRAME_HEADER + content.len()) as u64;
    }

    /// The changes of a frame's content after its first byte, each checked by `accept`.
    fn changes(
        &self,
        content: &[u8],
        mut accept: impl FnMut(Change) -> Result<(), &'static str>,
    ) -> Result<(), OpenError> {
        let mut reader = Reader::new(content);
        while !reader.is_empty() {
            let change = reader.change().map_err(|error| self.damaged(&error.to_string()))?;
            accept(change).map_err(|problem| self.damaged(problem))?;
        }
        Ok(())
    }

    fn damaged(&self, problem: &str) -> OpenError {
        OpenError::Damaged { file: self.files.describe(&self.name), offset: self.offset, problem: problem.to_owned() }
    }
}

/// How many changes are handed over together, and how many such portions wait at most.
const PORTION: usize = 512;
const PORTIONS_AHEAD: usize = 4;

/// Changes on their way from the thread that reads, checks and decodes to the one that puts them in memory.
struct Portions {
    sender: SyncSender<Vec<Change>>,
    portion: Vec<Change>,
}

impl Portions {
    fn push(&mut self, change: Change) {
        self.portion.push(change);
        if self.portion.len() >= PORTION {
            self.flush();
        }
    }

    fn flush(&mut self) {
        // The other thread goes on until this one has ended.
        let _ = self.sender.send(std::mem::take(&mut self.portion));
    }
}

/// Reads in a thread of its own while the changes it finds are taken in here.
fn read_ahead<T: Send>(
    read: impl FnOnce(&mut Portions) -> Result<T, OpenError> + Send,
    mut take_in: impl FnMut(Vec<Change>),
) -> Result<T, OpenError> {
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(PORTIONS_AHEAD);
        let reader = scope.spawn(move || {
            let mut portions = Portions { sender, portion: Vec::new() };
            let outcome = read(&mut portions);
            portions.flush();
            outcome
        });
        receiver.into_iter().for_each(&mut take_in);
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn load_snapshot(files: &dyn Files, revision: Revision, core: &Core, found: &mut Found) -> Result<(), OpenError> {
    let (header, length) = read_snapshot(files, snapshot_name(revision), core)?;
    if header.revision != revision {
        let file = files.describe(&snapshot_name(revision));
        let problem = "it is the snapshot of another revision".to_owned();
        return Err(OpenError::Damaged { file, offset: 0, problem });
    }
    found.snapshot = Some((revision, length));
    found.epoch = Some(header.epoch);
    found.revision = revision;
    Ok(())
}

/// Reads the objects of a snapshot or backup into the core; returns what it says of itself, and its length.
pub(crate) fn read_snapshot(files: &dyn Files, name: String, core: &Core) -> Result<(FileHeader, u64), OpenError> {
    let mut frames = Frames::open(files, name)?;
    read_ahead(
        |portions| read_objects(&mut frames, portions),
        |changes| changes.into_iter().for_each(|change| core.load(change)),
    )?;
    Ok((frames.header, frames.offset))
}

/// Reads the objects of a whole snapshot.
fn read_objects(frames: &mut Frames<'_>, portions: &mut Portions) -> Result<(), OpenError> {
    let revision = frames.header.revision;
    let mut count = 0;
    loop {
        // A snapshot gets its name only when it is complete, so that nothing in it can be torn.
        let Next::Frame(content) = frames.next()? else {
            return Err(frames.damaged("it is cut off"));
        };
        match content.split_first() {
            Some((&OBJECTS, changes)) => frames.changes(changes, |change| {
                if change.modified > revision || change.content.is_none() {
                    return Err("it has an object that does not belong in it");
                }
                count += 1;
                portions.push(change);
                Ok(())
            })?,
            Some((&SNAPSHOT_END, total)) if Reader::new(total).number() == Ok(count) => {
                frames.skip(&content);
                break;
            }
            Some((&SNAPSHOT_END, _)) => return Err(frames.damaged("it does not have as many objects as it says")),
            _ => return Err(frames.damaged("it has a frame of another kind")),
        }
        frames.skip(&content);
    }
    Ok(())
}

fn load_log(
    files: &dyn Files,
    begins_after: Revision,
    last: bool,
    core: &Core,
    found: &mut Found,
) -> Result<(), OpenError> {
    let mut frames = Frames::open(files, log_name(begins_after))?;
    let overlaps_snapshot = found.logs.is_empty() && begins_after <= found.revision;
    if frames.header.revision != begins_after {
        return Err(frames.damaged("it is the log of another revision"));
    }
    if !overlaps_snapshot && begins_after != found.revision {
        return Err(frames.damaged("the revisions before it are missing, a file was removed"));
    }
    let snapshot = found.revision;
    let newest = read_ahead(|portions| read_log(&mut frames, snapshot, last, portions), |changes| core.apply(changes))?;
    found.revision = found.revision.max(newest);
    found.epoch = Some(frames.header.epoch);
    found.logs.push(LogFile { begins_after, newest, end: frames.offset });
    Ok(())
}

/// Reads a log up to its end and returns its newest revision. Changes that the snapshot has are left out.
fn read_log(
    frames: &mut Frames<'_>,
    snapshot: Revision,
    last: bool,
    portions: &mut Portions,
) -> Result<Revision, OpenError> {
    let mut newest = frames.header.revision;
    loop {
        let content = match frames.next()? {
            Next::Frame(content) => content,
            Next::End => break,
            Next::Torn if last => {
                let (file, byte) = (frames.files.describe(&frames.name), frames.offset);
                tracing::warn!(%file, byte, "the last write is cut off, as a crash leaves it, and does not count");
                break;
            }
            Next::Torn | Next::Damaged(_) => return Err(frames.damaged("it is cut off, and a later log exists")),
        };
        let Some((&CHANGES, changes)) = content.split_first() else {
            return Err(frames.damaged("it has a frame of another kind"));
        };
        frames.changes(changes, |change| {
            if change.modified != newest.plus(1) {
                return Err("its revisions do not follow each other");
            }
            newest = change.modified;
            if change.modified > snapshot {
                portions.push(change);
            }
            Ok(())
        })?;
        frames.skip(&content);
    }
    Ok(newest)
}
