//! The files of a data directory, behind two small traits so that tests can lose power.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::FallocateFlags;

use crate::error::OpenError;

/// A directory of files.
pub(crate) trait Files: Send + Sync {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;
    /// Makes a file, or empties the one that is there.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;
    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_names(&self) -> io::Result<()>;
    /// What to call a file in messages.
    fn describe(&self, name: &str) -> String;
}

/// An open file.
pub(crate) trait File: Send {
    fn length(&self) -> io::Result<u64>;
    /// Reads up to the length of `buffer`; less at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes sure that there is room up to this length, filled with zeros where nothing was written.
    fn allocate(&mut self, length: u64) -> io::Result<()>;
    fn set_length(&mut self, length: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory on a disk.
pub(crate) struct Disk {
    path: PathBuf,
    /// Held against other processes while this lives, if the directory is a store's own.
    _lock: Option<fs::File>,
}

const LOCK: &str = "LOCK";
/// Values can be secrets: nobody but the owner may look at them.
const OWN_DIRECTORY: u32 = 0o700;
const OWN_FILE: u32 = 0o600;
/// How long a lock is waited for: a process that was just ended, or a program that was just started by the last owner and
/// has not yet let go of what it inherited, holds it for a moment.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_RETRY: Duration = Duration::from_millis(10);

impl Disk {
    /// A directory that need not be a store's own.
    pub(crate) fn shared(path: &Path) -> Self {
        Self { path: path.to_owned(), _lock: None }
    }

    /// Takes a directory into use, making it if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |action, source| super::io_error(action, &path.to_string_lossy(), source);
        let made = fs::DirBuilder::new().recursive(true).mode(OWN_DIRECTORY).create(path);
        made.map_err(|error| failed("create", error))?;
        let options = fs::File::options().create(true).truncate(false).write(true).mode(OWN_FILE).open(path.join(LOCK));
        let lock = options.map_err(|error| failed("open the lock of", error))?;
        let given_up = Instant::now() + LOCK_PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path: path.to_owned(), _lock: Some(lock) }),
                Err(fs::TryLockError::WouldBlock) if Instant::now() < given_up => std::thread::sleep(LOCK_RETRY),
                Err(fs::TryLockError::WouldBlock) => return Err(OpenError::Locked { path: path.to_owned() }),
                Err(fs::TryLockError::Error(error)) => return Err(failed("lock", error)),
            }
        }
    }
}

impl Files for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let file = fs::File::options().read(true).write(true).open(self.path.join(name))?;
        Ok(Box::new(DiskFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let mut options = fs::File::options();
        let file = options.read(true).write(true).create(true).truncate(true).mode(OWN_FILE);
        Ok(Box::new(DiskFile(file.open(self.path.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        fs::File::open(&self.path)?.sync_all()
    }

    fn describe(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

struct DiskFile(fs::File);

impl File for DiskFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn allocate(&mut self, length: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, length) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                // A sparse tail reads as zeros too; only the early word about a full disk is lost.
                if self.length()? < length { self.0.set_len(length) } else { Ok(()) }
            }
            outcome => outcome.map_err(io::Error::from),
        }
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
