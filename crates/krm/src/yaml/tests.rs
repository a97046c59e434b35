//! Reading, editing and writing YAML, each through one door.

mod generate;
mod lossless;

use super::{Node, Stream, Value};

fn check_read(text: &str, expected: Value) {
    let stream = Stream::parse(text).expect(text);
    assert_eq!(stream.documents.len(), 1, "{text}");
    assert_eq!(Value::from(stream.documents[0].root()), expected, "{text}");
}

/// An edit gives exactly this text, and the same edit once more changes nothing.
fn check_edit<R>(before: &str, edit: impl Fn(&mut Node) -> R, after: &str) {
    let mut document = Stream::parse(before).expect(before).documents.remove(0);
    assert_eq!(document.to_text(), before, "an unchanged document");
    edit(document.root_mut());
    assert_eq!(document.to_text(), after);
    let mut again = Stream::parse(after).expect(after).documents.remove(0);
    edit(again.root_mut());
    assert_eq!(again.to_text(), after, "the edit once more");
}

#[test]
fn a_field_is_set_where_it_stands() {
    check_edit(
        "# top\na: 1  # one\nb:\n    c: 'x' # see\n\nd: e\n",
        |root| root.set_at(&["b", "c"], "y"),
        "# top\na: 1  # one\nb:\n    c: 'y' # see\n\nd: e\n",
    );
}

#[test]
fn a_new_field_goes_to_the_end_in_the_style_around_it() {
    check_edit(
        "a: 1\nb:\n    c: x\n    # foot\nd: e",
        |root| {
            root.set_at(&["b", "f", "g"], 3_i64);
            root.set("z", Value::list(["q"]));
        },
        "a: 1\nb:\n    c: x\n    f:\n        g: 3\n    # foot\nd: e\nz:\n- q\n",
    );
    check_edit(
        "a: {b: 1}\nl:\n  - x\n",
        |root| {
            root.set_at(&["a", "c"], "two, three");
            root.set("m", Value::list(["q"]));
        },
        "a: {b: 1, c: \"two, three\"}\nl:\n  - x\nm:\n  - q\n",
    );
}

#[test]
fn an_empty_value_becomes_a_block() {
    for (before, after) in [
        ("a:\nb: 1\n", "a:\n  k: v\nb: 1\n"),
        ("a: {} # none\nb: 1\n", "a: # none\n  k: v\nb: 1\n"),
        ("a: null\nb: 1\n", "a:\n  k: v\nb: 1\n"),
        ("a: # later\nb: 1\n", "a: # later\n  k: v\nb: 1\n"),
    ] {
        check_edit(before, |root| root.set_at(&["a", "k"], "v"), after);
    }
}

#[test]
fn removing_takes_the_comments_of_the_field_and_no_others() {
    check_edit(
        "# top\n\na: 1\n\n# far\n\n# of b\nb: 2 # b\nc: 3\n",
        |root| root.remove("b"),
        "# top\n\na: 1\n\n# far\n\nc: 3\n",
    );
    check_edit("m:\n  a: 1\nb: 2\n", |root| root.remove_at(&["m", "a"]), "m: {}\nb: 2\n");
    check_edit("m: {a: 1, b: 2, c: 3}\n", |root| root.remove_at(&["m", "a"]), "m: {b: 2, c: 3}\n");
    check_edit("m: {a: 1, b: 2, c: 3}\n", |root| root.remove_at(&["m", "c"]), "m: {a: 1, b: 2}\n");
    check_edit(
        "- a: 1\n  b: 2\n",
        |root| {
            root.elements_mut().for_each(|element| assert!(element.remove("a") || element.get("b").is_some()));
        },
        "- b: 2\n",
    );
}

