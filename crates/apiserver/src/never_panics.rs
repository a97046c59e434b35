//! Whatever comes from outside is answered or refused; nothing of it ends the process.

use proptest::prelude::*;

use crate::{
    json,
    page::Page,
    request::{self, Accepted, Forms, Query},
    selector::{FieldSelector, LabelSelector},
    yaml,
};

/// Text with more of the characters that mean something somewhere.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("/".to_owned()),
        Just("..".to_owned()),
        Just("%2F".to_owned()),
        Just("/spaces/".to_owned()),
        Just("/api/v1/namespaces/".to_owned()),
        Just(" in (".to_owned()),
        Just("!=".to_owned()),
        Just("&a: *a".to_owned()),
        Just("- {".to_owned()),
        "[ -~]{0,6}",
        any::<String>(),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn text_from_outside(text in text()) {
        let _ = request::parse(&text);
        let _ = Query::parse(&text).integer("limit");
        let _ = Accepted::negotiate(&text, "", Forms { protobuf: true, table: true });
        let _ = Accepted::discovery(&text);
        let _ = LabelSelector::parse(&text);
        let _ = FieldSelector::parse(&text);
        let _ = Page::decode(&text);
        let _ = json::parse(text.as_bytes());
        let _ = yaml::to_json(text.as_bytes());
    }

    #[test]
    fn bytes_from_outside(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = json::parse(&bytes);
        let _ = yaml::to_json(&bytes);
    }

    #[test]
    fn yaml_is_read_back_as_it_was_written(text in any::<String>(), number in any::<i64>()) {
        let value = serde_json::json!({"a": text, "b": [number, {"c": null}]});
        let read = yaml::to_json(&yaml::write(&value)).unwrap();
        prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&read.json).unwrap(), value);
    }
}
