//! A conversion webhook of a test's own: a real HTTPS server, with an authority of its own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

/// What a server does when it is asked.
pub(crate) enum Reaction {
    /// It answers with this.
    Answer(u16, Value),
    /// It says nothing until it is told to, and then converts nothing.
    Hang,
    /// It says nothing until it is told to, and then answers with this.
    Later(u16, Value),
}

/// A server that converts. It ends when this is dropped.
pub(crate) struct Converter {
    port: u16,
    /// The certificate of its authority, as `caBundle` has it.
    pub(crate) authority: String,
    counts: Arc<Counts>,
    released: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    asked: AtomicUsize,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

impl Converter {
    /// A server that reacts to the requests of reviews.
    pub(crate) async fn start(react: impl Fn(&Value) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, format!("authority of {port}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(
            vec![CertificateDer::from(certificate.der().to_vec())],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        );
        let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
        let counts = Arc::<Counts>::default();
        let (released, release) = watch::channel(false);
        let listening = tokio::spawn(listen(listener, acceptor, Arc::new(react), counts.clone(), release));
        Self { port, authority: STANDARD.encode(issuer.pem()), counts, released, listening }
    }

    /// A server that converts each object, and says that it did.
    pub(crate) async fn of(convert: impl Fn(&Value, &str) -> Value + Send + Sync + 'static) -> Self {
        Self::start(move |review| {
            let wanted = review["request"]["desiredAPIVersion"].as_str().unwrap();
            let objects = review["request"]["objects"].as_array().unwrap().iter();
            let converted: Vec<Value> = objects.map(|object| convert(object, wanted)).collect();
            Reaction::Answer(200, answer(review, &json!(converted)))
        })
        .await
    }

    /// What `spec.conversion` of a definition says to have its objects converted here.
    pub(crate) fn conversion(&self) -> Value {
        json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": self.url(), "caBundle": self.authority},
        }})
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/convert", self.port)
    }

    /// How many requests there were.
    pub(crate) fn asked(&self) -> usize {
        self.counts.asked.load(Ordering::SeqCst)
    }

    /// How many are waiting for an answer.
    pub(crate) fn under_way(&self) -> usize {
        self.counts.under_way.load(Ordering::SeqCst)
    }

    /// The most that ever were.
    pub(crate) fn most(&self) -> usize {
        self.counts.most.load(Ordering::SeqCst)
    }

    /// Lets those that hang go.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }
}

impl Drop for Converter {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// A review of success.
pub(crate) fn answer(review: &Value, converted: &Value) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": review["apiVersion"],
        "response": {"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": converted},
    })
}

type React = Arc<dyn Fn(&Value) -> Reaction + Send + Sync>;

async fn listen(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    react: React,
    counts: Arc<Counts>,
    release: watch::Receiver<bool>,
) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, react, counts, release) = (acceptor.clone(), react.clone(), counts.clone(), release.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let respond = service_fn(|request| {
                let (react, counts, release) = (react.clone(), counts.clone(), release.clone());
                async move { respond(request, &react, &counts, release).await }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), respond);
            let _ = connection.await;
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    react: &React,
    counts: &Counts,
    mut release: watch::Receiver<bool>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    assert_eq!(request.uri().path(), "/convert");
    let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes()).unwrap();
    counts.asked.fetch_add(1, Ordering::SeqCst);
    let (waits, code, body) = match react(&review) {
        Reaction::Answer(code, body) => (false, code, body),
        Reaction::Hang => (true, 503, Value::Null),
        Reaction::Later(code, body) => (true, code, body),
    };
    if waits {
        let _under_way = UnderWay::begin(counts);
        let _ = release.wait_for(|released| *released).await;
    }
    let body = if let Value::String(text) = body { text } else { body.to_string() };
    Ok(Response::builder().status(code).body(Full::from(body)).unwrap())
}

/// Counts a request until it is answered or given up.
struct UnderWay<'a>(&'a Counts);

impl<'a> UnderWay<'a> {
    fn begin(counts: &'a Counts) -> Self {
        let now = counts.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        counts.most.fetch_max(now, Ordering::SeqCst);
        Self(counts)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}
