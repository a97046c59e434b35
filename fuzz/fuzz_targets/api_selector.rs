//! Any text as a label selector, a field selector and a continue token of a list: never a panic.
#![no_main]

use http::Method;
use libfuzzer_sys::fuzz_target;

const PARAMETERS: [&str; 6] =
    ["labelSelector", "fieldSelector", "continue", "resourceVersion", "limit", "resourceVersionMatch"];

fuzz_target!(|input: (u16, Vec<(u8, &str)>)| {
    let (kind, parameters) = input;
    let mut uri = orrery_fuzz::collection(kind) + "?";
    for (number, text) in parameters.into_iter().take(4) {
        let name = PARAMETERS[usize::from(number) % PARAMETERS.len()];
        uri += &format!("{name}={}&", orrery_fuzz::encoded(text));
    }
    let Ok(uri) = uri.parse() else { return };
    orrery_fuzz::send(Method::GET, uri, "application/json", b"");
});
