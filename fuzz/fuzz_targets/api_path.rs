//! Any address with any method: answered or refused, never a panic.
#![no_main]

use http::{Method, Uri};
use libfuzzer_sys::fuzz_target;

const METHODS: [Method; 7] =
    [Method::GET, Method::PUT, Method::POST, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];

fuzz_target!(|input: (u8, &str)| {
    let (method, address) = input;
    let Ok(uri) = format!("/{address}").parse::<Uri>() else { return };
    let method = METHODS[usize::from(method) % METHODS.len()].clone();
    orrery_fuzz::send(method, uri, "application/json", b"");
});
