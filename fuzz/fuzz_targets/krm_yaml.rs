//! Any bytes through the YAML reader and a function: nothing panics, an untouched document keeps its bytes, an edited one
//! can be read again and says what was edited, and the same edit once more changes nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use orrery_krm::{Context, Function, FunctionError, ResourceList, process, yaml::Stream};

struct Label;

impl Function for Label {
    fn name(&self) -> &'static str {
        "label"
    }

    fn about(&self) -> &'static str {
        "Sets a label."
    }

    fn run(&self, list: &mut ResourceList, _: &Context) -> Result<(), FunctionError> {
        for item in &mut list.items {
            item.set_label("seen", "true");
            item.remove(&["status"]);
        }
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let once = process(&Label, data, &Context::default());
    if once.exit == 0 {
        let twice = process(&Label, once.stdout.as_bytes(), &Context::default());
        assert_eq!((twice.exit, &twice.stdout), (0, &once.stdout));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(stream) = Stream::parse(text) else { return };
    for mut document in stream.documents {
        assert!(text.contains(&document.to_text()));
        if document.root().is_map() {
            document.root_mut().set("added by the fuzzer", "x: y");
            let after = document.to_text();
            let read = Stream::parse(after.as_str()).expect("what was written can be read");
            assert_eq!(read.documents[0].root().text(&["added by the fuzzer"]), Some("x: y"));
        }
    }
});
