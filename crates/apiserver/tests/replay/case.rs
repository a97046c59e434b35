//! One recorded conversation.

use std::{sync::mpsc, time::Duration};

use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use orrery_apiserver::{Server, identity::User};
use orrery_store::{Revision, Scope, Selector, Store};
use serde_json::{Map, Value, json};
use tower_service::Service;

use crate::{
    compare::differences,
    json::Json,
    normal::{generated, normal, text},
};

pub(crate) struct Case {
    pub(crate) name: String,
    steps: Vec<(Json, Option<Value>)>,
}

/// An answer as it came.
struct Answer {
    code: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Case {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let case: Json = serde_json::from_str(line).ok()?;
        let Some(Json::Array(steps)) = case.get("steps") else { return None };
        let steps = steps.iter().map(|step| Some((step.get("do")?.clone(), step.get("want").map(Json::value))));
        Some(Self { name: case.get("case")?.text()?.to_owned(), steps: steps.collect::<Option<_>>()? })
    }

    /// Runs the case in a namespace of its own and says where the answers differ.
    pub(crate) async fn replay(&self, cluster: &Cluster, namespace: &str, patience: Duration) -> Vec<String> {
        let server = &cluster.server;
        let body = format!(r#"{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{namespace}"}}}}"#);
        let json_type = [("Content-Type".to_owned(), "application/json".to_owned())];
        ask(server, "POST", "/api/v1/namespaces", &json_type, body.into_bytes(), None).await;
        let mut names = vec![("ns".to_owned(), namespace.to_owned())];
        let mut prefixes = Vec::new();
        let mut found = Vec::new();
        for (index, (step, want)) in self.steps.iter().enumerate() {
            let step = Step::new(step, &names);
            if step.waits_for_roles() && want.is_none() {
                continue;
            }
            prefixes.extend(
                step.generate_name()
                    .map(|prefix| prefix.chars().take(58).collect::<String>().replace(namespace, "{ns}")),
            );
            let answer = step.ask(cluster, patience).await;
            step.save(&answer, &mut names);
            if let Some(want) = want {
                let got = generated(&answer.normal(namespace, step.watch().is_some()), &prefixes);
                let differing = differences(&normal(want, namespace), &got, "");
                found.extend(
                    differing.into_iter().map(|it| format!("  step {index} {} {} {it}", step.method(), step.path())),
                );
            }
        }
        ask(server, "DELETE", &format!("/api/v1/namespaces/{namespace}"), &[], Vec::new(), None).await;
        found
    }
}

/// The server under test, and the store to wait on.
pub(crate) struct Cluster {
    pub(crate) server: Server,
    pub(crate) store: Store,
}

impl Cluster {
    /// Waits until something changes in the resource of a path, and says whether it did in time. The time is real: the store
    /// does not know the test's clock.
    async fn changes(&self, path: &str, since: Revision, time: Duration) -> bool {
        let (group, resource) = resource_of(path);
        let scope = Scope::resource(group, resource);
        let Ok(mut watcher) = self.store.watch(scope, Selector::everything(), since) else { return true };
        let (tell, told) = mpsc::channel();
        let watching = tokio::spawn(async move {
            let _ = watcher.next().await;
            let _ = tell.send(());
        });
        let changed = tokio::task::spawn_blocking(move || told.recv_timeout(time).is_ok()).await.unwrap();
        watching.abort();
        changed
    }
}

/// The group and the resource of a path, as the store knows them.
fn resource_of(path: &str) -> (&str, &str) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => ("", &[][..]),
    };
    match rest {
        ["namespaces", _, resource, ..] if !matches!(*resource, "status" | "finalize") => (group, resource),
        [resource, ..] => (group, resource),
        [] => (group, "namespaces"),
    }
}

/// A request of a case, with the names filled in.
struct Step(Json);

impl Step {
    fn new(step: &Json, names: &[(String, String)]) -> Self {
        let fill = |text: &str| {
            names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
        };
        Self(step.map_texts(&fill))
    }

    fn method(&self) -> &str {
        self.0.get("method").and_then(Json::text).unwrap_or_default()
    }

    fn path(&self) -> &str {
        self.0.get("path").and_then(Json::text).unwrap_or_default()
    }

    /// Whether the step only waits until the real server has heard of a role or a binding: here it counts at once.
    fn waits_for_roles(&self) -> bool {
        self.path().ends_with("/subjectaccessreviews") && self.0.get("until").is_some()
    }

    fn watch(&self) -> Option<Duration> {
        self.0.get("watch").and_then(|seconds| seconds.value().as_f64()).map(Duration::from_secs_f64)
    }

    fn generate_name(&self) -> Option<String> {
        let prefix = self.0.get("body")?.get("metadata")?.get("generateName")?.text()?;
        (!prefix.is_empty()).then(|| prefix.to_owned())
    }

    fn target(&self) -> String {
        let mut pairs = Vec::new();
        for (name, value) in self.0.get("query").map(Json::fields).unwrap_or_default() {
            let values = match value {
                Json::Array(items) => items.clone(),
                one => vec![one.clone()],
            };
            for value in values {
                let value = value.text().map_or_else(|| value.value().to_string(), str::to_owned);
                pairs.push(format!("{}={}", escape(name), escape(&value)));
            }
        }
        if pairs.is_empty() { self.path().to_owned() } else { format!("{}?{}", self.path(), pairs.join("&")) }
    }

