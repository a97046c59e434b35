//! Messages with bytes changed, cut and repeated: never a panic, and what can be read survives being written.

use orrery_apiserver::{
    protobuf::{self, Encoder, Envelope},
    registry::Registry,
    schema,
};
use proptest::prelude::*;
use serde_json::value::RawValue;

#[derive(serde::Deserialize)]
struct Recorded {
    json: Box<RawValue>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn what_can_be_read_survives(
        number in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
        twice in prop::bool::weighted(0.2),
    ) {
        static RECORDED: std::sync::LazyLock<Vec<Recorded>> = std::sync::LazyLock::new(|| crate::cases("protobuf"));
        let registry = Registry::kubernetes();
        let json = number.get(&RECORDED[..]).json.get();
        let (api_version, kind) = schema::type_meta(json.as_bytes()).unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let Some(resource) = registry.kind(group, version, &kind) else { return Ok(()) };
        let whole = protobuf::encode(json.as_bytes()).unwrap();
        let mut bytes = Envelope::open(&whole).unwrap().raw.to_vec();
        if twice {
            bytes.extend_from_within(..);
        }
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let schemas = registry.schemas();
        let Ok(object) = protobuf::decode(schemas, resource.schema, &bytes) else { return Ok(()) };
        let mut written = Vec::new();
        Encoder::new(schemas).write(resource.schema, object.to_string().as_bytes(), &mut written);
        prop_assert_eq!(protobuf::decode(schemas, resource.schema, &written), Ok(object));
    }
}
