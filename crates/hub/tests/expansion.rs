//! Random objects whose expansion is known by construction. `ORRERY_TRANSFORM_SEED` repeats a run.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use orrery_gotemplate::Data;
use orrery_hub::transform::Manifest;
use orrery_hub::transform::custom::Removals;
use serde_json::{Map, Value, json};

const ROUNDS: usize = 2000;

#[test]
fn random_objects_expand_to_what_they_were_made_from() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = env::var("ORRERY_TRANSFORM_SEED").map_or(now.as_nanos() as u64, |seed| seed.parse().unwrap());
    println!("ORRERY_TRANSFORM_SEED={seed}");
    let mut maker = Maker { state: seed, errors: Vec::new(), expands: false };
    let data = Data::from_iter((0..5).map(|i| (format!("p{i}"), format!("<v{i}>"))));
    let (mut sound, mut broken) = (0, 0);
    for _ in 0..ROUNDS {
        (maker.errors, maker.expands) = (Vec::new(), false);
        let (spec, expanded) = maker.value(".spec", 3);
        let manifest = Manifest::new(object(spec), &Removals::default());
        assert_eq!(manifest.is_customised(), maker.expands);
        match manifest.for_cluster("c", &data) {
            Ok(json) => {
                assert_eq!(json.to_value().unwrap(), object(expanded));
                assert!(maker.errors.is_empty(), "{:?}", maker.errors);
                sound += 1;
            }
            Err(errors) => {
                assert_eq!(errors.len(), maker.errors.len(), "{errors:?}");
                for (error, place) in errors.iter().zip(&maker.errors) {
                    assert!(
                        error.starts_with(&format!("template: c/Thing.example.com(n){place}:")),
                        "{error} at {place}"
                    );
                }
                broken += 1;
            }
        }
    }
    assert!(sound > ROUNDS / 10 && broken > ROUNDS / 10, "{sound} sound, {broken} broken");
}

fn object(spec: Value) -> Value {
    let annotations = json!({"control.kubestellar.io/expand-templates": "true"});
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "n", "annotations": annotations}, "spec": spec})
}

/// Makes values together with what they expand to.
struct Maker {
    state: u64,
    /// The places of the templates that fail, in the order of a walk by sorted keys.
    errors: Vec<String>,
    /// Whether there is any template.
    expands: bool,
}

impl Maker {
    /// Splitmix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % bound
    }

    fn value(&mut self, path: &str, depth: u32) -> (Value, Value) {
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 => (Value::Null, Value::Null),
            1 => {
                let number = json!(self.below(1000));
                (number.clone(), number)
            }
            2..=5 => self.string(path),
            6 | 7 => {
                let items: Vec<_> =
                    (0..self.below(4)).map(|i| self.value(&format!("{path}[{i}]"), depth - 1)).collect();
                let (made, expanded): (Vec<_>, Vec<_>) = items.into_iter().unzip();
                (made.into(), expanded.into())
            }
            _ => {
                let (mut made, mut expanded) = (Map::new(), Map::new());
                // In sorted order, with a key that looks like a template and must stay one.
                for key in ["", "a.b/c", "key", "{{.p1}}"] {
                    if self.below(2) == 0 {
                        let (value, result) = self.value(&format!("{path}.{key}"), depth - 1);
                        made.insert(key.to_owned(), value);
                        expanded.insert(key.to_owned(), result);
                    }
                }
                (made.into(), expanded.into())
            }
        }
    }

    fn string(&mut self, path: &str) -> (Value, Value) {
        let (mut made, mut expanded) = (String::new(), String::new());
        let mut failed = false;
        for _ in 0..self.below(4) {
            let (template, result) = match self.below(30) {
                0 => ("{{.undefined}}".to_owned(), None),
                1 => ("{{ + }}".to_owned(), None),
                2 => ("{{if true}}".to_owned(), None),
                3..=9 => {
                    let i = self.below(5);
                    (format!("{{{{ .p{i} }}}}"), Some(format!("<v{i}>")))
                }
                10 => ("{{/* nothing */}}".to_owned(), Some(String::new())),
                _ => ("text \"{ } }} é\n".to_owned(), Some("text \"{ } }} é\n".to_owned())),
            };
            made += &template;
            failed |= result.is_none();
            expanded += &result.unwrap_or_default();
        }
        self.expands |= made.contains("{{");
        if failed {
            self.errors.push(path.to_owned());
        }
        (made.into(), expanded.into())
    }
}
