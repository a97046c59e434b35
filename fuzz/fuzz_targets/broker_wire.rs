//! Any bytes as what a client sends to the built-in broker: no panic, and messages go on as they came.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| orrery_broker::check_any(bytes));
