//! Definitions and objects that would take minutes, gigabytes or the stack: refused in bounded time, in words that say why.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use std::time::Duration;

use client::Client;
use http::Method;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";

/// Far more than anything here takes, far less than any of it would take without its bound.
const LONG: Duration = Duration::from_secs(60);

/// A server on this thread, and how long that worked for it when it is dropped. A machine that is busy with other things makes
/// no difference.
struct Bounded {
    client: Client,
    since: Duration,
}

/// How long this thread has worked.
fn worked() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // After the name, which may have anything in it, come the state and ten numbers before the two that count.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    // Linux tells it in hundredths of a second, whatever it counts in.
    Duration::from_millis(ticks * 10)
}

impl Bounded {
    async fn start() -> Self {
        let client = Client::start().await;
        Self { client, since: worked() }
    }

    /// A server that serves widgets with this spec.
    async fn with(spec: &Value) -> Self {
        let bounded = Self::start().await;
        let (code, made) = bounded.define(spec).await;
        assert_eq!(code, 201, "{}", shortened(&made));
        bounded
    }

    async fn define(&self, spec: &Value) -> (u16, Value) {
        self.client.post(DEFINITIONS, &definition(spec)).await
    }

    async fn create(&self, spec: &Value) -> (u16, Value) {
        let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
        self.client.post(WIDGETS, &widget).await
    }

    /// What is said of a body that is sent as it is.
    async fn send(&self, content_type: &str, body: String) -> (u16, Value) {
        let (code, _, bytes) = self.client.raw(Method::POST, WIDGETS, content_type, body.into_bytes()).await;
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        let took = worked().saturating_sub(self.since);
        assert!(std::thread::panicking() || took < LONG, "it took {took:?}");
    }
}

fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
        },
    })
}

fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn shortened(answer: &Value) -> String {
    answer.to_string().chars().take(2000).collect()
}

#[track_caller]
fn refused((code, answer): (u16, Value), expected_code: u16, part: &str) {
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(code == expected_code && message.contains(part), "{code}: {}", shortened(&answer));
}

/// A schema of objects in each other.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({"type": "string"}), |inner, _| json!({"type": "object", "properties": {"a": inner}}))
}

