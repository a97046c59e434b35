//! Any bytes as an event of the document's dialect: no panic, and what can be read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orrery_works::{Codec, Packet};

const TOPICS: [&str; 4] = [
    "/sources/hub1/clusters/cluster1/manifests",
    "/sources/hub1/clusters/cluster1/manifestsstatus",
    "/sources/resync/cluster1/manifests",
    "/sources/hub1/resync/clusters/manifestsstatus",
];

fuzz_target!(|input: (u8, &[u8])| {
    let (topic, payload) = input;
    let topic = TOPICS[usize::from(topic) % TOPICS.len()].to_owned();
    let packet = Packet { topic, payload: payload.to_vec().into(), ..Packet::default() };
    orrery_works::codec::check_round_trip(&Codec::seed(), &packet);
});
