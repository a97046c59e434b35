//! How a change is written as bytes: for the log, for snapshots and as a value in etcd.
//!
//! Numbers are LEB128; text and bytes are preceded by their length. Reading never panics, whatever the bytes.

use crate::{
    batch::{Content, Segment},
    core::Change,
    key::Key,
    object::Object,
    revision::Revision,
};

/// Why bytes are not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("it ends in the middle of {0}")]
    Short(&'static str),
    #[error("{0} is not what was ever written")]
    Invalid(&'static str),
}

/// Appends a committed change.
pub(crate) fn write_change(change: &Change, out: &mut Vec<u8>) {
    write_number(change.modified.get(), out);
    let created = change.content.as_ref().map_or(Revision::ZERO, |(created, _)| *created);
    write_number(created.get(), out);
    write_bytes(change.key.as_str().as_bytes(), out);
    if let Some((_, content)) = &change.content {
        write_content(content, out);
    }
}

/// Appends a stored object as the change that wrote it.
pub(crate) fn write_object(object: &Object, out: &mut Vec<u8>) {
    write_number(object.modified().get(), out);
    write_number(object.created().get(), out);
    write_bytes(object.key().as_str().as_bytes(), out);
    let labels = object.labels();
    write_pairs(labels.len(), labels.iter(), out);
    write_list(object.owners().count(), object.owners().map(str::as_bytes), out);
    write_bytes(object.head(), out);
    write_segments(object.value().segments_with_sharing(), out);
}

/// Appends content alone.
pub(crate) fn write_content(content: &Content, out: &mut Vec<u8>) {
    let labels = content.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    write_pairs(content.labels.len(), labels, out);
    write_list(content.owners.len(), content.owners.iter().map(String::as_bytes), out);
    write_bytes(&content.head, out);
    write_segments(content.value.iter().map(|segment| (&*segment.bytes, segment.shared)), out);
}

fn write_pairs<'a>(count: usize, pairs: impl Iterator<Item = (&'a str, &'a str)>, out: &mut Vec<u8>) {
    write_number(count as u64, out);
    for (key, value) in pairs {
        write_bytes(key.as_bytes(), out);
        write_bytes(value.as_bytes(), out);
    }
}

fn write_list<'a>(count: usize, items: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    write_number(count as u64, out);
    items.for_each(|item| write_bytes(item, out));
}

fn write_segments<'a>(segments: impl ExactSizeIterator<Item = (&'a [u8], bool)>, out: &mut Vec<u8>) {
    write_number(segments.len() as u64, out);
    for (bytes, shared) in segments {
        out.push(u8::from(shared));
        write_bytes(bytes, out);
    }
}

/// Appends bytes after their length.
pub(crate) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a number, seven bits a byte, lowest first.
pub(crate) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what was written, from the front.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn change(&mut self) -> Result<Change, DecodeError> {
        let modified = Revision::new(self.number()?);
        let created = Revision::new(self.number()?);
        let key = Key::parse(self.text("a key")?).map_err(|_| DecodeError::Invalid("a key"))?;
        if modified == Revision::ZERO || created > modified {
            return Err(DecodeError::Invalid("a revision"));
        }
        let content = if created == Revision::ZERO { None } else { Some((created, self.content()?)) };
        Ok(Change { key, modified, content })
    }

    pub(crate) fn content(&mut self) -> Result<Content, DecodeError> {
        let mut content = Content::default();
        for _ in 0..self.number()? {
            content.labels.push((self.text("a label")?.to_owned(), self.text("a label")?.to_owned()));
        }
        for _ in 0..self.number()? {
            content.owners.push(self.text("an owner")?.to_owned());
        }
        content.head = self.bytes("a head")?.to_vec();
        for _ in 0..self.number()? {
            let shared = match self.take(1, "a segment")? {
                [0] => false,
                [1] => true,
                _ => return Err(DecodeError::Invalid("a segment")),
            };
            content.value.push(Segment { bytes: self.bytes("a segment")?.to_vec(), shared });
        }
        Ok(content)
    }

    pub(crate) fn number(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let &[byte] = self.take(1, "a number")? else { break };
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Invalid("a number"))
    }

    pub(crate) fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(self.number()?).map_err(|_| DecodeError::Short(what))?;
        self.take(length, what)
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes(what)?).map_err(|_| DecodeError::Invalid(what))
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Short(what))?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changes() -> impl Strategy<Value = Change> {
        let segment = (prop::collection::vec(any::<u8>(), 0..40), any::<bool>())
            .prop_map(|(bytes, shared)| Segment { bytes, shared });
        let content = (
            prop::collection::btree_map("[a-z./]{1,9}", "[a-z]{0,9}", 0..6),
            prop::collection::vec("[0-9a-f]{8}", 0..3),
            prop::collection::vec(any::<u8>(), 0..20),
            prop::collection::vec(segment, 0..4),
        )
            .prop_map(|(labels, owners, head, value)| Content {
                labels: labels.into_iter().collect(),
                owners,
                head,
                value,
            });
        (1..u64::MAX, any::<u64>(), "[a-z]{0,4}/[a-z]{1,4}/[a-z]{1,4}/[a-z]{0,4}/[a-z]{1,9}", prop::option::of(content))
            .prop_map(|(modified, created, key, content)| Change {
                key: Key::parse(&key).unwrap(),
                modified: Revision::new(modified),
                content: content.map(|content| (Revision::new(created % modified + 1), content)),
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(change in changes()) {
            let mut bytes = Vec::new();
            write_change(&change, &mut bytes);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.change(), Ok(change.clone()));
            prop_assert!(reader.is_empty());
            for cut in 0..bytes.len() {
                prop_assert!(Reader::new(&bytes[..cut]).change().is_err());
            }
        }

        #[test]
        fn objects_are_written_as_the_changes_that_made_them(change in changes()) {
            let mut expected = Vec::new();
            write_change(&change, &mut expected);
            if let Some((created, content)) = change.content {
                let object = crate::object::Maker::default().make(change.key, created, change.modified, content);
                let mut bytes = Vec::new();
                write_object(&object, &mut bytes);
                prop_assert_eq!(bytes, expected);
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&bytes);
            while reader.change().is_ok() {}
        }
    }
}
