//! Any properties and bytes as an event of OCM's dialect: no panic, and what can be read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orrery_works::{Codec, Dialect, Packet};

const TOPICS: [&str; 4] = [
    "sources/hub1/clusters/cluster1/sourceevents",
    "sources/hub1/clusters/cluster1/agentevents",
    "clusters/cluster1/agentbroadcast",
    "sources/hub1/sourcebroadcast",
];

/// The names a property can have; the fuzzer chooses by number and makes up the value.
const NAMES: [&str; 17] = [
    "ce-specversion",
    "ce-id",
    "ce-source",
    "ce-type",
    "ce-time",
    "ce-resourceid",
    "ce-resourceversion",
    "ce-deletiontimestamp",
    "ce-clustername",
    "ce-originalsource",
    "ce-sequenceid",
    "ce-statushash",
    "ce-metadata",
    "ce-epoch",
    "ce-othersources",
    "ce-listedafter",
    "ce-listedupto",
];

fuzz_target!(|input: (u8, Vec<(u8, String)>, Vec<u8>)| {
    let (topic, properties, payload) = input;
    let name = |number: u8| NAMES[usize::from(number) % NAMES.len()].into();
    let packet = Packet {
        topic: TOPICS[usize::from(topic) % TOPICS.len()].to_owned(),
        properties: properties.into_iter().map(|(number, value)| (name(number), value.into())).collect(),
        payload: payload.into(),
        content_type: None,
    };
    orrery_works::codec::check_round_trip(&Codec::of(Dialect::Ocm), &packet);
});
