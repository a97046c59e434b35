//! The server as a tower service: a request in, an answer out, no socket needed.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use orrery_store::{Key, Store};
use serde_json::Value;

use crate::{
    answer,
    body::Body,
    definitions::{Definitions, Kinds, Provided, Turns},
    health::Health,
    identity::{Attributes, Authorization, Authorizer, User, impersonate},
    objects::Objects,
    registry::{Registry, Resource},
    request::{self, Accepted, Address, Query, SpaceScope, Target},
    signer::Signer,
    spaces,
    status::Status,
    verbs::{self, Call},
    warned,
};

/// How a server behaves.
#[derive(Clone)]
pub struct Config {
    /// What time it is.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Who decides what users may do.
    pub authorization: Authorization,
    /// Where clients reach the server, as discovery tells them: host and port.
    pub address: String,
    /// Largest body of a request, in bytes.
    pub max_body: usize,
    /// How long a request may take until its answer begins, its body included; for ever if nothing is said.
    pub request_timeout: Option<Duration>,
    /// How long a read waits for a revision that has not happened yet.
    pub future_wait: Duration,
    /// How long a watch lasts when the client does not say: at least this, at most twice as long.
    pub watch_timeout: Duration,
    /// How long an event is kept after it was last written.
    pub event_ttl: Duration,
    /// For how long what changed can be read as it was: at least this, at most half as long again.
    pub history: Duration,
    /// The certificates by which clients in a space know the server, as PEM. When they change, controllers that are started
    /// anew tell every namespace.
    pub root_ca: Arc<dyn Fn() -> String + Send + Sync>,
    /// Who signs the certificates of clients; without, none are signed.
    pub signer: Option<Arc<dyn Signer>>,
    /// What `/metrics` shows to those who may see it.
    pub metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// How long `/readyz` and its like wait for the store.
    pub health_timeout: Duration,
    /// How often a watch that asked for it is told how far it has come.
    pub bookmark_interval: Duration,
    /// Definitions of custom resources that are part of the program.
    pub definitions: Vec<Provided>,
    /// How long a conversion webhook may take.
    pub conversion_timeout: Duration,
    /// How many requests to conversion webhooks are under way at once.
    pub conversions_at_once: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            clock: Arc::new(Timestamp::now),
            authorization: Authorization::default(),
            address: String::new(),
            max_body: 3 << 20,
            request_timeout: None,
            future_wait: Duration::from_secs(3),
            watch_timeout: Duration::from_secs(30 * 60),
            event_ttl: Duration::from_secs(60 * 60),
            history: Duration::from_secs(5 * 60),
            root_ca: Arc::new(String::new),
            signer: None,
            metrics: None,
            health_timeout: Duration::from_secs(2),
            bookmark_interval: Duration::from_secs(60),
            definitions: Vec::new(),
            conversion_timeout: Duration::from_secs(30),
            conversions_at_once: 64,
        }
    }
}

/// The API over a store. Clones are handles to the same server.
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
}

/// What all requests share; nothing in it is per space.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) store: Objects,
    pub(crate) registry: Arc<Registry>,
    pub(crate) authorizer: Authorizer,
    pub(crate) definitions: Definitions,
    pub(crate) health: Health,
}

impl Server {
    /// A server over a store.
    pub fn new(store: Store, config: Config) -> Self {
        let registry = Registry::kubernetes();
        let turns = Turns::new(config.conversions_at_once, config.conversion_timeout);
        let definitions = Definitions::new(store.clone(), config.definitions.clone(), turns);
        let definitions = definitions.expect("the program's own definitions are right");
        let store = Objects::new(store, registry.clone(), config.root_ca.clone());
        let store = store.expect("the program's own objects are of kinds it knows");
        let authorizer = Authorizer::new(config.authorization, store.clone());
        let health = Health::default();
        Self { shared: Arc::new(Shared { config, store, registry, authorizer, definitions, health }) }
    }

    /// The server as a tower service. A request without a [`User`] in its extensions is anonymous.
    pub fn service(&self) -> Service {
        Service(self.shared.clone())
    }

    /// Says from now on, at `/readyz`, that the server is going away. Requests are answered as before.
    pub fn stop(&self) {
        self.shared.health.stop();
    }

    /// Makes sure that the objects every cluster starts with are there.
    pub async fn bootstrap(&self) -> Result<(), Status> {
        spaces::bootstrap(&self.shared).await
    }
}

impl Shared {
    /// The time, as Kubernetes writes it.
    pub(crate) fn now(&self) -> String {
        let seconds = (self.config.clock)().as_second();
        Timestamp::from_second(seconds).unwrap_or_default().to_string()
    }

    /// Whether a namespace is there, and whether it is going away.
    pub(crate) fn namespace(&self, space: &str, name: &str) -> Option<Arc<orrery_store::Object>> {
        self.store.get(&Key::new("", "namespaces", space, "", name).ok()?)
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A server as a tower service.
#[derive(Clone)]
pub struct Service(Arc<Shared>);

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move { Ok(respond(shared, request).await) })
    }
}

