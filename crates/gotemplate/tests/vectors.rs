//! What real Go answered for a fixed set of templates, down to the text of every error.

use orrery_gotemplate::{Budget, Data, Limits, Template, to_text};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    template: String,
    /// Which of the maps in `data.json`.
    data: usize,
    output: String,
    error: String,
}

#[test]
fn every_vector_agrees_with_go() {
    let maps: Vec<std::collections::BTreeMap<String, String>> =
        serde_json::from_str(include_str!("../testdata/data.json")).unwrap();
    let maps: Vec<Data> = maps.into_iter().map(Data::from_iter).collect();
    let vectors = include_str!("../testdata/vectors.jsonl");
    let mut count = 0;
    let mut disagreements = Vec::new();
    for line in vectors.lines() {
        let vector: Vector = serde_json::from_str(line).unwrap();
        let (output, error) = answer(&vector.template, &maps[vector.data]);
        // Both refuse endless recursion with the same words, each at its own depth.
        let error = error.replace(&format!("depth ({})", Limits::default().nesting), "depth (100000)");
        if (&output, &error) != (&vector.output, &vector.error) {
            let Vector { template, output: go_output, error: go_error, .. } = &vector;
            disagreements
                .push(format!("{template:?}\n  Go:   {go_output:?} {go_error:?}\n  ours: {output:?} {error:?}"));
        }
        count += 1;
    }
    assert!(count > 2000, "only {count} vectors were found");
    assert!(disagreements.is_empty(), "{} of {count} disagree:\n{}", disagreements.len(), disagreements.join("\n"));
}

fn answer(template: &str, data: &Data) -> (String, String) {
    let mut out = Vec::new();
    let error = match Template::parse("t", template) {
        Err(error) => error.to_string(),
        Ok(template) => match template.execute(data, &mut Budget::default(), &mut out) {
            Err(error) => error.to_string(),
            Ok(()) => String::new(),
        },
    };
    (to_text(&out).into_owned(), error)
}