#[tokio::test]
async fn a_thousand_levels_of_json_are_refused() {
    let bounded = Bounded::with(&anything()).await;
    for depth in [1_000, 100_000] {
        let (open, close) = (r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let body =
            format!(r#"{{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{{"name":"w"}},"spec":{open}1{close}}}"#);
        refused(bounded.send("application/json", body).await, 400, "exceeded max depth");
        let body = format!(r#"{{"spec":{open}1{close}}}"#).into_bytes();
        bounded.create(&json!({})).await;
        let path = format!("{WIDGETS}/w");
        let (code, _, _) = bounded.client.raw(Method::PATCH, &path, "application/merge-patch+json", body).await;
        assert!(matches!(code, 400 | 422), "{code}");
    }
}

#[tokio::test]
async fn a_thousand_levels_of_yaml_are_refused() {
    let bounded = Bounded::with(&anything()).await;
    let head = "apiVersion: ex.io/v1\nkind: Widget\nmetadata: {name: w}\nspec: ";
    for depth in [1_000, 100_000] {
        let body = format!("{head}{}1{}\n", "{a: ".repeat(depth), "}".repeat(depth));
        let (code, answer) = bounded.send("application/yaml", body.clone()).await;
        assert_eq!((code, answer["kind"].as_str()), (400, Some("Status")), "{}", shortened(&answer));
        let path = format!("{WIDGETS}/w?fieldManager=m");
        let (code, _, _) =
            bounded.client.raw(Method::PATCH, &path, "application/apply-patch+yaml", body.into_bytes()).await;
        assert_eq!(code, 400);
    }
}

#[tokio::test]
async fn a_bomb_of_aliases_is_refused() {
    let bounded = Bounded::with(&anything()).await;
    let level =
        |number: usize| format!(" a{}: &a{} [{}]\n", number + 1, number + 1, vec![format!("*a{number}"); 9].join(", "));
    let bomb: String = (0..30).map(level).collect();
    let body = format!(
        "apiVersion: ex.io/v1\nkind: Widget\nmetadata: {{name: w}}\nspec:\n a0: &a0 [x, x, x, x, x, x, x, x, x]\n{bomb}"
    );
    refused(bounded.send("application/yaml", body).await, 400, "document contains excessive aliasing");
}

#[tokio::test]
async fn names_in_names_and_quotes_without_number_are_read_once() {
    let bounded = Bounded::with(&anything()).await;
    let head = |name: &str| format!("apiVersion: ex.io/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec:\n");
    let open: String = (0..60).map(|level| format!("&a{level} [")).collect();
    let named = format!("{} x: {open}{}{}\n", head("named"), "1,".repeat(300_000), "]".repeat(60));
    let (code, answer) = bounded.send("application/yaml", named).await;
    assert_eq!(code, 201, "{}", shortened(&answer));
    let quoted = format!("# \\/\n{} x:\n{}", head("quoted"), " - \"\"\n".repeat(150_000));
    let (code, answer) = bounded.send("application/yaml", quoted).await;
    assert_eq!(code, 201, "{}", shortened(&answer));
}

#[tokio::test]
async fn a_schema_nested_too_deeply_is_refused() {
    let bounded = Bounded::start().await;
    let text = definition(&nested(50)).to_string();
    for depth in [1_000, 50_000] {
        let (open, close) = (r#"{"type":"object","properties":{"a":"#.repeat(depth), "}}".repeat(depth));
        let deep = text.replace(&nested(50).to_string(), &format!(r#"{open}{{"type":"string"}}{close}"#));
        let (code, _, bytes) =
            bounded.client.raw(Method::POST, DEFINITIONS, "application/json", deep.into_bytes()).await;
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        refused((code, answer), 400, "exceeded max depth");
    }
    let (code, answer) = bounded.define(&nested(40)).await;
    assert_eq!(code, 201, "{}", shortened(&answer));
}

#[tokio::test]
async fn schemas_that_multiply_are_refused_or_served() {
    let bounded = Bounded::start().await;
    // Alternatives of alternatives: each level is tried for each of those above.
    let level = |inner: Value| json!({"anyOf": [inner, inner, inner, inner, inner, inner]});
    let alternatives = (0..6).fold(json!({"minLength": 3}), |inner, _| level(inner));
    let mut spec = alternatives;
    spec["type"] = "string".into();
    let (code, answer) = bounded.define(&spec).await;
    if code == 201 {
        let (code, answer) = bounded.create(&"x".into()).await;
        assert_eq!(code, 422, "{}", shortened(&answer));
    } else {
        assert_eq!(code, 422, "{}", shortened(&answer));
    }
}

#[tokio::test]
async fn defaults_do_not_multiply() {
    let value = json!({"a": "x".repeat(1000)});
    let item = json!({"type": "object", "properties": {"big": {"type": "object", "default": value, "properties": {"a": {"type": "string"}}}}});
    let bounded =
        Bounded::with(&json!({"type": "object", "properties": {"l": {"type": "array", "items": item}}})).await;
    // Each of these few bytes would become a thousand.
    let (code, answer) = bounded.create(&json!({"l": vec![json!({}); 900_000]})).await;
    assert!(matches!(code, 413 | 422 | 500), "{code}: {}", shortened(&answer));
}

#[tokio::test]
async fn expressions_nested_too_deeply_are_refused() {
    let bounded = Bounded::start().await;
    for rule in [
        format!("{}true{}", "(".repeat(1000), ")".repeat(1000)),
        format!("{}true{}", "!(".repeat(1000), ")".repeat(1000)),
        format!("self.a{}", ".a".repeat(1000)),
        format!("{}1{} == 1", "[".repeat(1000), "]".repeat(1000)),
        "true ? ".repeat(1000) + "true" + &" : true".repeat(1000),
        "x".repeat(200_000),
    ] {
        let spec = json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [{"rule": rule}]});
        let (code, answer) = bounded.define(&spec).await;
        assert_eq!(code, 422, "{}: {}", &rule[..20], shortened(&answer));
    }
}

#[tokio::test]
async fn expressions_that_could_take_too_long_are_refused_by_their_estimate() {
    let bounded = Bounded::start().await;
    let list = json!({"type": "array", "items": {"type": "string"}});
    let rule =
        |rule: &str| json!({"type": "object", "properties": {"l": list}, "x-kubernetes-validations": [{"rule": rule}]});
    let nested = rule("self.l.all(a, self.l.all(b, self.l.all(c, a != b || b != c)))");
    refused(
        bounded.define(&nested).await,
        422,
        "estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)",
    );
    let many: Vec<Value> =
        (0..200).map(|number| json!({"rule": format!("self.l.all(a, a.size() > {number})")})).collect();
    let mut bounded_list = list.clone();
    bounded_list["maxItems"] = 3000.into();
    bounded_list["items"]["maxLength"] = 2000.into();
    let spec = json!({"type": "object", "properties": {"l": bounded_list}, "x-kubernetes-validations": many});
    let (code, answer) = bounded.define(&spec).await;
    assert!(
        code == 201 || answer["message"].as_str().is_some_and(|text| text.contains("exceeds budget")),
        "{}",
        shortened(&answer)
    );
}

#[tokio::test]
async fn expressions_that_run_too_long_are_stopped() {
    let list = json!({"type": "array", "maxItems": 700, "items": {"type": "integer"}});
    let rule = "self.l.all(a, self.l.all(b, a + b > -1))";
    let spec = json!({"type": "object", "properties": {"l": list}, "x-kubernetes-validations": [{"rule": rule}]});
    let bounded = Bounded::with(&spec).await;
    let few: Vec<usize> = (0..50).collect();
    assert_eq!(bounded.create(&json!({"l": few})).await.0, 201);
    let many: Vec<usize> = (0..700).collect();
    let path = format!("{WIDGETS}/w");
    let answer = bounded.client.merge(&path, &json!({"spec": {"l": many}})).await;
    refused(answer, 422, "call cost exceeds limit for rule");
}

#[tokio::test]
async fn all_rules_of_an_object_share_one_budget() {
    let item = json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 300, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "self.l.all(a, self.l.all(b, a + b > -1))"}]});
    let spec = json!({"type": "object", "properties": {"parts": {"type": "array", "maxItems": 40, "items": item}}});
    let bounded = Bounded::start().await;
    let (code, answer) = bounded.define(&spec).await;
    if code != 201 {
        return refused((code, answer), 422, "exceeds budget");
    }
    let list: Vec<usize> = (0..300).collect();
    let parts = vec![json!({"l": list}); 40];
    refused(
        bounded.create(&json!({"parts": parts})).await,
        422,
        "validation failed due to running out of cost budget, no further validation rules will be run",
    );
}