async fn respond<B>(shared: Arc<Shared>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let accept = header_text(&parts.headers, &header::ACCEPT).to_owned();
    let mut warnings = Vec::new();
    let mut about = None;
    let answer = async {
        let incoming = Incoming::admit(&shared, parts).await?;
        incoming.answer(&shared, body, &mut warnings, &mut about).await
    };
    let mut answered = match shared.config.request_timeout {
        Some(limit) => tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| Err(Status::timeout())),
        None => answer.await,
    }
    .unwrap_or_else(|status| answer::failure(&status, Accepted::for_errors(&accept)));
    if let Some(about) = about {
        answered.extensions_mut().insert(about);
    }
    let headers = answered.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    for warning in warned::sent(warnings) {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            headers.append(header::WARNING, value);
        }
    }
    answered
}

/// Asks as a user, as if over HTTP, for a component that acts with the user's rights.
pub(crate) async fn ask(
    shared: &Arc<Shared>,
    user: &User,
    method: Method,
    path: &str,
    object: &Value,
) -> Result<Value, Status> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let (address, query) = (request::parse(path)?, Query::parse(query));
    shared.authorizer.authorize(user, &Attributes::of(&address, &method, &query, &mut String::new()))?;
    let incoming = Incoming { method, headers: HeaderMap::new(), address, query, user: user.clone() };
    let body = Body::whole(serde_json::to_vec(object).unwrap_or_default());
    let answered = incoming.answer(shared, body, &mut Vec::new(), &mut None).await?;
    let bytes = answered.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(Status::internal_error)
}

/// What a request was about. The answer carries it in its extensions, for whoever counts requests: it has as many values
/// as the program has resources, however many spaces, definitions and objects there are.
#[derive(Clone, Debug)]
pub struct About {
    /// The verb: `get`, `list`, `create` ….
    pub verb: &'static str,
    /// What kind of object it was done to; none if somebody defined the kind.
    pub resource: Option<Arc<Resource>>,
    /// The part of the object, if it is one that objects of the kind have.
    pub subresource: Option<String>,
}

/// A request that may be answered.
struct Incoming {
    method: Method,
    headers: HeaderMap,
    address: Address,
    query: Query,
    user: User,
}

impl Incoming {
    /// Finds out who asks for what, and refuses what they may not do before anything else. Nobody is turned away by what
    /// another server has already changed.
    async fn admit(shared: &Shared, parts: http::request::Parts) -> Result<Self, Status> {
        let address = request::parse(parts.uri.path())?;
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let known = shared.store.stored().revision();
        let user = match admitted(shared, &parts, &address, &query) {
            Err(_) if shared.store.catch_up().await.is_ok_and(|now| now > known) => {
                admitted(shared, &parts, &address, &query)
            }
            decided => decided,
        }?;
        Ok(Self { method: parts.method, address, query, user, headers: parts.headers })
    }

    async fn answer<B>(
        self,
        shared: &Arc<Shared>,
        body: B,
        warnings: &mut Vec<String>,
        about: &mut Option<About>,
    ) -> Result<Response<Body>, Status>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let Self { method, headers, address, query, user } = self;
        match address.target {
            Target::Resource { group, version, path } => {
                if method != Method::GET && method != Method::HEAD {
                    // What is written is decided on by what there is, and not by what there was before another server's writes.
                    shared.store.catch_up().await?;
                }
                let kinds = Kinds::of(shared, &address.space);
                let Some(found) = kinds.resource(&group, &version, &path.resource) else {
                    let built_in = shared.registry.group(&group).is_some();
                    return Err(if built_in { Status::no_such_resource() } else { Status::no_such_page() });
                };
                let call = Call::new(shared.clone(), user, found, address.space, path, query, &method, &headers)?;
                *about = Some(call.about());
                let body = read_body(body, shared.config.max_body).await?;
                verbs::run(call, body, warnings).await
            }
            Target::Version { group, version } => {
                crate::paths::version(shared, &method, &address.space, &group, &version, &headers)
            }
            Target::Other(path) => crate::paths::other(shared, &method, &address.space, &path, &query, &headers).await,
        }
    }
}

/// Whoever asks, if they may, for something in a space that there is.
fn admitted(shared: &Shared, parts: &http::request::Parts, address: &Address, query: &Query) -> Result<User, Status> {
    let user = authenticate(shared, parts, &address.space)?;
    let authorizer = &shared.authorizer;
    let other = impersonate(&user, &parts.headers, &parts.uri, &address.space, |attributes| {
        authorizer.authorize(&user, attributes)
    })?;
    let user = other.unwrap_or(user);
    authorizer.authorize(&user, &Attributes::of(address, &parts.method, query, &mut String::new()))?;
    match &address.space {
        SpaceScope::One(space) if !spaces::exists(shared, space) => Err(Status::no_such_page()),
        _ => Ok(user),
    }
}

/// Who asks. Somebody who shows a credential that is not good here is not let in as somebody without one.
fn authenticate(shared: &Shared, parts: &http::request::Parts, space: &SpaceScope) -> Result<User, Status> {
    let Some(user) = parts.extensions.get::<User>() else {
        let authorization = header_text(&parts.headers, &header::AUTHORIZATION);
        let (scheme, token) = authorization.trim().split_once(' ').unwrap_or_default();
        if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() {
            return Err(Status::unauthorized());
        }
        return Ok(User::anonymous());
    };
    user.check_place(space, |name| spaces::uid(shared, name))?;
    Ok(user.clone())
}

/// The first value of a header; empty if there is none, or if it is not text.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

async fn read_body<B>(body: B, limit: usize) -> Result<Bytes, Status>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let limited = http_body_util::Limited::new(body, limit);
    match limited.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Status::too_large(limit)),
        Err(error) => Err(Status::bad_request(error.to_string())),
    }
}
