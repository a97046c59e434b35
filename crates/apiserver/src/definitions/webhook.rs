//! Conversion by a server elsewhere: objects are sent to it as a ConversionReview and come back in another version.
//!
//! What names an object cannot be changed by conversion: of its metadata, labels and annotations alone may differ.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::{net::TcpStream, sync::Semaphore};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::{
    field::Path,
    gotext::{quote, type_name},
    kinds::{validate_annotations, validate_labels},
    random,
    status::Status,
};

/// How many requests of one server are under way at once.
const AT_ONCE: usize = 16;
/// The largest answer, in bytes.
const LARGEST: usize = 64 << 20;

/// Where objects are converted.
#[derive(Debug)]
pub(super) struct Webhook {
    url: Option<String>,
    /// Who a server in the cluster would be, as messages name it.
    service: String,
    /// The address of that server.
    service_url: String,
    authorities: Vec<u8>,
    /// The version of reviews it is sent, if it understands one of ours.
    review: Option<Review>,
    /// Who may ask it.
    pub(super) turns: Semaphore,
}

/// A version of ConversionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Review {
    V1,
    V1Beta1,
}

impl Review {
    fn named(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "apiextensions.k8s.io/v1",
            Self::V1Beta1 => "apiextensions.k8s.io/v1beta1",
        }
    }
}

impl Webhook {
    /// Reads `spec.conversion.webhook`.
    pub(super) fn of(webhook: &Value) -> Self {
        let config = &webhook["clientConfig"];
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (name, namespace) = (text("/service/name"), text("/service/namespace"));
        let port = config.pointer("/service/port").and_then(Value::as_u64).unwrap_or(443);
        let mut understood = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        Self {
            url: config["url"].as_str().map(str::to_owned),
            service: name.to_owned(),
            service_url: format!("https://{name}.{namespace}.svc:{port}{}", text("/service/path")),
            authorities: crate::schema::decode_base64(text("/caBundle")),
            review: understood.find_map(|name| Review::named(name.as_str()?)),
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Has objects converted. `named` is what they are, as messages name it.
    pub(super) async fn convert(
        &self,
        objects: &[Value],
        named: &str,
        wanted: &str,
        patience: Duration,
    ) -> Result<Vec<Value>, Status> {
        let fail = |why: String| Status::internal(format!("conversion webhook for {named} {why}"));
        let review = self.review.ok_or_else(|| Status::internal("no supported conversion review versions"))?;
        let uid = random::uid()?;
        let request = json!({"uid": uid, "desiredAPIVersion": wanted, "objects": objects});
        let body = json!({"kind": "ConversionReview", "apiVersion": review.api_version(), "request": request});
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let answer = self.ask(body, patience).await.map_err(|why| fail(format!("failed: {why}")))?;
        let converted = response(answer, review, &uid).map_err(|why| fail(format!("failed: {why}")))?;
        check(objects, converted, wanted).map_err(fail)
    }

    /// What is said when nothing came in time.
    pub(super) fn late(&self, named: &str, patience: Duration) -> Status {
        let post = self.posted(patience, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)");
        Status::internal(format!("conversion webhook for {named} failed: {post}"))
    }

    fn full_url(&self, patience: Duration) -> String {
        let url = self.url.as_ref().unwrap_or(&self.service_url);
        // A time that is no whole number of seconds is none that servers are told of.
        format!("{url}?timeout={}s", patience.as_secs().max(1))
    }

    fn posted(&self, patience: Duration, why: &str) -> String {
        format!("Post {}: {why}", quote(&self.full_url(patience)))
    }

    async fn ask(&self, body: Vec<u8>, patience: Duration) -> Result<Value, String> {
        if self.url.is_none() {
            let service = quote(&self.service);
            let why = format!(
                "no endpoints available for service {service}: nothing runs in a space, a webhook is reached by its url"
            );
            return Err(self.posted(patience, &why));
        }
        let (status, body) = self.exchange(body, patience).await.map_err(|why| self.posted(patience, &why))?;
        if !status.is_success() {
            return Err(refusal(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
    }

    async fn exchange(&self, body: Vec<u8>, patience: Duration) -> Result<(StatusCode, Bytes), String> {
        let uri: http::Uri =
            self.full_url(patience).parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        let dial = |error: std::io::Error| {
            let refused = error.kind() == std::io::ErrorKind::ConnectionRefused;
            let why = if refused { "connect: connection refused".to_owned() } else { error.to_string() };
            format!("dial tcp {host}:{port}: {why}")
        };
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(dial)?;
        let name = ServerName::try_from(host.clone()).map_err(|error| error.to_string())?;
        let secured = self.connector()?.connect(name, stream).await;
        let secured = secured.map_err(|error| unsecured(&error))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(secured)).await.map_err(|error| error.to_string())?;
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let request = http::Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(http::header::HOST, authority)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::ACCEPT, "application/json")
            .body(Full::<Bytes>::from(body))
            .map_err(|error| error.to_string())?;
        let answered = async {
            let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LARGEST).collect().await;
            Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
        };
        // The connection lives as long as the question: whoever stops waiting ends it.
        tokio::pin!(connection, answered);
        tokio::select! {
            biased;
            answer = &mut answered => answer,
            ended = &mut connection => match ended {
                Ok(()) => answered.await,
                Err(error) => Err(error.to_string()),
            },
        }
    }

    fn connector(&self) -> Result<TlsConnector, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.authorities) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// Why there is no secured connection, in the words of Go where it has some of its own.
fn unsecured(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split("invalid peer certificate: ").nth(1) {
        Some("UnknownIssuer") => {
            "tls: failed to verify certificate: x509: certificate signed by unknown authority".to_owned()
        }
        Some(why) => format!("tls: failed to verify certificate: x509: {why}"),
        None => format!("tls: {text}"),
    }
}

/// What a server that does not convert means, as clients of Kubernetes say it.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    if told["kind"] == "Status"
        && let Some(message) = told["message"].as_str()
    {
        return message.to_owned();
    }
    match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        500.. => {
            // The beginning says enough.
            let text = String::from_utf8_lossy(&body[..body.len().min(2048)]);
            format!("an error on the server ({}) has prevented the request from succeeding", quote(text.trim()))
        }
        _ => {
            format!("the server responded with the status code {} but did not return more information", status.as_u16())
        }
    }
}