#[tokio::test]
async fn huge_patterns_are_refused() {
    let bounded = Bounded::start().await;
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    refused(bounded.define(&text("a{1001}")).await, 422, "invalid repeat count");
    for pattern in ["((a{1000}){1000}){1000}".to_owned(), "(".repeat(5000) + &")".repeat(5000), "[".repeat(1000)] {
        let (code, answer) = bounded.define(&text(&pattern)).await;
        assert_eq!(code, 422, "{}", shortened(&answer));
    }
    let many: Value =
        (0..5000).map(|number| (format!("f{number}"), text(r"\p{L}{500}"))).collect::<serde_json::Map<_, _>>().into();
    let (code, answer) = bounded.define(&json!({"type": "object", "properties": many})).await;
    assert_eq!(code, 422, "{}", shortened(&answer));
}

#[tokio::test]
async fn patterns_that_backtrack_elsewhere_do_not_here() {
    let bounded = Bounded::with(&json!({"type": "string", "pattern": "^(a+)+(a|aa)*$"})).await;
    let text = "a".repeat(100_000) + "b";
    assert_eq!(bounded.create(&text.into()).await.0, 422);
}

#[tokio::test]
async fn an_enormous_enumeration_is_told_once() {
    let all: Vec<String> = (0..100_000).map(|number| format!("v{number}")).collect();
    let bounded = Bounded::with(&json!({"type": "string", "enum": all})).await;
    refused(bounded.create(&"x".into()).await, 422, "Unsupported value: \"x\"");
}

#[tokio::test]
async fn of_very_many_errors_some_are_told() {
    let bounded = Bounded::with(&json!({"type": "array", "items": {"type": "string"}})).await;
    let (code, answer) = bounded.create(&json!(vec![1; 500_000])).await;
    assert_eq!(code, 422, "{}", shortened(&answer));
    let told = answer["details"]["causes"].as_array().unwrap().len();
    assert!((100..200_000).contains(&told), "{told}");
    assert!(answer.to_string().len() < 64 << 20);
}

#[tokio::test]
async fn of_very_many_unknown_fields_some_are_told() {
    let bounded = Bounded::with(&json!({"type": "object", "properties": {"a": {"type": "string"}}})).await;
    let fields: Value =
        (0..100_000).map(|number| (format!("f{number}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": fields});
    let (code, answer) = bounded.client.post(&format!("{WIDGETS}?fieldValidation=Strict"), &widget).await;
    assert_eq!(code, 400, "{}", shortened(&answer));
    assert!(answer["message"].as_str().unwrap().len() < 1 << 20);
}

#[tokio::test]
async fn numbers_that_no_clock_holds_are_taken_as_very_long() {
    let client = Client::start().await;
    client.post("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "a"}})).await;
    let watch = format!("/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds={}", i64::MAX);
    assert_eq!(client.watch(&watch, 1).await[0]["type"], "ADDED");
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let (code, made) = client.post("/api/v1/namespaces/default/pods", &pod).await;
    assert_eq!(code, 201, "{made}");
    let path = format!("/api/v1/namespaces/default/pods/p?gracePeriodSeconds={}", i64::MAX);
    let (code, going) = client.delete(&path).await;
    assert_eq!((code, &going["metadata"]["deletionTimestamp"]), (200, &json!("9999-12-30T22:00:00Z")), "{going}");
}

#[tokio::test]
async fn what_a_cluster_needs_does_not_go_with_a_collection() {
    let client = Client::start().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let (code, refusal) = client.delete(classes).await;
    assert_eq!(code, 403, "{refusal}");
    assert_eq!(client.get(classes).await.1["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn nobody_defines_kinds_among_those_of_the_program() {
    let client = Client::start().await;
    let definition = json!({
        "metadata": {"name": "authorities.internal.orrery.io"},
        "spec": {
            "group": "internal.orrery.io", "scope": "Cluster",
            "names": {"plural": "authorities", "kind": "Authority"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let (code, refusal) = client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    assert_eq!((code, &refusal["details"]["causes"][0]["field"]), (422, &json!("spec.group")), "{refusal}");
}
