//! The bytes of protobuf: numbers of variable length, fields with their wire types, and what Kubernetes says of damaged ones.

/// Why bytes are not the message they should be, in the words of the real server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The bytes end too early.
    #[error("unexpected EOF")]
    End,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length is too large to be one.
    #[error("proto: negative length found during unmarshaling")]
    Length,
    /// A group ends that did not begin.
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    /// A message ends like a group.
    #[error("proto: {0}: wiretype end group for non-group")]
    NoGroup(String),
    /// A field has an impossible number.
    #[error("proto: {message}: illegal tag {number} (wire type {key})")]
    Number {
        /// The type of the message.
        message: String,
        /// The number.
        number: i32,
        /// The number together with the wire type.
        key: u64,
    },
    /// There is no such wire type.
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    /// A field has another wire type than its type says.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    Field {
        /// The wire type.
        wire: u8,
        /// The name of the field in Go.
        field: String,
    },
    /// A value inside is not of its type.
    #[error("{0}")]
    Value(String),
}

/// How the value of a field is laid out.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const LENGTH: u8 = 2;

/// Reads the fields of one message.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

/// The beginning of a field.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) number: u32,
    pub(super) wire: u8,
    /// The message from the key on, for whoever skips the field.
    from: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next field; none at the end. `message` is the name for what is damaged.
    pub(super) fn key(&mut self, message: &str) -> Result<Option<Key<'a>>, Damage> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let from = self.bytes;
        let key = self.varint()?;
        // Only 32 bits of the number count.
        let (number, wire) = ((key >> 3) as i32, (key & 7) as u8);
        if wire == 4 {
            return Err(Damage::NoGroup(message.to_owned()));
        }
        match u32::try_from(number) {
            Ok(number) if number > 0 => Ok(Some(Key { number, wire, from })),
            _ => Err(Damage::Number { message: message.to_owned(), number, key }),
        }
    }

    /// The next field of an entry of a map, where the keys are not looked at closely.
    pub(super) fn entry_key(&mut self) -> Result<Option<Key<'a>>, Damage> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let from = self.bytes;
        let key = self.varint()?;
        Ok(Some(Key { number: (key >> 3) as u32, wire: (key & 7) as u8, from }))
    }

    /// A number of variable length.
    pub(super) fn varint(&mut self) -> Result<u64, Damage> {
        let mut value = 0;
        for (place, byte) in self.bytes.iter().enumerate() {
            if place == 10 {
                return Err(Damage::Overflow);
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                self.bytes = &self.bytes[place + 1..];
                return Ok(value);
            }
        }
        Err(if self.bytes.len() == 10 { Damage::Overflow } else { Damage::End })
    }

    /// Eight bytes.
    pub(super) fn fixed64(&mut self) -> Result<u64, Damage> {
        let (value, rest) = self.bytes.split_first_chunk().ok_or(Damage::End)?;
        self.bytes = rest;
        Ok(u64::from_le_bytes(*value))
    }

    /// Bytes with their length before them.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let length = i64::try_from(self.varint()?).map_err(|_| Damage::Length)?;
        let length = usize::try_from(length).map_err(|_| Damage::Length)?;
        let (value, rest) = self.bytes.split_at_checked(length).ok_or(Damage::End)?;
        self.bytes = rest;
        Ok(value)
    }

    /// Moves behind a field that nobody knows.
    pub(super) fn skip(&mut self, key: Key<'a>) -> Result<(), Damage> {
        self.bytes = key.from;
        let mut depth = 0usize;
        while !self.bytes.is_empty() {
            match (self.varint()? & 7) as u8 {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.fixed64()?),
                LENGTH => drop(self.bytes()?),
                3 => depth += 1,
                4 => depth = depth.checked_sub(1).ok_or(Damage::EndOfGroup)?,
                5 => self.bytes = self.bytes.get(4..).ok_or(Damage::End)?,
                other => return Err(Damage::WireType(other)),
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(Damage::End)
    }
}

/// Writes the beginning of a field.
pub(super) fn write_key(out: &mut Vec<u8>, number: u32, wire: u8) {
    write_varint(out, u64::from(number) << 3 | u64::from(wire));
}

/// Writes a number of variable length.
pub(super) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        // The lower seven bits, and that more follow.
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes a number takes.
pub(super) fn varint_length(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// Writes a field of bytes.
pub(super) fn write_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    write_key(out, number, LENGTH);
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a field whose length is known only afterwards. Most are short: there is room for a length of one byte, and what is longer is moved.
pub(super) fn write_nested(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    write_key(out, number, LENGTH);
    let start = out.len();
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    let room = varint_length(length as u64);
    if room > 1 {
        out.resize(out.len() + room - 1, 0);
        out.copy_within(start + 1..start + 1 + length, start + room);
    }
    let mut rest = length;
    for (place, byte) in out[start..start + room].iter_mut().enumerate() {
        let more = if place + 1 < room { 0x80 } else { 0 };
        *byte = (rest & 0x7f) as u8 | more;
        rest >>= 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out.len(), varint_length(value), "{value}");
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint(), Ok(value));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn long_fields_are_moved_to_make_room_for_their_length() {
        for length in [0, 1, 127, 128, 20_000, 3_000_000] {
            let mut out = b"before".to_vec();
            write_nested(&mut out, 2, |out| out.extend((0..length).map(|at| at as u8)));
            let mut reader = Reader::new(&out[6..]);
            let key = reader.key("").unwrap().unwrap();
            assert_eq!((key.number, key.wire), (2, LENGTH));
            let bytes = reader.bytes().unwrap();
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8) && bytes.len() == length);
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn damage_is_named() {
        let key = |bytes: &[u8]| Reader::new(bytes).key("ConfigMap").map(drop).unwrap_err().to_string();
        assert_eq!(key(&[0x0c]), "proto: ConfigMap: wiretype end group for non-group");
        assert_eq!(key(&[0x02]), "proto: ConfigMap: illegal tag 0 (wire type 2)");
        assert_eq!(key(&[0x80]), "unexpected EOF");
        assert_eq!(key(&[0xff; 12]), "proto: integer overflow");
        let skip = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            let key = reader.key("").unwrap().unwrap();
            reader.skip(key).map_err(|damage| damage.to_string())
        };
        assert_eq!(skip(&[0x0b, 0x08, 0x01, 0x0c]), Ok(()));
        assert_eq!(skip(&[0x0b, 0x08, 0x01]), Err("unexpected EOF".to_owned()));
        assert_eq!(skip(&[0x0e]), Err("proto: illegal wireType 6".to_owned()));
        assert_eq!(skip(&[0x0a, 0x05, 0x01]), Err("unexpected EOF".to_owned()));
        let negative = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(skip(&negative), Err("proto: negative length found during unmarshaling".to_owned()));
    }
}