/// The objects of an answer, if it is one.
fn response(mut answer: Value, review: Review, uid: &str) -> Result<Vec<Value>, String> {
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, version) = (text("/kind"), text("/apiVersion"));
    let strict = review == Review::V1;
    if strict && (kind != "ConversionReview" || version != review.api_version()) {
        let expected = format!("{}, Kind=ConversionReview", review.api_version());
        return Err(format!("expected webhook response of {expected}, got {version}, Kind={kind}"));
    }
    if !answer["response"].is_object() {
        return Err("no response provided".to_owned());
    }
    let given = text("/response/uid");
    if strict && given != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(&given)));
    }
    let (status, message) = (text("/response/result/status"), text("/response/result/message"));
    if status != "Success" {
        return Err(match message.as_str() {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            _ => message,
        });
    }
    match answer.pointer_mut("/response/convertedObjects").map(Value::take) {
        Some(Value::Array(objects)) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// Converted objects under the identity of what they were, if that is what they are.
fn check(objects: &[Value], converted: Vec<Value>, wanted: &str) -> Result<Vec<Value>, String> {
    if objects.len() != converted.len() {
        return Err(format!("returned {} objects, expected {}", converted.len(), objects.len()));
    }
    let one = |(index, (old, new)): (usize, (&Value, Value))| {
        let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let object = if objects.len() == 1 { "object" } else { "converted object" };
        let invalid = |what: &str, expected: &str, got: &str| {
            format!("returned invalid {object} at index {index}: invalid {what} (expected {expected}, received {got})")
        };
        let (version, kind, wanted_kind) = (text(&new, "apiVersion"), text(&new, "kind"), text(old, "kind"));
        if version != wanted {
            return Err(invalid("groupVersion", wanted, &version));
        }
        if kind != wanted_kind {
            return Err(invalid("kind", &wanted_kind, &kind));
        }
        let alone = objects.len() == 1;
        same_identity(old, &new).map_err(|why| match alone {
            true => format!("returned invalid object: {why}"),
            false => format!("returned invalid converted object at index {index}: {why}"),
        })?;
        with_metadata(old, new).map_err(|why| match alone {
            true => format!("returned invalid metadata: {why}"),
            false => format!("returned invalid metadata in object at index {index}: {why}"),
        })
    };
    objects.iter().zip(converted).enumerate().map(one).collect()
}

/// Refuses an object that is another.
fn same_identity(old: &Value, new: &Value) -> Result<(), String> {
    for (field, called) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (was, is) = (crate::object::text(old, field), crate::object::text(new, field));
        if was != is {
            return Err(format!("must have the same {called}: {was} != {is}"));
        }
    }
    Ok(())
}

/// A converted object with the metadata of what it was, but for labels and annotations.
fn with_metadata(old: &Value, mut new: Value) -> Result<Value, String> {
    let given = match new.get_mut("metadata").map(Value::take) {
        Some(Value::Object(given)) => given,
        Some(other) => return Err(format!("invalid metadata of type {} in converted object", type_name(&other))),
        None => return Err("missing metadata in converted object".to_owned()),
    };
    let mut metadata = old["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field).filter(|value| !value.is_null()) {
            None => drop(metadata.remove(field)),
            Some(Value::Object(texts)) => {
                check_texts(field, texts, metadata.get(field))?;
                metadata.insert(field.to_owned(), texts.clone().into());
            }
            Some(other) => {
                return Err(format!("invalid metadata.{field} of type {} in converted object", type_name(other)));
            }
        }
    }
    new["metadata"] = metadata.into();
    Ok(new)
}

