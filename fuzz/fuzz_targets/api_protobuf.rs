//! Any bytes as a message of any kind: never a panic, and what is read is read again from what is written of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orrery_apiserver::{
    protobuf::{self, Encoder, Envelope},
    registry::Registry,
};

fuzz_target!(|input: (u16, &[u8])| {
    let (number, bytes) = input;
    let raw = Envelope::open(bytes).map_or(bytes, |envelope| envelope.raw);
    let registry = Registry::kubernetes();
    let schemas = registry.schemas();
    let versions = registry.groups().iter().flat_map(|group| &group.versions);
    let kinds: Vec<_> = versions.flat_map(|version| &version.resources).collect();
    let schema = kinds[usize::from(number) % kinds.len()].schema;
    let Ok(object) = protobuf::decode(schemas, schema, raw) else { return };
    let mut written = Vec::new();
    Encoder::new(schemas).write(schema, object.to_string().as_bytes(), &mut written);
    assert_eq!(protobuf::decode(schemas, schema, &written), Ok(object));
    // Bytes that are no JSON are not written by anybody, but do no harm.
    Encoder::new(schemas).write(schema, bytes, &mut written);
});
