//! Files in memory that behave as a disk does when the power goes: what was not synced is kept in part or not at all.

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::Mutex;

use super::files::{File, Files};

/// The unit in which a disk writes or does not write.
const SECTOR: usize = 512;

/// When the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// At this sync, before it has done anything.
    Before(usize),
    /// At this sync, after it has made everything durable but before anyone was told.
    After(usize),
}

/// A directory in memory.
#[derive(Clone, Default)]
pub(crate) struct Simulated(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    contents: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since they were last synced.
    renamings: Vec<Naming>,
    syncs: usize,
    cut: Option<Cut>,
    powerless: bool,
    /// Bytes there is room for.
    room: Option<usize>,
    failing_sync: Option<usize>,
    random: Random,
}

#[derive(Clone)]
enum Naming {
    Set(String, usize),
    Unset(String),
}

/// What a file has, and what of it is durable.
#[derive(Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// A small generator: the same seed gives the same faults.
#[derive(Clone, Default)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

impl Simulated {
    /// A directory that has these files, durably.
    pub(crate) fn with_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut world = World::default();
        for (name, bytes) in files {
            world.durable_names.insert(name, world.contents.len());
            world.contents.push(Content { now: bytes.clone(), durable: bytes, unsynced: Vec::new() });
        }
        world.names = world.durable_names.clone();
        Self(Arc::new(Mutex::new(world)))
    }

    /// The power goes at this point; `seed` decides what of the unsynced writes reaches the disk.
    #[cfg(test)]
    pub(crate) fn cut_power(&self, cut: Cut, seed: u64) {
        let mut world = self.0.lock();
        world.cut = Some(cut);
        world.random = Random(seed);
    }

    /// Syncs so far.
    #[cfg(test)]
    pub(crate) fn syncs(&self) -> usize {
        self.0.lock().syncs
    }

    /// Leaves room for this many bytes in all; `None` is enough for everything.
    #[cfg(test)]
    pub(crate) fn set_room(&self, room: Option<usize>) {
        self.0.lock().room = room;
    }

    /// Lets the sync after this many fail.
    #[cfg(test)]
    pub(crate) fn fail_sync(&self, after: usize) {
        let mut world = self.0.lock();
        world.failing_sync = Some(world.syncs + after + 1);
    }

    /// What a machine that starts again finds.
    #[cfg(test)]
    pub(crate) fn survivors(&self) -> BTreeMap<String, Vec<u8>> {
        let world = self.0.lock();
        let names = if world.powerless { &world.durable_names } else { &world.names };
        let bytes = |id: usize| match world.powerless {
            true => world.contents[id].durable.clone(),
            false => world.contents[id].now.clone(),
        };
        names.iter().map(|(name, id)| (name.clone(), bytes(*id))).collect()
    }
}