#[test]
fn block_text_is_read_by_its_marks() {
    for (text, expected) in [
        ("a: |\n  x\n   y\n\n  z\n\n", "x\n y\n\nz\n"),
        ("a: |-\n  x\n", "x"),
        ("a: |+\n  x\n\n", "x\n\n"),
        ("a: >\n  x\n  y\n\n  z\n   i\n  k\n", "x y\nz\n i\nk\n"),
        ("a: |2\n   x\n", " x\n"),
        ("a: >-\n\n  x\n", "\nx"),
    ] {
        check_read(text, Value::map([("a", expected)]));
    }
}

#[test]
fn an_edit_of_an_anchored_value_is_for_its_place_alone() {
    check_edit(
        "a: &x 1 # one\nb: *x\nc: &m {k: v}\nd:\n  <<: *m\n",
        |root| {
            root.set("a", 2_i64);
            root.set_at(&["c", "k"], "w");
        },
        "a: 2 # one\nb: &x 1\nc: &m {k: w}\nd:\n  <<: {k: v}\n",
    );
    check_edit("a: &x {k: v}\nb: *x\nc: *x\n", |root| root.remove("a"), "b: &x {k: v}\nc: *x\n");
}

#[test]
fn a_collection_without_parts_keeps_its_bytes() {
    for text in [
        " ![]",
        "!!seq [ ]\n",
        "[ # none\n]\n",
        "&a { }  # none\n",
        "--- ! {}\n",
        "a: [ ]\nb: !t {\n  }\n",
        "- ! []\n- [ [ ], { } ]\n",
    ] {
        let stream = Stream::parse(text).expect(text);
        assert_eq!(
            format!("{}{}", if text.starts_with("---") { "---" } else { "" }, stream.documents[0].to_text()),
            text
        );
    }
}

#[test]
fn a_document_that_loses_all_its_fields_keeps_its_tag_and_loose_comments() {
    check_edit(
        "# top\n!!map\na: 1\n\n# loose\n\n# of b\nb: 2\n",
        |root| (root.remove("a"), root.remove("b")),
        "# top\n!!map\n{}\n\n# loose\n\n",
    );
    check_edit("{a: 1} # end\n", |root| root.remove("a"), "{} # end\n");
}

#[test]
fn an_entry_without_brackets_in_a_list_keeps_its_bytes() {
    for text in ["[=:]", "[a: b, ? c : d]\n", "l: [[x]: y, {z: 1}: 2]\n"] {
        assert_eq!(Stream::parse(text).expect(text).documents[0].to_text(), text);
    }
    let pair = |edit: fn(&mut Node)| move |root: &mut Node| root.elements_mut().for_each(edit);
    check_edit("[a: b]\n", pair(|pair| _ = pair.set("a", "c")), "[a: c]\n");
    check_edit("[a: b]\n", pair(|pair| _ = pair.set("d", "e")), "[{a: b, d: e}]\n");
    check_edit("[a: b]\n", pair(|pair| _ = pair.remove("a")), "[{}]\n");
}

#[test]
fn tabs_that_kpt_does_not_read_are_told() {
    let refused = |text: &str| Stream::parse(text).expect(text).refused_by_kpt.is_some();
    for text in [
        "a: b\n\t\n",
        "m:\n  a: b\n  \t\n",
        "a: b\n\t# c\n",
        "a: \"b\"\n    \t\n",
        "a:\n    \t\n  b: c\n",
        "a: {b: c}\n\t\n",
        "\t# c\na: b\n",
        "---\n\t\na: b\n",
        "l:\n- a\n\t\n- b\n",
        "a: |\n  x\n\t\nb: c\n",
        "-\ta\n",
        "a: b\n# c\n  \t\n",
    ] {
        assert!(refused(text), "{text:?}");
    }
    for text in [
        "m:\n  a: b\n   \t\n",
        "a: b\n    \t# c\n",
        "l:\n- a\n  \t\n- b\n",
        "a: {\n\t\n b: c}\n",
        "a: b\t\n",
        "a:\t\n  b: c\n",
        "a:\tb\n",
    ] {
        assert!(!refused(text), "{text:?}");
    }
}
