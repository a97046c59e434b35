//! A small client of the Kubernetes API: JSON over one connection, to a server far away or in the same process.

mod kube_rs;

use std::{fmt, sync::Arc};

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use orrery_apiserver::{Service, identity::User};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::TlsConnector;
use tower_service::Service as _;

pub use self::kube_rs::kube_in_process;
use crate::access::Access;

/// The most that is read of one answer.
const LARGEST_ANSWER: usize = 64 << 20;

/// A client of one API. It asks one thing at a time.
pub struct Client {
    transport: Transport,
    /// What stands before every path.
    prefix: String,
}

enum Transport {
    Remote { requests: SendRequest<Full<Bytes>>, host: String, token: Option<String>, connection: JoinHandle<()> },
    InProcess { service: Service, user: User },
}

/// What the server answered instead of doing what it was asked.
#[derive(Debug)]
pub struct Refusal {
    /// The HTTP code.
    pub code: u16,
    /// The server's words.
    pub message: String,
    /// Where to go on with what could not be read as one, if the server says so.
    pub continues: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for Refusal {}

impl Client {
    /// Connects to the API that somebody has access to.
    pub async fn connect(access: &Access) -> anyhow::Result<Self> {
        let uri: http::Uri = access.server.parse().with_context(|| format!("{:?} is not a URL", access.server))?;
        let host = uri.host().context("the address of the server names no host")?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        if uri.scheme_str() != Some("https") {
            bail!("the address of the server, {}, does not begin with https://", access.server);
        }
        let unreachable = || format!("cannot reach {}: check that `orrery up` runs there", access.server);
        let stream = TcpStream::connect((host.as_str(), port)).await.with_context(unreachable)?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(access.server_name.clone().unwrap_or(host))?;
        let connector = TlsConnector::from(Arc::new(access.tls()?));
        let stream =
            connector.connect(name, stream).await.with_context(|| format!("cannot trust {}", access.server))?;
        let (requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the connection, when the client is dropped at the latest.
        let connection = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the API ended");
            }
        });
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { transport: Transport::Remote { requests, host, token: access.token.clone(), connection }, prefix })
    }

    /// Asks a server in this process, as somebody.
    pub fn in_process(service: Service, user: User) -> Self {
        Self { transport: Transport::InProcess { service, user }, prefix: String::new() }
    }

    /// Reads something.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, None).await
    }

    /// Reads something that need not be there.
    pub async fn get_opt(&mut self, path: &str) -> anyhow::Result<Option<Value>> {
        match self.get(path).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if refused_with(&error, 404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks for something and gives back the code and the body of the answer, whatever they are.
    pub async fn send_raw(&mut self, method: Method, path: &str, body: Bytes) -> anyhow::Result<(u16, Bytes)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.prefix))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        self.transport.send(request).await
    }

    /// Asks for something to be done. Anything but success is a [`Refusal`].
    pub async fn send(&mut self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let (code, bytes) = self.send_raw(method, path, body.into()).await?;
        let answer = serde_json::from_slice(&bytes).ok();
        if (200..300).contains(&code) {
            return answer.context("the server's answer is not JSON");
        }
        let answer: Value = answer.unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = text(&answer["message"]).unwrap_or_else(|| String::from_utf8_lossy(&bytes).trim().to_owned());
        Err(Refusal { code, message, continues: text(&answer["metadata"]["continue"]) }.into())
    }
}

impl Transport {
    async fn send(&mut self, mut request: Request<Full<Bytes>>) -> anyhow::Result<(u16, Bytes)> {
        match self {
            Self::Remote { requests, host, token, .. } => {
                request.headers_mut().insert(header::HOST, host.parse()?);
                if let Some(token) = token {
                    let mut value: http::HeaderValue = format!("Bearer {token}").parse()?;
                    value.set_sensitive(true);
                    request.headers_mut().insert(header::AUTHORIZATION, value);
                }
                requests.ready().await.context("the server closed the connection")?;
                read(requests.send_request(request).await.context("the server did not answer")?).await
            }
            Self::InProcess { service, user } => {
                request.extensions_mut().insert(user.clone());
                match service.call(request).await {
                    Ok(response) => read(response).await,
                    Err(never) => match never {},
                }
            }
        }
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        if let Self::Remote { connection, .. } = self {
            connection.abort();
        }
    }
}

async fn read<B>(response: Response<B>) -> anyhow::Result<(u16, Bytes)>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let code = response.status().as_u16();
    let body = http_body_util::Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!(error)).context("the server's answer did not arrive as a whole")?;
    Ok((code, body.to_bytes()))
}

/// Whether an error is the server's refusal with this code.
pub fn refused_with(error: &anyhow::Error, code: u16) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == code)
}