    async fn ask(&self, cluster: &Cluster, patience: Duration) -> Answer {
        let mut headers = vec![("Accept".to_owned(), "application/json".to_owned())];
        for (name, value) in self.0.get("headers").map(Json::fields).unwrap_or_default() {
            headers.retain(|(other, _)| other != name);
            headers.push((name.clone(), value.text().unwrap_or_default().to_owned()));
        }
        if let Some(user) = self.0.get("user").and_then(Json::text) {
            headers.push(("Impersonate-User".to_owned(), user.to_owned()));
        }
        let body = self.0.get("text").and_then(Json::text).map(str::to_owned);
        let body = body.or_else(|| self.0.get("body").map(Json::write));
        if body.is_some() && !headers.iter().any(|(name, _)| name == "Content-Type") {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        let body = body.unwrap_or_default().into_bytes();
        let until = self.0.get("until").map(Json::fields).unwrap_or_default();
        let deadline = std::time::Instant::now() + patience;
        loop {
            let seen = cluster.store.revision();
            let answer =
                ask(&cluster.server, self.method(), &self.target(), &headers, body.clone(), self.watch()).await;
            let holds = until.iter().all(|(what, wanted)| answer.at(what) == wanted.value());
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if holds || left.is_zero() || !cluster.changes(self.path(), seen, left).await {
                return answer;
            }
        }
    }

    fn save(&self, answer: &Answer, names: &mut Vec<(String, String)>) {
        for (name, pointer) in self.0.get("save").map(Json::fields).unwrap_or_default() {
            let value = match answer.at(pointer.text().unwrap_or_default()) {
                Value::String(text) => text,
                Value::Null => "None".to_owned(),
                other => other.to_string(),
            };
            names.retain(|(other, _)| other != name);
            names.push((name.clone(), value));
        }
    }
}

fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte);
    let escaped = text.bytes().map(|byte| match byte {
        b' ' => "+".to_owned(),
        _ if plain(byte) => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    escaped.collect()
}

async fn ask(
    server: &Server,
    method: &str,
    target: &str,
    headers: &[(String, String)],
    body: Vec<u8>,
    watch: Option<Duration>,
) -> Answer {
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(target);
    for (name, value) in headers {
        request = request.header(name.as_str(), value.as_bytes());
    }
    let Ok(request) = request.extension(User::admin()).body(Full::<bytes::Bytes>::from(body)) else {
        // What is no request at all never reaches the server.
        return Answer { code: StatusCode::BAD_REQUEST, headers: HeaderMap::new(), body: b"400 Bad Request".to_vec() };
    };
    let response = server.service().call(request).await.unwrap();
    let (parts, mut stream) = response.into_parts();
    let mut body = Vec::new();
    let end = watch.map(|time| tokio::time::Instant::now() + time);
    loop {
        let frame = match end {
            Some(end) => tokio::time::timeout_at(end, stream.frame()).await.unwrap_or(None),
            None => stream.frame().await,
        };
        let Some(Ok(frame)) = frame else { break };
        if let Ok(data) = frame.into_data() {
            body.extend_from_slice(&data);
        }
    }
    if method == "HEAD" {
        body.clear();
    }
    Answer { code: parts.status, headers: parts.headers, body }
}

impl Answer {
    /// The code, or what is at a place of the body.
    fn at(&self, what: &str) -> Value {
        if what == "code" {
            return self.code.as_u16().into();
        }
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body.pointer(what).cloned().unwrap_or_default()
    }

    fn normal(&self, namespace: &str, watch: bool) -> Value {
        let mut got = Map::from_iter([("code".to_owned(), self.code.as_u16().into())]);
        let warnings = self.headers.get_all(header::WARNING).iter();
        let warnings: Vec<Value> = warnings.map(|value| text(&latin(value.as_bytes()), namespace).into()).collect();
        if !warnings.is_empty() {
            got.insert("warnings".to_owned(), warnings.into());
        }
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        if kind != "application/json" {
            got.insert("type".to_owned(), kind.into());
        }
        let body = String::from_utf8_lossy(&self.body);
        let lines = body.lines().filter(|line| !line.trim().is_empty());
        let events: Option<Vec<Value>> = lines.map(|line| serde_json::from_str(line).ok()).collect();
        let whole: Option<Value> = serde_json::from_str(&body).ok();
        if let (true, Some(events)) = (watch, events) {
            let is_mark = |event: &Value| event.get("type") == Some(&json!("BOOKMARK"));
            let mut kept: Vec<Value> = Vec::new();
            for event in events {
                if !(is_mark(&event) && kept.last().is_some_and(is_mark)) {
                    kept.push(normal(&event, namespace));
                }
            }
            got.insert("events".to_owned(), kept.into());
        } else if let Some(whole) = whole {
            got.insert("body".to_owned(), normal(&whole, namespace));
        } else if !body.is_empty() {
            got.insert("text".to_owned(), text(&body, namespace).into());
        }
        Value::Object(got)
    }
}

/// The text of a header as the recordings have it: a character for each byte.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