/// Judges labels or annotations that have changed.
fn check_texts(field: &str, texts: &Map<String, Value>, before: Option<&Value>) -> Result<(), String> {
    if let Some((key, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
        let found = type_name(value);
        return Err(format!("metadata.{field}[{key}] must be a string, but is {found} in converted object"));
    }
    if before.and_then(Value::as_object) == Some(texts) {
        return Ok(());
    }
    let metadata = Path::ROOT.child("metadata");
    let texts = Value::Object(texts.clone());
    let errors = match field {
        "labels" => validate_labels(&texts, &metadata.child("labels")),
        _ => validate_annotations(&texts, &metadata.child("annotation")),
    };
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(old: Value, new: Value) -> Result<Value, String> {
        check(&[old], vec![new], "ex.io/v2").map(|mut list| list.remove(0))
    }

    #[test]
    fn answers_are_checked() {
        let review = |response: Value| json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response});
        let good = json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{}]});
        assert_eq!(response(review(good.clone()), Review::V1, "u").map(|objects| objects.len()), Ok(1));
        for (answer, problem) in [
            (review(json!({"uid": "x", "result": {"status": "Success"}})), r#"expected response.uid="u", got "x""#),
            (review(json!({"uid": "u", "result": {"status": "Failure", "message": "no"}})), "no"),
            (review(json!({"uid": "u", "result": {}})), "response.result.status was '', not 'Success'"),
            (review(Value::Null), "no response provided"),
            (
                json!({"kind": "Other", "apiVersion": "v1", "response": good}),
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got v1, Kind=Other",
            ),
        ] {
            assert_eq!(response(answer, Review::V1, "u"), Err(problem.to_owned()));
        }
        // The older reviews were never checked for who they answer.
        assert_eq!(response(json!({"response": good}), Review::V1Beta1, "other").map(|objects| objects.len()), Ok(1));
    }

    #[test]
    fn of_the_metadata_labels_and_annotations_alone_change() {
        let old = json!({"kind": "W", "metadata": {"name": "a", "uid": "u", "generation": 2, "labels": {"x": "y"}}});
        let new = |metadata: Value| json!({"kind": "W", "apiVersion": "ex.io/v2", "metadata": metadata, "spec": {}});
        let given = json!({"name": "a", "uid": "u", "generation": 9, "annotations": {"c": "d"}});
        assert_eq!(
            converted(old.clone(), new(given)),
            Ok(new(json!({"name": "a", "uid": "u", "generation": 2, "annotations": {"c": "d"}})))
        );
        for (metadata, problem) in [
            (json!({"name": "b", "uid": "u"}), "returned invalid object: must have the same name: a != b"),
            (json!({"name": "a", "uid": "v"}), "returned invalid object: must have the same UID: u != v"),
            (
                json!({"name": "a", "uid": "u", "labels": {"x": 1}}),
                "returned invalid metadata: metadata.labels[x] must be a string, but is int64 in converted object",
            ),
            (
                json!({"name": "a", "uid": "u", "labels": []}),
                "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
            ),
        ] {
            assert_eq!(converted(old.clone(), new(metadata)), Err(problem.to_owned()));
        }
        let label = converted(old, new(json!({"name": "a", "uid": "u", "labels": {"x": "-"}}))).unwrap_err();
        assert!(
            label.starts_with("returned invalid metadata: metadata.labels: Invalid value: \"-\": a valid label"),
            "{label}"
        );
    }

    #[test]
    fn objects_are_those_that_were_sent() {
        let old = json!({"kind": "W", "metadata": {"name": "a"}});
        let new = |kind: &str, version: &str| json!({"kind": kind, "apiVersion": version, "metadata": {"name": "a"}});
        assert_eq!(
            check(std::slice::from_ref(&old), Vec::new(), "ex.io/v2"),
            Err("returned 0 objects, expected 1".to_owned())
        );
        assert_eq!(
            converted(old.clone(), new("W", "ex.io/v1")),
            Err("returned invalid object at index 0: invalid groupVersion (expected ex.io/v2, received ex.io/v1)"
                .to_owned())
        );
        let two = vec![new("W", "ex.io/v2"), new("V", "ex.io/v2")];
        assert_eq!(
            check(&[old.clone(), old], two, "ex.io/v2"),
            Err("returned invalid converted object at index 1: invalid kind (expected W, received V)".to_owned())
        );
    }
}
