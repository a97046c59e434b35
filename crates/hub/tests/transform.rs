//! A folder for each case under `testdata/transform`: an object, what it meets on its way, and what a cluster gets.
//!
//! `object.yaml` is transformed with `custom-transforms.yaml` (a list), and expanded for `cluster.yaml` (a ManagedCluster) with
//! `properties.yaml` (a ConfigMap), as far as these exist. The result is `expected.yaml`, or the lines of `errors.txt`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use orrery_hub::transform::Manifest;
use orrery_hub::transform::custom::{CustomTransform, Removals};
use orrery_hub::transform::properties::Sources;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

type Strings = BTreeMap<String, String>;

#[derive(Default, Deserialize)]
struct Cluster {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    name: String,
    labels: Option<Strings>,
    annotations: Option<Strings>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    data: Option<Strings>,
    binary_data: Option<Strings>,
}

#[derive(Deserialize)]
struct Custom {
    metadata: Metadata,
    spec: CustomSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomSpec {
    api_group: String,
    resource: String,
    remove: Vec<String>,
}

#[test]
fn every_case_gives_what_is_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/transform");
    let mut cases: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 10, "{cases:?}");
    for case in cases {
        check(&case);
    }
}

fn check(case: &Path) {
    let object: Value = read(case, "object.yaml").expect("an object");
    let cluster: Cluster = read(case, "cluster.yaml").unwrap_or_default();
    let properties: Properties = read(case, "properties.yaml").unwrap_or_default();
    let binary_data = properties.binary_data.map(|data| data.into_iter().map(|(k, v)| (k, decoded(&v))).collect());
    let data = Sources {
        cluster: &cluster.metadata.name,
        labels: cluster.metadata.labels.as_ref(),
        annotations: cluster.metadata.annotations.as_ref(),
        data: properties.data.as_ref(),
        binary_data: binary_data.as_ref(),
    }
    .properties();

    let manifest = Manifest::new(object.clone(), &removals(case, &object));
    match manifest.for_cluster(&cluster.metadata.name, &data) {
        Ok(json) => {
            let found = json.to_value().expect("the manifest is JSON");
            let expected: Value = read(case, "expected.yaml").expect("this case should have failed");
            assert_eq!(found, expected, "{}", case.display());
            assert_eq!(json.as_json(), sorted_json(&expected), "{}", case.display());
        }
        Err(errors) => {
            let expected = fs::read_to_string(case.join("errors.txt")).unwrap_or_default();
            assert_eq!(errors, expected.lines().collect::<Vec<_>>(), "{}", case.display());
        }
    }
}

/// The removals for the kind of the object, whose resource is its lower-case plural in all cases.
fn removals(case: &Path, object: &Value) -> Removals {
    let group =
        object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group);
    let resource = format!("{}s", object["kind"].as_str().expect("a kind").to_lowercase());
    let transforms: Vec<Custom> = read(case, "custom-transforms.yaml").unwrap_or_default();
    let mine: Vec<CustomTransform<'_>> = transforms
        .iter()
        .filter(|custom| custom.spec.api_group == group && custom.spec.resource == resource)
        .map(|custom| CustomTransform { name: &custom.metadata.name, remove: &custom.spec.remove })
        .collect();
    let (removals, verdicts) = Removals::new(&mine);
    assert!(verdicts.iter().all(|verdict| verdict.errors.is_empty()), "{verdicts:?}");
    removals
}

fn read<T: DeserializeOwned>(case: &Path, file: &str) -> Option<T> {
    let text = fs::read_to_string(case.join(file)).ok()?;
    Some(serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}/{file}: {error}", case.display())))
}

/// The one value of `binaryData` in the cases.
fn decoded(base64: &str) -> Vec<u8> {
    assert_eq!(base64, "YmluYXJ5");
    b"binary".to_vec()
}

fn sorted_json(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            let members =
                sorted.into_iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), sorted_json(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(sorted_json).collect::<Vec<_>>().join(",")),
        _ => value.to_string(),
    }
}
