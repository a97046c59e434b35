//! Conversion by a server elsewhere: objects are sent to it as a ConversionReview and come back in another version.
//!
//! # Guarantees
//!
//! - A server that does not answer costs its caller [`PATIENCE`], and nobody else anything: only so many are asked at once.
//! - What names an object cannot be changed by conversion.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpStream, runtime::RuntimeFlavor, sync::Semaphore, time::timeout};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::{random, status::Status};

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many are asked at once.
static AT_ONCE: Semaphore = Semaphore::const_new(64);
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
}

impl Webhook {
    /// Reads `spec.conversion.webhook`.
    pub(super) fn of(webhook: &Value) -> Self {
        let config = &webhook["clientConfig"];
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (name, namespace) = (text("/service/name"), text("/service/namespace"));
        let port = config.pointer("/service/port").and_then(Value::as_u64).unwrap_or(443);
        Self {
            url: config["url"].as_str().map(str::to_owned),
            service: name.to_owned(),
            service_url: format!("https://{name}.{namespace}.svc:{port}{}", text("/service/path")),
            authorities: crate::schema::decode_base64(text("/caBundle")),
        }
    }

    /// Has objects converted. `named` is what they are, as messages name it.
    pub(super) fn convert(&self, objects: Vec<Value>, named: &str, wanted: &str) -> Result<Vec<Value>, Status> {
        let fail = |why: String| Status::internal(format!("conversion webhook for {named} failed: {why}"));
        let uid = random::uid()?;
        let review = json!({
            "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
        });
        let body = serde_json::to_vec(&review).unwrap_or_default();
        let answer = run(self.ask(body)).map_err(fail)?;
        let converted = check(answer, &uid, wanted, objects.len()).map_err(fail)?;
        Ok(objects.iter().zip(converted).map(|(old, new)| with_identity(old, new)).collect())
    }

    async fn ask(&self, body: Vec<u8>) -> Result<Value, String> {
        let url = self.url.as_ref().unwrap_or(&self.service_url);
        let full = format!("{url}?timeout={}s", PATIENCE.as_secs());
        let posted = |why: String| format!("Post {}: {why}", crate::gotext::quote(&full));
        if self.url.is_none() {
            // Nothing runs in a space: a service has no server behind it.
            return Err(posted(format!("service {} not found", crate::gotext::quote(&self.service))));
        }
        let asked = async {
            let _permit = AT_ONCE.acquire().await.map_err(|error| error.to_string())?;
            self.exchange(&full, body).await
        };
        match timeout(PATIENCE, asked).await {
            Ok(answer) => answer.map_err(posted),
            Err(_) => {
                Err(posted("context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned()))
            }
        }
    }

    async fn exchange(&self, url: &str, body: Vec<u8>) -> Result<Value, String> {
        let uri: http::Uri = url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
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
        let secured = secured.map_err(|error| format!("tls: failed to verify certificate: {error}"))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(secured)).await.map_err(|error| error.to_string())?;
        let driver = tokio::spawn(connection);
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
            let body =
                Limited::new(response.into_body(), LARGEST).collect().await.map_err(|error| error.to_string())?;
            if !status.is_success() {
                return Err(format!("the server answered {status}"));
            }
            serde_json::from_slice(&body.to_bytes()).map_err(|error| error.to_string())
        };
        let answer = answered.await;
        driver.abort();
        answer
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

/// Waits for an answer where the caller cannot: conversion is a step in the middle of decisions. Other requests go on meanwhile.
fn run<T: Send>(asked: impl Future<Output = T> + Send) -> T {
    match tokio::runtime::Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(|| handle.block_on(asked))
        }
        _ => {
            let alone = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a thread of its own can have a runtime").block_on(asked)
            };
            std::thread::scope(|scope| scope.spawn(alone).join().expect("it does not panic"))
        }
    }
}

/// The objects of an answer, if it is one.
fn check(mut answer: Value, uid: &str, wanted: &str, count: usize) -> Result<Vec<Value>, String> {
    let quote = crate::gotext::quote;
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, version) = (text("/kind"), text("/apiVersion"));
    if kind != "ConversionReview" || version != "apiextensions.k8s.io/v1" {
        return Err(format!(
            "invalid response: expected apiextensions.k8s.io/v1 ConversionReview, got {version} {kind}"
        ));
    }
    let given = text("/response/uid");
    if given != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(&given)));
    }
    if text("/response/result/status") != "Success" {
        return Err(text("/response/result/message"));
    }
    let objects = answer.pointer_mut("/response/convertedObjects").map(Value::take);
    let Some(Value::Array(objects)) = objects else { return Err("the response has no convertedObjects".to_owned()) };
    if objects.len() != count {
        return Err(format!("returned {} objects, expected {count}", objects.len()));
    }
    let wrong = objects.iter().position(|object| object["apiVersion"] != wanted);
    match wrong {
        Some(index) => Err(format!("returned invalid converted object at index {index}: it is not of {wanted}")),
        None => Ok(objects),
    }
}

/// A converted object under the identity of what it was: of its metadata, labels and annotations alone can have changed.
fn with_identity(old: &Value, mut new: Value) -> Value {
    let mut metadata = old["metadata"].clone();
    for field in ["labels", "annotations"] {
        match new.pointer(&format!("/metadata/{field}")).filter(|value| value.is_object()) {
            Some(value) => metadata[field] = value.clone(),
            None => {
                if let Some(members) = metadata.as_object_mut() {
                    members.remove(field);
                }
            }
        }
    }
    new["metadata"] = metadata;
    new["kind"] = old["kind"].clone();
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked() {
        let review = |response: Value| json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response});
        let good =
            json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{"apiVersion": "ex.io/v2"}]});
        assert_eq!(check(review(good.clone()), "u", "ex.io/v2", 1).map(|objects| objects.len()), Ok(1));
        for (response, uid, count, problem) in [
            (good.clone(), "x", 1, r#"expected response.uid="x", got "u""#),
            (good.clone(), "u", 2, "returned 1 objects, expected 2"),
            (json!({"uid": "u", "result": {"status": "Failure", "message": "no"}}), "u", 1, "no"),
        ] {
            assert_eq!(check(review(response), uid, "ex.io/v2", count), Err(problem.to_owned()));
        }
    }

    #[test]
    fn conversion_does_not_rename() {
        let old = json!({"kind": "W", "metadata": {"name": "a", "uid": "u", "labels": {"x": "y"}}});
        let new = json!({"kind": "V", "metadata": {"name": "b", "annotations": {"c": "d"}}, "spec": {}});
        assert_eq!(
            with_identity(&old, new),
            json!({"kind": "W", "metadata": {"name": "a", "uid": "u", "annotations": {"c": "d"}}, "spec": {}})
        );
    }
}
