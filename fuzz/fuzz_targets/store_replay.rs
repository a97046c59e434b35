//! Replaying a data directory: any bytes are refused or read, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| orrery_store::fuzz_replay(bytes));
