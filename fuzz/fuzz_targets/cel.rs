//! Any text as an expression, on any JSON: nothing panics, nothing runs longer than its limit allows, and no run costs more
//! than was estimated for it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use orrery_cel::{Environment, Type, Value, rules::Rules};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (expression, json) = text.split_once('\n').unwrap_or((text, "{}"));
    let json = serde_json::from_str(json).unwrap_or_default();
    for environment in [Environment::kubernetes(), Environment::standard()] {
        let environment = environment.variable("self", Type::Dyn).variable("oldSelf", Type::optional(Type::Dyn));
        match environment.compile(expression) {
            Ok(program) => {
                let cost = program.estimate(None);
                let variables = [Some(Value::from_json(&json)), Some(Value::Optional(None))];
                let outcome = program.run(&variables, 100_000);
                assert!(outcome.cost <= 200_000 || outcome.value.is_err(), "{expression}");
                assert!(cost.min <= cost.max);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": expression}], "properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        }}},
    });
    let rules = Rules::compile(&schema);
    let _ = rules.problems("");
    let _ = rules.validate(&json, None);
});
