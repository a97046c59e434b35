//! Writes through the Kubernetes API: each says what should be there, and makes it so in one request where it can.

use std::{future::Future, time::Duration};

use http::{Method, Request};
use kube::{Client, core::ApiResource};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::path;

/// How often a write is tried before it is left for later, and the pause after the first time, which doubles.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// How long all attempts may take: whoever waits for one write holds up all others.
const PATIENCE: Duration = Duration::from_secs(5);

/// As whom the controller stands in the fields it wrote.
pub(super) const MANAGER: &str = "orrery-hub";

/// Asks for something and reads the answer.
pub(super) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: Option<&Value>,
) -> Result<Value, kube::Error> {
    let body = body.map(|body| serde_json::to_vec(body).expect("a value can be written")).unwrap_or_default();
    let writes = matches!(method, Method::POST | Method::PUT | Method::PATCH);
    let uri = if writes { format!("{path}?fieldManager={MANAGER}") } else { path.to_owned() };
    let request = Request::builder().method(method).uri(uri).header("Content-Type", content_type);
    client.request(request.body(body).map_err(kube::Error::HttpError)?).await
}

pub(super) async fn get(client: &Client, path: &str) -> Result<Option<Value>, kube::Error> {
    absent_as_none(send(client, Method::GET, path, "application/json", None).await)
}

/// Merges a part of an object. Nothing when it is not there.
pub(super) async fn merge(client: &Client, path: &str, part: &Value) -> Result<Option<Value>, kube::Error> {
    absent_as_none(send(client, Method::PATCH, path, "application/merge-patch+json", Some(part)).await)
}

/// Replaces the whole status of an object, whether or not its kind has a subresource for it.
pub(super) async fn set_status(client: &Client, path: &str, status: &Value) -> Result<(), kube::Error> {
    let patch = json!([{"op": "add", "path": "/status", "value": status}]);
    let json_patch = "application/json-patch+json";
    let of_its_own =
        absent_as_none(send(client, Method::PATCH, &format!("{path}/status"), json_patch, Some(&patch)).await)?;
    if of_its_own.is_none() {
        absent_as_none(send(client, Method::PATCH, path, json_patch, Some(&patch)).await)?;
    }
    Ok(())
}

/// Makes an object have these fields: merges them, or creates it. `fields` are those beside what `frame` has, which is only
/// written when it is made.
pub(super) async fn ensure(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
    frame: &Value,
    fields: &Value,
) -> Result<Value, kube::Error> {
    if let Some(found) = merge(client, &path::object(resource, namespace, name), fields).await? {
        return Ok(found);
    }
    let mut object = frame.clone();
    object["apiVersion"] = resource.api_version.as_str().into();
    object["kind"] = resource.kind.as_str().into();
    object["metadata"]["name"] = name.into();
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    merge_into(&mut object, fields);
    send(client, Method::POST, &path::collection(resource, namespace), "application/json", Some(&object)).await
}

/// Tells an Event.
pub(super) async fn report(client: &Client, event: &Value) -> Result<Value, kube::Error> {
    send(client, Method::POST, "/api/v1/namespaces/default/events", "application/json", Some(event)).await
}

/// Gives an object a finalizer, or takes it away, and leaves the others.
pub(super) async fn set_finalizer(client: &Client, path: &str, name: &str, wanted: bool) -> Result<(), kube::Error> {
    let Some(object) = get(client, path).await? else { return Ok(()) };
    let metadata = &object["metadata"];
    let mut finalizers: Vec<&str> =
        metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let has_it = finalizers.contains(&name);
    // Nobody may hold what is being deleted already.
    if has_it == wanted || (wanted && !metadata["deletionTimestamp"].is_null()) {
        return Ok(());
    }
    if wanted {
        finalizers.push(name);
    } else {
        finalizers.retain(|other| *other != name);
    }
    let part = json!({"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}});
    merge(client, path, &part).await.map(drop)
}

pub(super) async fn delete(client: &Client, path: &str) -> Result<(), kube::Error> {
    absent_as_none(send(client, Method::DELETE, path, "application/json", None).await).map(drop)
}

/// Why something was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwritten {
    /// The same would be refused again.
    Refused,
    /// It may be possible later.
    NotNow,
}

/// Tries a few times, until it works, until it is clear that it never will, or until told to stop. Says what was answered.
pub(super) async fn persist<T, F: Future<Output = Result<T, kube::Error>>>(
    what: &str,
    stop: &CancellationToken,
    failed: impl Fn(),
    attempt: impl Fn() -> F,
) -> Result<T, Unwritten> {
    let tries = async {
        for number in 1..=ATTEMPTS {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failed();
            if is_final(&error) {
                tracing::warn!(%error, "cannot write {what}");
                return Err(Unwritten::Refused);
            }
            if number == ATTEMPTS {
                tracing::warn!(%error, "cannot write {what} now");
            } else {
                sleep(PAUSE * 2_u32.pow(number - 1)).await;
            }
        }
        Err(Unwritten::NotNow)
    };
    tokio::select! {
        () = stop.cancelled() => Err(Unwritten::NotNow),
        tried = timeout(PATIENCE, tries) => tried.unwrap_or_else(|_| {
            failed();
            tracing::warn!("cannot write {what} now: there is no answer");
            Err(Unwritten::NotNow)
        }),
    }
}

/// Whether the same write would be refused again. What is absent cannot be added to either.
fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 404 | 405 | 413 | 415 | 422))
}

fn absent_as_none(answer: Result<Value, kube::Error>) -> Result<Option<Value>, kube::Error> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Does what an API server does with a merge: what is null is not there.
fn merge_into(object: &mut Value, part: &Value) {
    let Some(fields) = part.as_object() else {
        *object = part.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        merge_into(&mut object[name], value);
    }
}
