//! Any bytes through the functions and the YAML editor: nothing panics, exit 0 comes with a list, an untouched document keeps
//! its bytes, and an edited one can be read again and says what was edited.

#![no_main]

use libfuzzer_sys::fuzz_target;
use orrery_krm::{Context, ResourceList, functions, process, yaml::Stream};

fuzz_target!(|data: &[u8]| {
    let context = Context { now: "2026-11-16T02:00:00Z".to_owned(), pools: Vec::new() };
    for function in functions::all() {
        let outcome = process(*function, data, &context);
        assert!(outcome.exit != 0 || ResourceList::parse(outcome.stdout.as_bytes()).is_ok(), "{}", outcome.stdout);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(stream) = Stream::parse(text) else { return };
    for mut document in stream.documents {
        assert!(text.contains(&document.to_text()));
        if !document.root().is_map() {
            continue;
        }
        let first = document.root().entries().next().map(|(key, _)| key.to_owned());
        document.root_mut().set("added by the fuzzer", "x: y");
        let removed = first.filter(|key| document.root_mut().remove(key));
        let after = document.to_text();
        let read = Stream::parse(after.as_str()).unwrap_or_else(|error| panic!("{error}\n{after}"));
        let root = read.documents[0].root();
        assert_eq!(root.text(&["added by the fuzzer"]), Some("x: y"), "{after}");
        if let Some(key) = removed {
            assert!(root.get(&key).is_none(), "{after}");
        }
    }
});
