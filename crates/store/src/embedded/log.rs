//! Writing: one frame per group of changes, one sync per frame, a new file now and then.

use std::{io, sync::Arc, thread::JoinHandle};

use parking_lot::Mutex;

use super::{
    Sizes, UNFINISHED,
    files::{File, Files},
    frame::{self, FILE_HEADER, FORMAT, FileHeader, Seed},
    io_error, log_name,
    replay::{CHANGES, Found, LogFile},
    snapshot::{self, Snapshot},
};
use crate::{
    codec,
    core::{Change, Core},
    error::OpenError,
    revision::{Epoch, Revision},
    sequencer::{Log, LogError},
};

/// A buffer larger than this is given back after its group.
const BUFFER_KEPT: usize = 1 << 20;

/// The log that is being written.
pub(crate) struct WriteLog {
    files: Arc<dyn Files>,
    sizes: Sizes,
    epoch: Epoch,
    revision: Revision,
    segment: Segment,
    /// Closed log files, oldest first; the snapshot thread removes those it makes superfluous.
    closed: Arc<Mutex<Vec<LogFile>>>,
    snapshot: Arc<Mutex<Option<Snapshot>>>,
    snapshotting: Option<JoinHandle<()>>,
    buffer: Vec<u8>,
    counted: Counted,
}

/// What was written since the counters were last told.
#[derive(Default)]
struct Counted {
    syncs: u64,
    bytes: u64,
}

/// The file that is being written.
struct Segment {
    name: String,
    file: Box<dyn File>,
    begins_after: Revision,
    seed: Seed,
    end: u64,
    allocated: u64,
    /// See [`Sizes::allocation`].
    allocation: u64,
}

