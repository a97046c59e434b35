//! Checksummed frames in a file, and what to make of a file that does not end with a whole one.
//!
//! A file is a header and then frames. A frame is written at once and then synced, so that only the last frame of the last
//! file can be incomplete: a torn tail. Everything else that does not check is damage.
//!
//! The file system gives zeros for what was never written, in sectors of 512 bytes. A frame is masked so that no part of it
//! within a sector is all zeros. Therefore a frame that lacks a sector was torn, and one that is complete but does not
//! check was damaged after it had been written.

use std::io;

use super::files::File;
use crate::revision::{Epoch, Revision};

/// The format of log and snapshot files. A change that older programs cannot read needs a new number.
pub(crate) const FORMAT: u32 = 1;

/// Bytes of a file's header.
pub(crate) const FILE_HEADER: usize = 48;
/// Bytes before the content of a frame: mark, mask, three spare bytes, length, checksum.
pub(crate) const FRAME_HEADER: usize = 16;
/// Longest frame. What is longer was never written.
const LONGEST: usize = 64 << 20;

const FILE_MARK: &[u8; 8] = b"ORRERYST";
const FRAME_MARK: [u8; 4] = [0xf7, b'O', b'R', 0x1e];
const SECTOR: usize = 512;

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// The format it is written in.
    pub(crate) format: u32,
    /// The epoch it was begun in.
    pub(crate) epoch: Epoch,
    /// The newest revision before it, or in a snapshot, the revision it shows.
    pub(crate) revision: Revision,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER] {
        let mut bytes = [0; FILE_HEADER];
        bytes[..8].copy_from_slice(FILE_MARK);
        bytes[8..12].copy_from_slice(&self.format.to_le_bytes());
        bytes[12..28].copy_from_slice(self.epoch.as_bytes());
        bytes[28..36].copy_from_slice(&self.revision.get().to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..FILE_HEADER - 4]);
        bytes[FILE_HEADER - 4..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header; the problem if it is none. The format is not judged.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let bytes: &[u8; FILE_HEADER] = bytes.first_chunk().ok_or("it is too short for a header")?;
        if !bytes.starts_with(FILE_MARK) {
            return Err("it does not begin as a file of a store");
        }
        if crc32fast::hash(&bytes[..FILE_HEADER - 4]) != number(&bytes[FILE_HEADER - 4..]) {
            return Err("the checksum of its header does not match");
        }
        let mut epoch = [0; 16];
        epoch.copy_from_slice(&bytes[12..28]);
        let mut revision = [0; 8];
        revision.copy_from_slice(&bytes[28..36]);
        Ok(Self {
            format: number(&bytes[8..]),
            epoch: Epoch::from_bytes(epoch),
            revision: Revision::new(u64::from_le_bytes(revision)),
        })
    }
}

/// What the checksums of a file's frames begin with: a frame checks only in its own file.
///
/// Values come from users, and a value may hold the bytes of a frame. It cannot hold one that checks where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u32);

impl FileHeader {
    pub(crate) fn seed(&self) -> Seed {
        Seed(crc32fast::hash(&self.encode()))
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Begins a frame in an empty buffer; its content is appended and then [`seal`]ed.
pub(crate) fn begin(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.resize(FRAME_HEADER, 0);
}

/// Fills in the header of the frame that will be written at `offset`.
pub(crate) fn seal(buffer: &mut [u8], offset: u64, seed: Seed) {
    let length = (buffer.len() - FRAME_HEADER) as u32;
    buffer[..4].copy_from_slice(&FRAME_MARK);
    buffer[8..12].copy_from_slice(&length.to_le_bytes());
    let mask = (0..=u8::MAX).find(|&mask| first_blank_sector(buffer, offset, mask).is_none()).unwrap_or(0);
    buffer[4] = mask;
    apply_mask(&mut buffer[FRAME_HEADER..], mask);
    let checksum = checksum(buffer, offset, seed);
    buffer[12..16].copy_from_slice(&checksum.to_le_bytes());
}

fn apply_mask(content: &mut [u8], mask: u8) {
    if mask != 0 {
        content.iter_mut().for_each(|byte| *byte ^= mask);
    }
}

fn checksum(frame: &[u8], offset: u64, seed: Seed) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed.0);
    hasher.update(&offset.to_le_bytes());
    hasher.update(&frame[..12]);
    hasher.update(&frame[FRAME_HEADER..]);
    hasher.finalize()
}

