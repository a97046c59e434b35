//! What is around messages: a prefix, and the kind of what follows; and the frames of a watch.

use bytes::Bytes;

use super::{
    encode::Encoder,
    kinds,
    wire::{Damage, LENGTH, Reader, write_bytes, write_key, write_nested, write_varint},
};
use crate::{
    registry::Registry,
    schema::{Shape, StructRef},
};

/// What every body begins with.
const PREFIX: &[u8; 4] = b"k8s\0";

/// A message and the kind it is of.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Its group and version; empty if it does not say.
    pub api_version: String,
    /// Its kind; empty if it does not say.
    pub kind: String,
    /// The message.
    pub raw: &'a [u8],
}

/// Why bytes hold no message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// There are none.
    #[error("empty data")]
    Empty,
    /// They begin with something else.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// They end after the beginning.
    #[error("empty body")]
    NoBody,
    /// What follows is no envelope.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

impl<'a> Envelope<'a> {
    /// Finds the message in a body.
    pub fn open(body: &'a [u8]) -> Result<Self, EnvelopeError> {
        if body.is_empty() {
            return Err(EnvelopeError::Empty);
        }
        let data = body.strip_prefix(PREFIX).ok_or(EnvelopeError::Prefix)?;
        if data.is_empty() {
            return Err(EnvelopeError::NoBody);
        }
        let mut envelope = Self::default();
        let mut reader = Reader::new(data);
        while let Some(key) = reader.key("Unknown")? {
            let name = match key.number {
                1 => "TypeMeta",
                2 => "Raw",
                3 => "ContentEncoding",
                4 => "ContentType",
                _ => {
                    reader.skip(key)?;
                    continue;
                }
            };
            if key.wire != LENGTH {
                return Err(Damage::Field { wire: key.wire, field: name.to_owned() }.into());
            }
            let bytes = reader.bytes()?;
            match key.number {
                1 => envelope.read_type(bytes)?,
                2 => envelope.raw = bytes,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        let mut reader = Reader::new(bytes);
        while let Some(key) = reader.key("TypeMeta")? {
            let (target, field) = match key.number {
                1 => (&mut self.api_version, "APIVersion"),
                2 => (&mut self.kind, "Kind"),
                _ => {
                    reader.skip(key)?;
                    continue;
                }
            };
            if key.wire != LENGTH {
                return Err(Damage::Field { wire: key.wire, field: field.to_owned() });
            }
            *target = String::from_utf8_lossy(reader.bytes()?).into_owned();
        }
        Ok(())
    }
}

/// Writes what stands before a message.
fn begin(out: &mut Vec<u8>, api_version: &str, kind: &str) {
    out.extend_from_slice(PREFIX);
    write_nested(out, 1, |out| {
        write_bytes(out, 1, api_version.as_bytes());
        write_bytes(out, 2, kind.as_bytes());
    });
}

/// Writes what stands after a message: that it is neither packed nor of another type.
fn end(out: &mut Vec<u8>) {
    write_bytes(out, 3, b"");
    write_bytes(out, 4, b"");
}

/// An object in its envelope, out of its JSON, which says what kind it is of; none if the kind has no form in protobuf.
pub fn encode(json: &[u8]) -> Option<Vec<u8>> {
    let registry = Registry::kubernetes();
    let mut encoder = Encoder::new(registry.schemas());
    encoder.read(json);
    let (api_version, kind) = (encoder.member(json, "apiVersion"), encoder.member(json, "kind"));
    let schema = kinds::find(&api_version, &kind)?;
    let mut out = Vec::with_capacity(json.len() + 64);
    begin(&mut out, &api_version, &kind);
    write_nested(&mut out, 2, |out| encoder.write_read(schema, json, out));
    end(&mut out);
    Some(out)
}

/// Writes an event of a watch about an object that is given as JSON. What has no form in protobuf is left out.
pub fn write_event(out: &mut Vec<u8>, event: &str, json: &[u8]) {
    let Some(object) = encode(json) else { return };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write_bytes(out, 1, event.as_bytes());
    write_nested(out, 2, |out| write_bytes(out, 1, &object));
    let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// A list that is written object by object. Its length stands before it, so that nothing can be sent until all of it is there.
pub(crate) struct List {
    registry: std::sync::Arc<Registry>,
    api_version: String,
    kind: String,
    item: StructRef,
    metadata: StructRef,
    /// The numbers of the metadata and the items.
    numbers: (u32, u32),
    pieces: Vec<Bytes>,
    piece: Vec<u8>,
    length: usize,
}

impl List {
    /// How many bytes are kept together.
    const PIECE: usize = 64 << 10;

    /// A list of a kind; none if it has no form in protobuf.
    pub(crate) fn new(api_version: &str, kind: &str) -> Option<Self> {
        let registry = Registry::kubernetes();
        let described = registry.schemas().get(kinds::find(api_version, kind)?);
        let field = |name: &str| {
            let field = described.field(name)?;
            let ty = if let Shape::List(item) = &field.ty.shape { item } else { &field.ty };
            let Shape::Struct(reference) = ty.shape else { return None };
            Some((reference, field.protobuf.first()?.1))
        };
        let ((metadata, metadata_number), (item, item_number)) = (field("metadata")?, field("items")?);
        Some(Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            item,
            metadata,
            numbers: (metadata_number, item_number),
            pieces: Vec::new(),
            piece: Vec::new(),
            length: 0,
            registry: registry.clone(),
        })
    }

    /// Adds objects, each as JSON, until a piece is full; false when there are no more.
    pub(crate) fn fill(&mut self, mut next: impl FnMut(&mut Vec<u8>) -> bool) -> bool {
        let registry = self.registry.clone();
        let mut encoder = Encoder::new(registry.schemas());
        let mut json = Vec::new();
        // With room for the object that goes beyond it.
        self.piece.reserve_exact(Self::PIECE + Self::PIECE / 8);
        while self.piece.len() < Self::PIECE {
            json.clear();
            if !next(&mut json) {
                return false;
            }
            write_nested(&mut self.piece, self.numbers.1, |out| encoder.write(self.item, &json, out));
        }
        self.flush();
        true
    }

    fn flush(&mut self) {
        let piece = std::mem::take(&mut self.piece);
        self.length += piece.len();
        self.pieces.push(piece.into());
    }

    /// The whole list, with its metadata as JSON.
    pub(crate) fn finish(mut self, metadata: &[u8]) -> Vec<Bytes> {
        self.flush();
        let (mut first, mut last, mut own) = (Vec::new(), Vec::new(), Vec::new());
        let registry = self.registry.clone();
        write_nested(&mut own, self.numbers.0, |out| {
            Encoder::new(registry.schemas()).write(self.metadata, metadata, out)
        });
        begin(&mut first, &self.api_version, &self.kind);
        write_key(&mut first, 2, LENGTH);
        write_varint(&mut first, (self.length + own.len()) as u64);
        let before = self.numbers.0 < self.numbers.1;
        if before { &mut first } else { &mut last }.extend(own);
        end(&mut last);
        let mut all = vec![first.into()];
        all.append(&mut self.pieces);
        all.push(last.into());
        all
    }
}
