//! Reads the pieces that packets are made of. Whatever is wrong with them is a [`Fault`], never a panic.

use bytes::{Buf, Bytes};

use super::Fault;

/// What is left of a packet.
pub(super) struct Cursor(Bytes);

impl Cursor {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Everything that is left.
    pub(super) fn rest(self) -> Bytes {
        self.0
    }

    pub(super) fn take(&mut self, length: usize) -> Result<Bytes, Fault> {
        if self.0.len() < length {
            return Err(Fault::Malformed("a packet ends too early"));
        }
        Ok(self.0.split_to(length))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1)?.get_u8())
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        Ok(self.take(2)?.get_u16())
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        Ok(self.take(4)?.get_u32())
    }

    /// A number of one to four bytes with seven bits each.
    pub(super) fn variable(&mut self) -> Result<usize, Fault> {
        let (length, bytes) = variable(&self.0)?.ok_or(Fault::Malformed("a packet ends too early"))?;
        self.0.advance(bytes);
        Ok(length)
    }

    /// Bytes with their length in front.
    pub(super) fn binary(&mut self) -> Result<Bytes, Fault> {
        let length = self.u16()?;
        self.take(length.into())
    }

    /// Text with its length in front. It goes on to other clients as it is, so it must be what MQTT calls text.
    pub(super) fn text(&mut self) -> Result<Bytes, Fault> {
        let bytes = self.binary()?;
        match std::str::from_utf8(&bytes) {
            Ok(text) if !text.contains('\0') => Ok(bytes),
            _ => Err(Fault::Malformed("text is not UTF-8")),
        }
    }

    pub(super) fn string(&mut self) -> Result<String, Fault> {
        Ok(String::from_utf8_lossy(&self.text()?).into_owned())
    }
}

/// Reads a variable number and how many bytes it has; `None` while more bytes are needed.
pub(super) fn variable(bytes: &[u8]) -> Result<Option<(usize, usize)>, Fault> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((number, index + 1)));
        }
    }
    match bytes.len() {
        0..=3 => Ok(None),
        _ => Err(Fault::Malformed("a length has more than four bytes")),
    }
}
