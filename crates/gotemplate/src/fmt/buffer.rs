//! Bytes that grow only so far.

/// Output beyond its limit: what was written is incomplete and of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// A byte string that stops growing at its limit and remembers that it did.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    limit: usize,
    overflowed: bool,
}

impl Buffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, overflowed: false }
    }

    pub(crate) fn push(&mut self, byte: u8) {
        self.push_bytes(&[byte]);
    }

    pub(crate) fn push_char(&mut self, c: char) {
        self.push_bytes(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(crate) fn push_repeated(&mut self, byte: u8, count: usize) {
        if self.has_room(count) {
            self.bytes.resize(self.bytes.len() + count, byte);
        }
    }

    /// Whether what was written is of no use any more, so that nothing has to be made for it.
    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Whether so many bytes still fit; if not, the buffer has overflowed.
    pub(crate) fn fits(&mut self, count: usize) -> bool {
        self.has_room(count)
    }

    /// How many more bytes fit.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.bytes.len()
    }

    /// What was written, if all of it fitted.
    pub(crate) fn finish(self) -> Result<Vec<u8>, TooLong> {
        if self.overflowed { Err(TooLong) } else { Ok(self.bytes) }
    }

    fn has_room(&mut self, count: usize) -> bool {
        self.overflowed |= count > self.room();
        !self.overflowed
    }
}
