//! What expressions really do is bounded, whatever Kubernetes says that they cost. Work is counted, not timed.

use std::fmt::Write;

use orrery_cel::{COST_LIMIT, Environment, EvalError, Type, Value, Work, rules::Rules};
use serde_json::{Value as Json, json};

/// What an expression comes to on an object, and the work it was.
fn run(expression: &str, object: &Json) -> (Result<Json, EvalError>, u64) {
    run_within(expression, object, Work::for_cost(COST_LIMIT))
}

fn run_within(expression: &str, object: &Json, work: Work) -> (Result<Json, EvalError>, u64) {
    let environment = Environment::kubernetes().variable("self", Type::Dyn);
    let program = environment.compile(expression).unwrap_or_else(|error| panic!("{error}"));
    let whole = work.left();
    let outcome = program.run_within(&[Some(Value::from_json(object))], COST_LIMIT, &work);
    (outcome.value.map(|value| value.to_json().unwrap_or_default()), whole - work.left())
}

#[track_caller]
fn holds(expression: &str, object: &Json, most: u64) {
    let (value, work) = run(expression, object);
    assert_eq!(value, Ok(json!(true)), "{expression}");
    assert!(work <= most, "{expression}: {work} units of work");
}

/// An expression ends as if it cost too much, though what Kubernetes declares is far less.
#[track_caller]
fn ends(expression: &str, object: &Json) {
    let (value, _) = run_within(expression, object, Work::for_cost(COST_LIMIT / 4));
    assert_eq!(value, Err(EvalError::CostExceeded), "{expression}");
}

#[test]
fn a_pattern_of_the_object_is_compiled_once() {
    let of = |items: usize| json!({"p": "^([a-z0-9]{1,20}-){3}$", "l": vec![0; items]});
    let rule = "self.l.all(x, !'a'.matches(self.p) && 'a'.find(self.p) == '' && 'a'.findAll(self.p) == [])";
    let (_, once) = run(rule, &of(1));
    holds(rule, &of(500), once + 500 * 200);
}

#[test]
fn patterns_are_paid_for_by_what_they_compile_to() {
    ends("self.l.all(x, !'a'.matches(self.p))", &json!({"p": r"(\pL{50}){10}", "l": vec![0; 500]}));
    let patterns: Vec<String> = (0..1000).map(|number| format!("([a-z]{{{}}}x){{100}}", number % 90 + 10)).collect();
    ends("self.all(p, !'a'.matches(p))", &json!(patterns));
}

#[test]
fn searching_is_paid_for_by_what_is_searched() {
    let text: String = (0..100_000_u32).map(|at| if at.count_ones() % 2 == 0 { 'a' } else { 'b' }).collect();
    ends("self.matches('[ab]*a[ab]{900}x')", &json!(text));
    ends("self.findAll('[^x]|[^x]*x').size() > 0", &json!(text));
    // Large and yet quick: a class of letters is many states, of which a text meets few.
    let names: Vec<String> = (0..1000).map(|number| format!("Gr\u{f6}\u{df}e n{number}")).collect();
    holds(r"self.all(n, n.matches('^\\p{L}[\\p{L}\\p{N} ]{0,62}$'))", &json!(names), 1_000_000);
    holds(r"self.all(n, n.matches('^[\\p{L}\\p{N} ]{0,62}$'))", &json!(names), 1_000_000);
    holds(r"''.matches('^$') && 'a'.matches('') && 'ab'.matches('\\B') && !'a'.matches('\\B')", &Json::Null, 10_000);
}

#[test]
fn patterns_too_large_to_be_read_are_refused() {
    for pattern in [r"\pL".repeat(20_000), format!("(?i){}", r"[\x{0}-\x{10FFFF}]".repeat(1000))] {
        let reason = orrery_cel::pattern::compile(&pattern).err().unwrap_or_default();
        assert!(reason.starts_with("error parsing regexp: expression too large"), "{reason:.200}");
    }
    assert!(orrery_cel::pattern::compile(r"(?i)^\pL[\pL\pN\x{2d}]*$").is_ok());
}

#[test]
fn parts_of_texts_are_found_in_one_pass() {
    let text = json!({"a": "a".repeat(240_000), "b": format!("{}b", "a".repeat(120_000))});
    holds("self.a.indexOf(self.b) == -1 && self.a.lastIndexOf(self.b) == -1", &text, 100_000);
    let places = json!("h\u{e9}llo h\u{e9}llo");
    for expression in [
        "self.indexOf('l') == 2 && self.indexOf('l', 3) == 3 && self.indexOf('\u{e9}llo', 2) == 7",
        "self.indexOf('o', 11) == -1 && self.lastIndexOf('h') == 6 && self.lastIndexOf('h', 5) == 0",
        "self.lastIndexOf('\u{e9}llo', 7) == 7 && self.lastIndexOf('\u{e9}llo', 6) == 1",
        "self.lastIndexOf('hello hello hello') == -1 && self.lastIndexOf('o', 3) == -1",
        "self.charAt(7) == '\u{e9}' && self.charAt(11) == '' && self.substring(6, 8) == 'h\u{e9}'",
        "self.substring(11) == '' && self.substring(7).size() == 4",
        "'h\u{e9}l'.split('', 2) == ['h', '\u{e9}l'] && 'h\u{e9}'.split('', 2) == ['h', '\u{e9}']",
        "''.split('') == []",
    ] {
        holds(expression, &places, 1000);
    }
    for (expression, error) in [
        ("self.indexOf('x', 12)", "index out of range: 12"),
        ("self.lastIndexOf('x', 11)", "index out of range: 11"),
        ("self.charAt(12)", "index out of range: 12"),
        ("self.substring(-1)", "index out of range: -1"),
        ("self.substring(3, 12)", "index out of range: 12"),
        ("self.substring(4, 3)", "invalid substring range. start: 4, end: 3"),
    ] {
        assert_eq!(
            run(expression, &places).0.map_err(|error| error.to_string()),
            Err(error.to_owned()),
            "{expression}"
        );
    }
}

