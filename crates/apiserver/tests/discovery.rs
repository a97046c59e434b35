//! Discovery and tables against what the real server was recorded answering.

use std::io::Read;

use orrery_apiserver::{
    discovery::{self, Aggregated},
    registry::Registry,
    table,
};
use serde_json::Value;

fn recorded(file: &str) -> impl Iterator<Item = (String, Value)> {
    let packed = std::fs::read(format!("{}/tests/cases/{file}.jsonl.gz", env!("CARGO_MANIFEST_DIR")))
        .expect("the cases are there");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("the cases are packed");
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect();
    cases.into_iter().flat_map(|case| {
        let name = case["case"].as_str().unwrap_or_default().to_owned();
        case["steps"].as_array().cloned().unwrap_or_default().into_iter().map(move |step| (name.clone(), step))
    })
}

#[test]
fn every_recorded_discovery_document_is_equal() {
    let registry = Registry::kubernetes();
    let mut compared = 0;
    for (name, step) in recorded("verbs") {
        let want = &step["want"]["body"];
        if step["do"]["method"] != "GET"
            || step["want"]["code"] != 200
            || step["do"]["headers"]["Accept"] == "application/yaml"
        {
            continue;
        }
        let path: Vec<&str> = step["do"]["path"].as_str().unwrap_or_default().trim_matches('/').split('/').collect();
        let got = match (want["kind"].as_str().unwrap_or_default(), path.as_slice()) {
            ("APIResourceList", ["apis", group, version]) => {
                let found =
                    registry.group(group).and_then(|group| group.version(version)).expect("the version is known");
                discovery::resources(group, found)
            }
            ("APIGroup", ["apis", group]) if !group.contains('?') => {
                discovery::group(registry.group(group).expect("the group is known"))
            }
            ("APIGroupDiscoveryList", ["api"]) => {
                discovery::aggregated(registry.groups().iter().filter(|group| group.name.is_empty()), Aggregated::V2)
            }
            _ => continue,
        };
        assert_eq!(&got, want, "{name}");
        compared += 1;
    }
    assert!(compared >= 25, "only {compared} documents were compared");
}

/// Writes of objects with the table that was asked for afterwards, in the same case.
#[test]
fn recorded_rows_have_the_cells_of_their_objects() {
    let registry = Registry::kubernetes();
    let (mut equal, mut all, mut differing) = (0, 0, Vec::new());
    for file in ["kinds", "verbs"] {
        let mut objects: Vec<(String, Value)> = Vec::new();
        for (name, step) in recorded(file) {
            let body = &step["want"]["body"];
            if body["kind"] == "Table" && step["do"]["method"] == "GET" {
                for row in body["rows"].as_array().into_iter().flatten() {
                    let names: Vec<&Value> = row["cells"].as_array().into_iter().flatten().collect();
                    let written = objects
                        .iter()
                        .rev()
                        .find(|(case, object)| *case == name && names.contains(&&object["metadata"]["name"]));
                    let Some((_, object)) = written else { continue };
                    let Some(got) = cells(&registry, object) else { continue };
                    all += 1;
                    if got == row["cells"] {
                        equal += 1;
                    } else {
                        differing.push(format!("{name}\n  want {}\n  got  {got}", row["cells"]));
                    }
                }
            } else if body["metadata"]["name"].is_string() {
                objects.push((name, body.clone()));
            }
        }
    }
    differing.iter().for_each(|line| println!("{line}"));
    println!("{equal} of {all} rows are equal");
    assert!(all >= 50, "only {all} rows were compared");
    assert!(all - equal <= 5, "{} rows differ", all - equal);
}

/// The cells of an object, with ages replaced as the recorder replaced them.
fn cells(registry: &Registry, object: &Value) -> Option<Value> {
    let (group, version) =
        object["apiVersion"].as_str()?.split_once('/').unwrap_or(("", object["apiVersion"].as_str()?));
    let resource = registry.kind(group, version, object["kind"].as_str()?)?;
    let made: Vec<Value> = table::cells(resource, object, 1_700_000_000)
        .into_iter()
        .map(|cell| match cell.as_str() {
            Some(text) if is_age(text) => "<age>".into(),
            _ => cell,
        })
        .collect();
    Some(made.into())
}

/// The recorder's times are placeholders, so that ages of recorded objects are unknown.
fn is_age(text: &str) -> bool {
    let unit = |part: &str| {
        part.len() > 1
            && part.ends_with(['s', 'm', 'h', 'd', 'y'])
            && part[..part.len() - 1].bytes().all(|byte| byte.is_ascii_digit())
    };
    text == "<unknown>" || unit(text)
}
