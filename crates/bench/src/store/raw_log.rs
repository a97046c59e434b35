//! What any log needs at the least: an append to a file with room, and a sync.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use anyhow::Context;
use rustix::fs::FallocateFlags;

/// A file that is appended to and synced, with nothing around it.
pub(crate) struct RawLog {
    file: File,
    end: u64,
    allocated: u64,
}

/// Room is made in steps of this size, as a good log does it: syncs are cheaper when the file does not grow.
const ALLOCATION: u64 = 1 << 20;

impl RawLog {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { file, end: 0, allocated: 0 })
    }

    /// Appends and syncs.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let end = self.end + bytes.len() as u64;
        if end > self.allocated {
            self.allocated = end.next_multiple_of(ALLOCATION);
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, self.allocated) {
                // Where there is no such thing the file grows with every write.
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.file.write_all_at(bytes, self.end)?;
        self.end = end;
        self.file.sync_data()
    }
}