impl World {
    fn alive(&self) -> io::Result<()> {
        if self.powerless { Err(io::Error::other("no power")) } else { Ok(()) }
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Runs a sync, unless the power goes or the disk fails.
    fn sync(&mut self, work: impl FnOnce(&mut Self)) -> io::Result<()> {
        self.alive()?;
        self.syncs += 1;
        if self.failing_sync == Some(self.syncs) {
            return Err(io::Error::other("the disk reports an error"));
        }
        match self.cut {
            Some(Cut::Before(point)) if point == self.syncs => {
                self.lose_power();
                self.alive()
            }
            Some(Cut::After(point)) if point == self.syncs => {
                work(self);
                self.lose_power();
                self.alive()
            }
            _ => {
                work(self);
                Ok(())
            }
        }
    }

    /// Keeps of what was not synced whatever the random numbers say: names in order, sectors in any.
    fn lose_power(&mut self) {
        self.powerless = true;
        let kept = self.random.below(self.renamings.len() as u64 + 1) as usize;
        for naming in self.renamings.drain(..).take(kept) {
            naming.apply(&mut self.durable_names);
        }
        for content in &mut self.contents {
            for change in content.unsynced.drain(..) {
                match change {
                    Change::Length(length) if self.random.below(2) == 0 => content.durable.resize(length, 0),
                    Change::Length(_) => {}
                    Change::Write(offset, bytes) => {
                        // Sometimes nothing, sometimes everything, mostly some sectors.
                        let odds = self.random.below(4);
                        write_some(&mut content.durable, offset, &bytes, || self.random.below(3) < odds);
                    }
                }
            }
        }
    }

    fn take_room(&self, growth: usize) -> io::Result<()> {
        let used: usize = self.names.values().map(|id| self.contents[*id].now.len()).sum();
        match self.room {
            Some(room) if growth > 0 && used + growth > room => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

fn write_some(durable: &mut Vec<u8>, offset: usize, bytes: &[u8], mut lucky: impl FnMut() -> bool) {
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes.len().min((offset + start + 1).next_multiple_of(SECTOR) - offset);
        if lucky() {
            if durable.len() < offset + end {
                durable.resize(offset + end, 0);
            }
            durable[offset + start..offset + end].copy_from_slice(&bytes[start..end]);
        }
        start = end;
    }
}

impl Naming {
    fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set(name, id) => drop(names.insert(name, id)),
            Self::Unset(name) => drop(names.remove(&name)),
        }
    }
}

impl Files for Simulated {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let id = self.0.lock().find(name)?;
        Ok(Box::new(SimulatedFile { world: self.0.clone(), id }))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let mut world = self.0.lock();
        world.alive()?;
        let id = world.contents.len();
        world.contents.push(Content::default());
        world.names.insert(name.to_owned(), id);
        world.renamings.push(Naming::Set(name.to_owned(), id));
        Ok(Box::new(SimulatedFile { world: self.0.clone(), id }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.0.lock();
        world.alive()?;
        let id = world.find(from)?;
        world.names.remove(from);
        world.names.insert(to.to_owned(), id);
        // Both halves of a rename happen together: the new name comes first, so that a prefix never loses the file.
        world.renamings.push(Naming::Set(to.to_owned(), id));
        world.renamings.push(Naming::Unset(from.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.0.lock();
        world.alive()?;
        world.find(name)?;
        world.names.remove(name);
        world.renamings.push(Naming::Unset(name.to_owned()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        self.0.lock().sync(|world| {
            let renamings = std::mem::take(&mut world.renamings);
            renamings.into_iter().for_each(|naming| naming.apply(&mut world.durable_names));
        })
    }

    fn describe(&self, name: &str) -> String {
        name.to_owned()
    }
}

struct SimulatedFile {
    world: Arc<Mutex<World>>,
    id: usize,
}

impl SimulatedFile {
    fn change(&self, growth_to: usize, change: Change) -> io::Result<()> {
        let mut world = self.world.lock();
        world.alive()?;
        let growth = growth_to.saturating_sub(world.contents[self.id].now.len());
        world.take_room(growth)?;
        let content = &mut world.contents[self.id];
        match &change {
            Change::Write(offset, bytes) => write_some(&mut content.now, *offset, bytes, || true),
            Change::Length(length) => content.now.resize(*length, 0),
        }
        content.unsynced.push(change);
        Ok(())
    }
}

impl File for SimulatedFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.world.lock().contents[self.id].now.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let world = self.world.lock();
        let bytes = world.contents[self.id].now.get(offset as usize..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(offset as usize + bytes.len(), Change::Write(offset as usize, bytes.to_vec()))
    }

    fn allocate(&mut self, length: u64) -> io::Result<()> {
        let length = (length as usize).max(self.length()? as usize);
        self.change(length, Change::Length(length))
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.change(length as usize, Change::Length(length as usize))
    }

    fn sync(&mut self) -> io::Result<()> {
        let id = self.id;
        self.world.lock().sync(|world| {
            let content = &mut world.contents[id];
            content.unsynced.clear();
            content.durable = content.now.clone();
        })
    }
}
