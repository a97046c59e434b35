//! What cannot be read, and what must not break a package: nothing may panic, and exit 0 always comes with a whole list.

use orrery_krm::{Context, Function, FunctionError, FunctionResult, ResourceList, Severity, process};

/// Sets a label on everything, and objects where it is told to.
struct Label {
    fails: bool,
    reports: bool,
}

impl Function for Label {
    fn name(&self) -> &'static str {
        "label"
    }

    fn about(&self) -> &'static str {
        "Sets a label."
    }

    fn run(&self, list: &mut ResourceList, _: &Context) -> Result<(), FunctionError> {
        for item in &mut list.items {
            item.set_label("seen", "true");
        }
        if self.reports {
            list.results.push(FunctionResult::new(Severity::Error, "not to my liking"));
        }
        if self.fails { Err(FunctionError::new("nothing can be done")) } else { Ok(()) }
    }
}

const FINE: Label = Label { fails: false, reports: false };

const LIST: &str = "apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
# first
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}} # flow
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: 'b'   # quoted
";

fn check_unreadable(input: &[u8], message: &str) {
    let outcome = process(&FINE, input, &Context::default());
    assert_eq!((outcome.stdout.as_str(), outcome.exit), ("", 1), "{}", String::from_utf8_lossy(input));
    assert!(outcome.stderr.contains(message), "{:?} says nothing of {message:?}", outcome.stderr);
}

#[test]
fn what_is_no_list_gives_no_output_and_says_why() {
    check_unreadable(b"", "empty");
    check_unreadable(b"# only words\n", "empty");
    check_unreadable(b"kind: ResourceList\nitems: \xff\n", "not UTF-8 (byte 26)");
    check_unreadable(b"kind: ResourceList\nitems:\n- a: [1\n", "line 3");
    check_unreadable(b"kind: ResourceList\n", "has no items");
    check_unreadable(b"kind: ResourceList\nitems: {a: b}\n", "not a list");
    check_unreadable(b"kind: ResourceList\nitems:\n- a: b\n- word\n", "items[1]");
    check_unreadable(b"kind: ResourceList\nitems: \0\n", "control characters");
    check_unreadable(b"a:\n\tb: 2\n", "tab");
    check_unreadable(b"items: *nowhere\n", "unknown anchor");
    check_unreadable(b"- a\n- b\n", "not an object");
}

#[test]
fn bombs_are_refused_at_once() {
    let mut bomb = String::from("kind: ResourceList\nitems: []\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    check_unreadable(bomb.as_bytes(), "aliases stand for more than");
    check_unreadable("[".repeat(100_000).as_bytes(), "nested deeper");
    check_unreadable("- ".repeat(100_000).as_bytes(), "nested deeper");
    check_unreadable("{a: ".repeat(100_000).as_bytes(), "nested deeper");
    check_unreadable("? ".repeat(100_000).as_bytes(), "nested deeper");
    let deep: String = (0..5_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    check_unreadable(deep.as_bytes(), "nested deeper");
}

#[test]
fn a_failing_function_gives_the_items_back_as_they_came() {
    let outcome = process(&Label { fails: true, reports: true }, LIST.as_bytes(), &Context::default());
    assert_eq!(outcome.exit, 1);
    let expected = format!(
        "{LIST}results:\n- message: not to my liking\n  severity: error\n- message: nothing can be done\n  severity: error\n"
    );
    assert_eq!(outcome.stdout, expected);
    assert_eq!(outcome.stderr, "label: nothing can be done\n");
}

#[test]
fn an_error_result_fails_the_run_only_in_strict_mode() {
    let reporting = Label { fails: false, reports: true };
    let lenient = process(&reporting, LIST.as_bytes(), &Context::default());
    assert_eq!(lenient.exit, 0);
    assert!(lenient.stdout.contains("seen: \"true\""), "{}", lenient.stdout);
    for config in ["data:\n    strict: \"true\"\n", "spec:\n    strict: true\n"] {
        let strict = format!("{LIST}functionConfig:\n  kind: ConfigMap\n  {config}");
        let outcome = process(&reporting, strict.as_bytes(), &Context::default());
        assert_eq!(outcome.exit, 1);
        assert!(outcome.stdout.starts_with(&strict) && !outcome.stdout.contains("seen:"), "{}", outcome.stdout);
    }
}

#[test]
fn a_second_run_changes_nothing() {
    let once = process(&FINE, LIST.as_bytes(), &Context::default());
    let flow = "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {seen: \"true\"}}} # flow\n";
    assert!(once.stdout.contains(flow), "{}", once.stdout);
    let twice = process(&FINE, once.stdout.as_bytes(), &Context::default());
    assert_eq!(once.stdout, twice.stdout);
}

#[test]
fn json_comes_back_as_json() {
    let input = "{\"apiVersion\": \"config.kubernetes.io/v1\", \"kind\": \"ResourceList\", \"items\": [{\"apiVersion\": \"v1\", \
                 \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\\/b\"}}]}\n";
    let outcome = process(&FINE, input.as_bytes(), &Context::default());
    let expected = input.replace("\"a\\/b\"}", "\"a\\/b\", \"labels\": {\"seen\": \"true\"}}");
    assert_eq!((outcome.exit, outcome.stdout), (0, expected));
}

#[test]
fn documents_without_a_list_around_them_get_one() {
    let input =
        "# one\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a # kept\n---\napiVersion: v1\nkind: ConfigMap\n";
    let outcome = process(&FINE, input.as_bytes(), &Context::default());
    assert_eq!(outcome.exit, 0);
    let list = ResourceList::parse(outcome.stdout.as_bytes()).expect("a list");
    assert_eq!(list.items.len(), 2);
    assert!(outcome.stdout.contains("    name: a # kept\n    labels:\n      seen: \"true\"\n"), "{}", outcome.stdout);
}
