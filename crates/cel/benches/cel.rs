//! How long rules take: `cargo bench -p orrery-cel`. Prints the best of several rounds for each.

use std::{hint, time::Instant};

use orrery_cel::rules::Rules;
use serde_json::{Value, json};

const ROUNDS: usize = 20;
const PER_ROUND: u32 = 200;

fn main() {
    let rules = [
        ("a comparison", "self.replicas <= self.maxReplicas"),
        ("presence", "!has(self.paused) || self.replicas == 0"),
        ("a pattern", "self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"),
        ("all of ten ports", "self.ports.all(p, p.port > 0 && p.port < 65536)"),
        ("unique names of ten ports", "self.ports.all(p, self.ports.exists_one(q, q.name == p.name))"),
        ("a quantity", "quantity(self.memory).isLessThan(quantity('2Gi'))"),
        ("an old value", "self.name == oldSelf.name"),
    ];
    let ports: Vec<Value> =
        (0..10).map(|number| json!({"name": format!("p{number}"), "port": 8000 + number})).collect();
    let object = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {
        "replicas": 3, "maxReplicas": 5, "name": "front-end", "memory": "512Mi", "ports": ports,
    }});
    for (what, rule) in rules {
        let schema = schema(rule);
        let compiled = Rules::compile(&schema);
        assert!(compiled.problems("").is_empty(), "{:?}", compiled.problems(""));
        assert!(compiled.validate(&object, Some(&object)).failures.is_empty(), "{rule}");
        let run = best(|| drop(hint::black_box(compiled.validate(&object, Some(&object)))));
        let compile = best(|| drop(hint::black_box(Rules::compile(&schema))));
        println!("{what:<28} check {run:>8.2} us   compile {compile:>8.2} us");
    }
}

fn best(mut run: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        (0..PER_ROUND).for_each(|_| run());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(PER_ROUND)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn schema(rule: &str) -> Value {
    json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": [{"rule": rule}],
        "properties": {
            "replicas": {"type": "integer"}, "maxReplicas": {"type": "integer"}, "paused": {"type": "boolean"},
            "name": {"type": "string", "maxLength": 63}, "memory": {"type": "string", "maxLength": 20},
            "ports": {"type": "array", "maxItems": 10, "items": {"type": "object", "properties": {
                "name": {"type": "string", "maxLength": 15}, "port": {"type": "integer"},
            }}},
        },
    }}})
}