#[test]
fn reading_long_texts_again_and_again_ends() {
    let object = json!({"s": "x".repeat(1_000_000), "l": vec![0; 20_000]});
    for call in ["size(self.s) == 1000000", "self.s.charAt(0) == 'x'", "!(self.s in {'a': 1})", "isURL(self.s) || true"]
    {
        ends(&format!("self.l.all(x, {call})"), &object);
    }
}

#[test]
fn what_is_made_is_bounded() {
    let object = json!({"s": "a".repeat(200_000), "l": vec!["x"; 50_000]});
    ends("self.s.replace('a', self.s).size() > 0", &object);
    ends("self.s.replace('', self.s).size() > 0", &object);
    ends("self.l.join(self.s).size() > 0", &object);
    ends("'%s'.format([self.l.map(x, self.s)]).size() > 0", &object);
    ends("self.l.all(x, (self.l + self.l).size() > 0)", &object);
    ends("self.l.all(x, self.s.split('').size() > 0)", &object);
    ends("'%.999999999f'.format([1.5]).size() > 0", &object);
    ends("'%.999999999e'.format([1.5]).size() > 0", &object);
    holds("'%.70000f'.format([1.5]).size() == 70002", &object, 20_000);
}

#[test]
fn values_that_share_their_parts_are_not_cheap_to_go_through() {
    let shared = format!("[[1, 1]]{}", ".map(x, [x, x])".repeat(40));
    ends(&format!("{shared} == {shared}"), &Json::Null);
    ends(&format!("{shared} in [{shared}]"), &Json::Null);
    ends(&format!("'%s'.format({shared}) == ''"), &Json::Null);
}

#[test]
fn maps_that_a_loop_makes_are_not_copied() {
    let numbers: Vec<u32> = (0..5000).collect();
    holds("self.transformMapEntry(i, v, {string(v): i}).size() == 5000", &json!(numbers), 200_000);
}

#[test]
fn lists_by_key_and_sets_are_compared_by_lookup() {
    let item = json!({"type": "object", "properties": {"k": {"type": "string", "maxLength": 10}}});
    let list = |kind: &str, items: Json| {
        json!({"type": "array", "maxItems": 30_000, "items": items, "x-kubernetes-list-type": kind,
        "x-kubernetes-list-map-keys": ["k"]})
    };
    let scalar = json!({"type": "string", "maxLength": 10});
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.a == oldSelf.a && (self.a + oldSelf.a).size() == 20000"},
            {"rule": "self.c == oldSelf.c && (self.c + oldSelf.c).size() == 20000"},
        ],
        "properties": {
            "a": list("map", item), "c": list("set", scalar),
        },
    }}});
    let objects: Vec<Json> = (0..20_000).map(|number| json!({"k": format!("n{number}")})).collect();
    let texts: Vec<Json> = (0..20_000).map(|number| json!(format!("n{number}"))).collect();
    let reversed = |list: &[Json]| list.iter().rev().cloned().collect::<Vec<_>>();
    let old = json!({"spec": {"a": reversed(&objects), "c": reversed(&texts)}});
    let object = json!({"spec": {"a": objects, "c": texts}});
    let verdict = Rules::compile(&schema).validate(&object, Some(&old));
    assert_eq!(verdict.failures, []);
}

#[test]
fn the_rules_of_an_object_share_their_work_and_say_why_they_end() {
    let text = json!({"type": "string", "maxLength": 100_000});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "array", "maxItems": 1000, "items": {
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.t.replace('a', self.t).size() > 0"}],
        "properties": {"t": text},
    }}}});
    let object = json!({"spec": vec![json!({"t": "a".repeat(20_000)}); 1000]});
    let failures = Rules::compile(&schema).validate(&object, None).failures;
    let messages: Vec<&str> = failures.iter().map(|failure| failure.message.as_str()).collect();
    let ended = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost \
                 exceeds limit for rule: self.t.replace('a', self.t).size() > 0";
    assert_eq!(messages, [ended]);
}

#[test]
fn what_is_told_of_many_items_is_bounded() {
    let mut message = String::new();
    (0..100).for_each(|number| write!(message, "why {number} ").expect("a text takes it"));
    let schema = json!({"type": "object", "properties": {"spec": {"type": "array", "items": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "message": message}],
    }}}});
    let object = json!({"spec": vec![0; 200_000]});
    let failures = Rules::compile(&schema).validate(&object, None).failures;
    let bytes: usize = failures.iter().map(|failure| failure.message.len()).sum();
    assert!(bytes < 50_000_000, "{bytes}");
    let last = failures.last().map(|failure| failure.message.as_str()).unwrap_or_default();
    assert_eq!(last, "validation failed due to running out of cost budget, no further validation rules will be run");
}