/// The first part of a frame within a sector that is all zeros once its content is masked.
///
/// The sector that the header begins in is not asked for: the mark is not zero. A header that runs on into the next sector
/// can leave it blank only together with content, so the content's part decides.
fn first_blank_sector(frame: &[u8], offset: u64, mask: u8) -> Option<usize> {
    let mut start = SECTOR - (offset % SECTOR as u64) as usize;
    while start < frame.len() {
        let end = frame.len().min(start + SECTOR);
        let content = start.max(FRAME_HEADER).min(end);
        if frame[start..content].iter().all(|&byte| byte == 0) && frame[content..end].iter().all(|&byte| byte == mask) {
            return Some(start);
        }
        start = end;
    }
    None
}

/// What stands at a place of a file.
pub(crate) enum Next {
    /// A whole frame, its content unmasked.
    Frame(Vec<u8>),
    /// Nothing was ever written from here on.
    End,
    /// A frame that was not completely written when the machine stopped.
    Torn,
    /// Something that was never written like this.
    Damaged(&'static str),
}

/// Reads what stands at `offset` of a file.
pub(crate) fn read(file: &dyn File, offset: u64, seed: Seed) -> io::Result<Next> {
    let mut header = [0; FRAME_HEADER];
    let available = file.read_at(offset, &mut header)?;
    if header[..available].iter().all(|&byte| byte == 0) {
        return after_blank(file, offset, seed);
    }
    if available < FRAME_HEADER {
        return Ok(Next::Torn);
    }
    let marked = header[..4] == FRAME_MARK;
    let length = number(&header[8..]) as usize;
    if !marked || length == 0 || length > LONGEST {
        let problem =
            if marked { "a frame has an impossible length" } else { "there is no frame where one must begin" };
        // The header may lie in two sectors, of which one was never written.
        let split = (SECTOR as u64 - offset % SECTOR as u64) as usize;
        let blank = |part: &[u8]| part.iter().all(|&byte| byte == 0);
        let begun = FRAME_MARK.iter().zip(&header[..split.min(FRAME_HEADER)]).all(|(mark, byte)| mark == byte);
        let torn = split < FRAME_HEADER && (blank(&header[..split]) || (begun && blank(&header[split..])));
        return judge(file, offset, seed, if torn { Next::Torn } else { Next::Damaged(problem) });
    }
    let mut frame = vec![0; FRAME_HEADER + length];
    if file.read_at(offset, &mut frame)? < frame.len() {
        return judge(file, offset, seed, Next::Torn);
    }
    if number(&frame[12..]) == checksum(&frame, offset, seed) {
        let mask = frame[4];
        let mut content = frame.split_off(FRAME_HEADER);
        apply_mask(&mut content, mask);
        return Ok(Next::Frame(content));
    }
    let blank = first_blank_sector(&frame, offset, 0).is_some();
    let verdict = if blank { Next::Torn } else { Next::Damaged("the checksum of a frame does not match") };
    judge(file, offset, seed, verdict)
}

/// The header was never written. Nothing may stand behind it but the rest of the same frame.
fn after_blank(file: &dyn File, offset: u64, seed: Seed) -> io::Result<Next> {
    match first_written(file, offset)? {
        None => Ok(Next::End),
        Some(_) => judge(file, offset, seed, Next::Torn),
    }
}

/// A whole frame behind a bad one proves that the bad one had been synced: then it is damage, whatever it looks like.
fn judge(file: &dyn File, offset: u64, seed: Seed, verdict: Next) -> io::Result<Next> {
    let tail = read_rest(file, offset + 1)?;
    let mut from = 0;
    while let Some(found) = tail[from..].windows(4).position(|window| window == FRAME_MARK) {
        let start = from + found;
        let length = tail.get(start + 8..).map_or(0, number) as usize;
        let whole = tail.get(start..start + FRAME_HEADER + length.min(LONGEST));
        let place = offset + 1 + start as u64;
        if length > 0 && whole.is_some_and(|frame| number(&frame[12..]) == checksum(frame, place, seed)) {
            return Ok(Next::Damaged("a frame does not check, and whole frames follow it"));
        }
        from = start + 1;
    }
    Ok(verdict)
}

fn first_written(file: &dyn File, mut offset: u64) -> io::Result<Option<u64>> {
    let mut block = vec![0; 1 << 16];
    loop {
        let read = file.read_at(offset, &mut block)?;
        if let Some(position) = block[..read].iter().position(|&byte| byte != 0) {
            return Ok(Some(offset + position as u64));
        }
        if read < block.len() {
            return Ok(None);
        }
        offset += read as u64;
    }
}

fn read_rest(file: &dyn File, offset: u64) -> io::Result<Vec<u8>> {
    let mut rest = vec![0; file.length()?.saturating_sub(offset) as usize];
    let read = file.read_at(offset, &mut rest)?;
    rest.truncate(read);
    Ok(rest)
}
