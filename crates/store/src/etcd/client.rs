//! Calls to etcd: over several endpoints, with deadlines, TLS and a token that is renewed when it has expired.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio_stream::StreamExt;
use tonic::{
    Request, Status, Streaming,
    client::Grpc,
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_prost::ProstCodec;

use super::{
    Config, Credentials,
    call_error::CallError,
    proto::{
        AuthenticateRequest, AuthenticateResponse, CompactionRequest, CompactionResponse, PutRequest, PutResponse,
        RangeRequest, RangeResponse, TxnRequest, TxnResponse, WatchCreateRequest, WatchRequest, WatchResponse,
    },
};
use crate::error::OpenError;

/// How often a connection on which something is under way is asked for a sign of life. etcd allows once in 5 seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long a sign of life may take.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How much may be under way on a connection before the other side waits; much less slows large answers down.
const WINDOW: u32 = 4 << 20;
/// The largest answer that is taken: pages and watch answers are kept far below.
const LARGEST_ANSWER: usize = 128 << 20;

/// A client of one etcd cluster.
pub(crate) struct Client {
    endpoints: Vec<Channel>,
    /// What to call them in messages.
    name: String,
    /// Which endpoint is used.
    current: AtomicUsize,
    credentials: Option<Credentials>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
    timeout: Duration,
}

impl Client {
    /// A client that connects when it is first used.
    pub(crate) fn new(config: &Config) -> Result<Self, OpenError> {
        let endpoints = config.endpoints.iter().map(|endpoint| channel(endpoint, config));
        let endpoints = endpoints.collect::<Result<Vec<_>, OpenError>>()?;
        if endpoints.is_empty() {
            return Err(OpenError::Server { endpoint: "etcd".to_owned(), problem: "no endpoint is given".to_owned() });
        }
        Ok(Self {
            endpoints,
            name: config.endpoints.join(", "),
            current: AtomicUsize::new(0),
            credentials: config.credentials.clone(),
            token: Mutex::default(),
            timeout: config.request_timeout,
        })
    }

    /// Its endpoints, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many endpoints there are.
    pub(crate) fn endpoint_count(&self) -> usize {
        self.endpoints.len()
    }

    /// Goes on with the next endpoint, unless another caller already has.
    fn give_up_on(&self, used: usize) {
        let _ = self.current.compare_exchange(used, used.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Goes on with the next endpoint.
    pub(crate) fn give_up_on_current(&self) {
        self.give_up_on(self.current.load(Ordering::Relaxed));
    }

    /// Reads a range of keys; linearizable.
    pub(crate) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, CallError> {
        self.call("/etcdserverpb.KV/Range", request).await
    }

    pub(crate) async fn put(&self, request: PutRequest) -> Result<PutResponse, CallError> {
        self.call("/etcdserverpb.KV/Put", request).await
    }

    pub(crate) async fn transact(&self, request: TxnRequest) -> Result<TxnResponse, CallError> {
        self.call("/etcdserverpb.KV/Txn", request).await
    }

    pub(crate) async fn compact(&self, revision: i64) -> Result<(), CallError> {
        let request = CompactionRequest { revision };
        let done: Result<CompactionResponse, _> = self.call("/etcdserverpb.KV/Compact", request).await;
        match done {
            // Someone was faster.
            Ok(_) | Err(CallError::Compacted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Begins a watch.
    pub(crate) async fn watch(&self, create: WatchCreateRequest) -> Result<Streaming<WatchResponse>, CallError> {
        let (used, mut grpc) = self.connection();
        self.authenticate_if_needed(&mut grpc, used).await?;
        // The stream of requests stays open: etcd ends a watch when it is closed.
        let requests = tokio_stream::iter([WatchRequest { create: Some(create) }]).chain(tokio_stream::pending());
        let mut request = Request::new(requests);
        self.add_token(&mut request);
        // A member that has lost its cluster ends the watch instead of leaving it silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let begin = async {
            ready(&mut grpc).await?;
            grpc.streaming(request, path("/etcdserverpb.Watch/Watch"), ProstCodec::default()).await
        };
        let answer = tokio::time::timeout(self.timeout, begin).await;
        let answer = answer.unwrap_or_else(|_| Err(timed_out(self.timeout)));
        answer.map(tonic::Response::into_inner).map_err(|status| self.failed(used, &status))
    }

    /// Forgets the token, so that the next call gets a new one.
    pub(crate) fn forget_token(&self) {
        *self.token.lock() = None;
    }

    /// Calls a method. If only the token was refused, it is renewed and the call made again.
    async fn call<Q, A>(&self, method: &'static str, message: Q) -> Result<A, CallError>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + 'static,
    {
        if self.credentials.is_none() {
            return self.call_once(method, message).await;
        }
        match self.call_once(method, message.clone()).await {
            Err(CallError::Token(_)) => self.call_once(method, message).await,
            outcome => outcome,
        }
    }

    async fn call_once<Q, A>(&self, method: &'static str, message: Q) -> Result<A, CallError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let (used, mut grpc) = self.connection();
        self.authenticate_if_needed(&mut grpc, used).await?;
        let mut request = Request::new(message);
        self.add_token(&mut request);
        self.unary(&mut grpc, method, request).await.map_err(|status| self.failed(used, &status))
    }

    async fn unary<Q, A>(
        &self,
        grpc: &mut Grpc<Channel>,
        method: &'static str,
        mut request: Request<Q>,
    ) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        request.set_timeout(self.timeout);
        let call = async {
            ready(grpc).await?;
            grpc.unary(request, path(method), ProstCodec::default()).await
        };
        let answer = tokio::time::timeout(self.timeout, call).await;
        answer.unwrap_or_else(|_| Err(timed_out(self.timeout))).map(tonic::Response::into_inner)
    }

    /// Gets a token if there are credentials and no token yet.
    async fn authenticate_if_needed(&self, grpc: &mut Grpc<Channel>, used: usize) -> Result<(), CallError> {
        let Some(credentials) = &self.credentials else { return Ok(()) };
        if self.token.lock().is_some() {
            return Ok(());
        }
        let request = AuthenticateRequest { name: credentials.user.clone(), password: credentials.password.clone() };
        let answer = self.unary(grpc, "/etcdserverpb.Auth/Authenticate", Request::new(request)).await;
        // Whatever became of it, the call that needed the token was not made.
        let answer: AuthenticateResponse = answer.map_err(|status| self.failed(used, &status).before_sending())?;
        let token = MetadataValue::try_from(answer.token);
        let token = token.map_err(|_| CallError::Auth("etcd gave a token that cannot be sent".to_owned()))?;
        *self.token.lock() = Some(token);
        Ok(())
    }

    fn add_token<T>(&self, request: &mut Request<T>) {
        if let Some(token) = &*self.token.lock() {
            request.metadata_mut().insert("token", token.clone());
        }
    }

    fn connection(&self) -> (usize, Grpc<Channel>) {
        let used = self.current.load(Ordering::Relaxed);
        let channel = &self.endpoints[used % self.endpoints.len()];
        (used, Grpc::new(channel.clone()).max_decoding_message_size(LARGEST_ANSWER))
    }

    fn failed(&self, used: usize, status: &Status) -> CallError {
        let error = CallError::from_status(status);
        if error.is_about_the_connection() {
            self.give_up_on(used);
        }
        if matches!(error, CallError::Token(_)) {
            self.forget_token();
        }
        error
    }

    /// Why a stream ended.
    pub(crate) fn stream_failed(&self, status: &Status) -> CallError {
        self.failed(self.current.load(Ordering::Relaxed), status)
    }
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    grpc.ready().await.map_err(|error| Status::from_error(error.into()))
}

fn path(method: &'static str) -> http::uri::PathAndQuery {
    http::uri::PathAndQuery::from_static(method)
}

fn timed_out(after: Duration) -> Status {
    Status::deadline_exceeded(format!("no answer within {after:?}"))
}

fn channel(endpoint: &str, config: &Config) -> Result<Channel, OpenError> {
    let problem = |problem: String| OpenError::Server { endpoint: endpoint.to_owned(), problem };
    let address = if endpoint.contains("://") {
        endpoint.to_owned()
    } else {
        format!("{}://{endpoint}", if config.tls.is_some() { "https" } else { "http" })
    };
    let secure = address.starts_with("https://");
    let mut channel = Endpoint::from_shared(address)
        .map_err(|error| problem(format!("this is not an address: {error}")))?
        .connect_timeout(config.request_timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    match &config.tls {
        Some(tls) if secure => {
            let mut settings = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca));
            if let Some(identity) = &tls.identity {
                settings = settings.identity(Identity::from_pem(&identity.certificate, &identity.key));
            }
            if let Some(name) = &tls.server_name {
                settings = settings.domain_name(name);
            }
            channel = channel.tls_config(settings).map_err(|error| {
                problem(format!("its certificates or key cannot be used: {}", super::call_error::chain(&error)))
            })?;
        }
        Some(_) => return Err(problem("certificates are given, so the address must begin with https://".to_owned())),
        None if secure => return Err(problem("https needs the certificate of the authority to trust".to_owned())),
        None => {}
    }
    Ok(channel.connect_lazy())
}
