//! What Kubernetes' own code wrote (`oracle/`), for every kind with nothing, everything and something set.

use orrery_apiserver::{
    protobuf::{self, Envelope},
    registry::Registry,
    schema,
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

#[derive(serde::Deserialize)]
struct Recorded {
    how: String,
    json: Box<RawValue>,
    length: usize,
    sha256: String,
}

#[test]
fn the_bytes_are_those_of_kubernetes() {
    let registry = Registry::kubernetes();
    let schemas = registry.schemas();
    let mut differing = Vec::new();
    let all: Vec<Recorded> = crate::cases("protobuf");
    for case in &all {
        let json = case.json.get().as_bytes();
        let (api_version, kind) = schema::type_meta(json).unwrap();
        let name = format!("{api_version} {kind} with {} set", case.how);
        let bytes = protobuf::encode(json).unwrap_or_else(|| panic!("{name} has no form in protobuf"));
        let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if hash != case.sha256 {
            differing.push(format!("{name}: {} bytes, {} recorded", bytes.len(), case.length));
            continue;
        }
        let envelope = Envelope::open(&bytes).unwrap();
        assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), (api_version.as_str(), kind.as_str()));
        let Some(resource) = resource(&registry, &api_version, &kind) else { continue };
        let mut read = protobuf::decode(schemas, resource.schema, envelope.raw).unwrap();
        read["kind"] = kind.into();
        read["apiVersion"] = api_version.into();
        let mut expected = schema::decode(schemas, resource.schema, json).unwrap().object;
        // What is zero and always written is the same as what is not there.
        schema::complete(schemas, resource.schema, &mut read);
        schema::complete(schemas, resource.schema, &mut expected);
        assert_eq!(read, expected, "{name}");
    }
    assert!(all.len() > 200, "the recorded kinds are missing");
    assert!(differing.is_empty(), "{} of {} differ:\n{}", differing.len(), all.len(), differing.join("\n"));
}

fn resource<'a>(
    registry: &'a Registry,
    api_version: &str,
    kind: &str,
) -> Option<&'a std::sync::Arc<orrery_apiserver::registry::Resource>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    registry.kind(group, version, kind)
}