impl WriteLog {
    /// Goes on behind what was found: cuts the torn tail, removes leftovers, or begins an empty store.
    pub(crate) fn begin(files: Arc<dyn Files>, found: Found, sizes: Sizes) -> Result<Self, OpenError> {
        let epoch = match found.epoch {
            Some(epoch) => epoch,
            None => Epoch::random()?,
        };
        for name in found.leftovers {
            files.remove(&name).map_err(|error| io_error("remove", &files.describe(&name), error))?;
        }
        let mut logs = found.logs;
        let segment = match logs.pop() {
            Some(last) => Segment::reopen(&*files, last, sizes.allocation)?,
            None => {
                let name = log_name(found.revision);
                Segment::create(&*files, epoch, found.revision, sizes.allocation)
                    .map_err(|error| io_error("create", &files.describe(&name), error))?
            }
        };
        let snapshot = found.snapshot.map(|(revision, bytes)| Snapshot { revision, bytes });
        Ok(Self {
            files,
            sizes,
            epoch,
            revision: found.revision,
            segment,
            closed: Arc::new(Mutex::new(logs)),
            snapshot: Arc::new(Mutex::new(snapshot)),
            snapshotting: None,
            buffer: Vec::new(),
            counted: Counted::default(),
        })
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Closes the file being written and begins the next one.
    fn rotate(&mut self) -> Result<(), LogError> {
        let next =
            Segment::create(&*self.files, self.epoch, self.revision, self.sizes.allocation).map_err(|error| {
                // The old file is whole and is gone on with.
                self.failure("begin a new log", &log_name(self.revision), error)
            })?;
        let old = std::mem::replace(&mut self.segment, next);
        self.closed.lock().push(LogFile { begins_after: old.begins_after, end: old.end });
        Ok(())
    }

    fn failure(&self, action: &str, name: &str, error: io::Error) -> LogError {
        let text = format!("cannot {action} {}: {error}", self.files.describe(name));
        if is_no_room(&error) { LogError::NoRoom(text) } else { LogError::Failed(text) }
    }

    /// How many bytes of log a snapshot at the oldest kept revision would free.
    fn reclaimable(&self, floor: Revision) -> u64 {
        let closed = self.closed.lock();
        let next_begins = closed.iter().skip(1).map(|log| log.begins_after).chain([self.segment.begins_after]);
        let superfluous = closed.iter().zip(next_begins).filter(|(_, next)| *next <= floor);
        superfluous.map(|(log, _)| log.end).sum()
    }

    fn start_snapshot(&mut self, core: &Arc<Core>) {
        let (files, core) = (self.files.clone(), core.clone());
        let (closed, snapshot) = (self.closed.clone(), self.snapshot.clone());
        let (epoch, current) = (self.epoch, self.segment.begins_after);
        let work = move || snapshot::write(&*files, &core, epoch, &closed, current, &snapshot);
        match std::thread::Builder::new().name("store-snapshot".to_owned()).spawn(work) {
            Ok(thread) => self.snapshotting = Some(thread),
            Err(error) => tracing::warn!(%error, "cannot start a thread to write a snapshot, the log grows on"),
        }
    }
}

impl Log for WriteLog {
    fn append(&mut self, changes: &[Change]) -> Result<(), LogError> {
        frame::begin(&mut self.buffer);
        self.buffer.push(CHANGES);
        changes.iter().for_each(|change| codec::write_change(change, &mut self.buffer));
        let segment = &mut self.segment;
        frame::seal(&mut self.buffer, segment.end, segment.seed);
        if let Err(error) = segment.write(&self.buffer) {
            // What was written of the frame must not be taken for a torn one later: the next one goes to its place.
            let cut = self.segment.cut();
            let failure = self.failure("write", &self.segment.name, error);
            return match cut {
                Ok(()) => Err(failure),
                Err(error) => Err(LogError::Failed(format!("{failure:?}, and cannot cut it off again: {error}"))),
            };
        }
        if let Err(error) = self.segment.file.sync() {
            return Err(LogError::Failed(format!("cannot sync {}: {error}", self.files.describe(&self.segment.name))));
        }
        self.segment.end += self.buffer.len() as u64;
        self.counted.syncs += 1;
        self.counted.bytes += self.buffer.len() as u64;
        self.revision = changes.last().map_or(self.revision, |change| change.modified);
        if self.buffer.capacity() > BUFFER_KEPT {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    fn renew_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        // The epoch stands in the header of a file; two files that begin at one revision would have one name.
        if self.segment.begins_after == self.revision {
            let name = self.segment.name.clone();
            self.segment = Segment::create(&*self.files, epoch, self.revision, self.sizes.allocation)
                .map_err(|error| self.failure("begin a new log", &name, error))?;
            self.epoch = epoch;
            return Ok(());
        }
        let old = std::mem::replace(&mut self.epoch, epoch);
        self.rotate().inspect_err(|_| self.epoch = old)
    }

    fn tidy(&mut self, core: &Arc<Core>, compact: bool) -> Result<(), LogError> {
        let counted = std::mem::take(&mut self.counted);
        core.counters.syncs.add(counted.syncs);
        core.counters.written_bytes.add(counted.bytes);
        let full = self.segment.end >= self.sizes.log;
        if !full && !compact {
            return Ok(());
        }
        if full || self.segment.begins_after < self.revision {
            self.rotate()?;
        }
        if self.snapshotting.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let floor = core.with_feed(|feed| feed.history.floor());
        let last = self.snapshot.lock().as_ref().map_or(0, |snapshot| snapshot.bytes);
        if compact || self.reclaimable(floor) >= self.sizes.worth_a_snapshot.max(last) {
            self.start_snapshot(core);
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(thread) = self.snapshotting.take() {
            let _ = thread.join();
        }
    }
}

impl Segment {
    /// Makes a log file. It gets its name when its header is durable.
    fn create(files: &dyn Files, epoch: Epoch, begins_after: Revision, allocation: u64) -> io::Result<Self> {
        let header = FileHeader { format: FORMAT, epoch, revision: begins_after };
        let name = log_name(begins_after);
        let unfinished = format!("{name}{UNFINISHED}");
        let made: io::Result<Box<dyn File>> = (|| {
            let mut file = files.create(&unfinished)?;
            file.allocate(allocation)?;
            file.write_at(0, &header.encode())?;
            file.sync()?;
            files.rename(&unfinished, &name)?;
            files.sync_names()?;
            Ok(file)
        })();
        if made.is_err() {
            let _ = files.remove(&unfinished);
        }
        let end = FILE_HEADER as u64;
        Ok(Self { name, file: made?, begins_after, seed: header.seed(), end, allocated: allocation, allocation })
    }

    /// Goes on with a file behind its last whole frame.
    fn reopen(files: &dyn Files, log: LogFile, allocation: u64) -> Result<Self, OpenError> {
        let name = log_name(log.begins_after);
        let failed = |action| {
            let described = files.describe(&name);
            move |error| io_error(action, &described, error)
        };
        let mut file = files.open(&name).map_err(failed("open"))?;
        let mut bytes = [0; FILE_HEADER];
        file.read_at(0, &mut bytes).map_err(failed("read"))?;
        let header = FileHeader::decode(&bytes).map_err(|problem| OpenError::Damaged {
            file: files.describe(&name),
            offset: 0,
            problem: problem.to_owned(),
        })?;
        file.set_length(log.end).map_err(failed("cut the torn tail of"))?;
        file.sync().map_err(failed("sync"))?;
        let seed = header.seed();
        Ok(Self { name, file, begins_after: log.begins_after, seed, end: log.end, allocated: log.end, allocation })
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        let end = self.end + frame.len() as u64;
        if end > self.allocated {
            let generous = (end + self.allocation).next_multiple_of(self.allocation);
            self.allocated = match self.file.allocate(generous) {
                Ok(()) => generous,
                // What is left may still be enough for this frame.
                Err(error) if is_no_room(&error) => {
                    self.file.allocate(end)?;
                    end
                }
                Err(error) => return Err(error),
            };
        }
        self.file.write_at(self.end, frame)
    }

    /// Takes back what was written behind the last whole frame.
    fn cut(&mut self) -> io::Result<()> {
        self.allocated = self.end;
        self.file.set_length(self.end)
    }
}

fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
