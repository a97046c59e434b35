//! Any text as a template: no panic, no hang, and never more output than the limit allows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orrery_gotemplate::{Budget, Data, Limits, Template};

fuzz_target!(|text: &str| {
    let limits = Limits { template_bytes: 1 << 16, nesting: 50, steps: 5_000, output_bytes: 1 << 16 };
    let Ok(template) = Template::parse_within("t", text, &limits) else {
        return;
    };
    let data = Data::from_iter([("clusterName", &b"virgo"[..]), ("empty", b""), ("raw", b"\xff\xe2\x98a<&'")]);
    let mut out = Vec::new();
    let first = template.execute(&data, &mut Budget::new(&limits), &mut out);
    assert!(out.len() <= limits.output_bytes);
    if Template::is_literal(text) {
        assert_eq!(out, text.as_bytes());
    }
    let mut again = Vec::new();
    assert_eq!(first, template.execute(&data, &mut Budget::new(&limits), &mut again));
    assert_eq!(out, again);
});
