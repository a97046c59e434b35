//! A connection to an API that costs the client as little as possible: answers are counted, not read.

use std::{path::Path, sync::Arc};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use orrery::{access::Access, client::Client};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::TlsConnector;

/// An API as a kubeconfig describes it.
#[derive(Clone)]
pub(crate) struct Api {
    access: Access,
    tls: Arc<ClientConfig>,
}

impl Api {
    pub(crate) fn read(kubeconfig: &Path) -> anyhow::Result<Self> {
        let access = Access::read(kubeconfig)?;
        let tls = Arc::new(access.tls()?);
        Ok(Self { access, tls })
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let uri: http::Uri = self.access.server.parse()?;
        let host = uri.host().context("the address of the server names no host")?.trim_matches(['[', ']']).to_owned();
        let stream = TcpStream::connect((host.as_str(), uri.port_u16().unwrap_or(443))).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.access.server_name.clone().unwrap_or(host))?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await?;
        let (requests, connection) = http1::Builder::new().handshake(TokioIo::new(stream)).await?;
        let token = self.access.token.as_deref().map(|token| format!("Bearer {token}").parse()).transpose()?;
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        Ok(Connection { requests, host: host.parse()?, token, accept: "application/json", driver })
    }

    /// A client that reads its answers, for what is not measured.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        Client::connect(&self.access).await
    }

    /// What the server says it is.
    pub(crate) async fn version(&self) -> anyhow::Result<String> {
        let version = self.client().await?.get("/version").await?;
        Ok(format!("{} {}", self.access.server, version["gitVersion"].as_str().unwrap_or_default()))
    }
}

/// One request at a time.
pub(crate) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    token: Option<HeaderValue>,
    accept: &'static str,
    driver: JoinHandle<()>,
}

impl Connection {
    /// Asks for answers in protobuf from now on.
    pub(crate) fn prefer_protobuf(&mut self) {
        self.accept = "application/vnd.kubernetes.protobuf";
    }

    /// Sends a request that must succeed and returns the size of the answer.
    pub(crate) async fn send(&mut self, method: Method, path: &str, body: impl Into<Bytes>) -> anyhow::Result<usize> {
        let (status, size) = self.ask(method, path, body).await?;
        ensure!(status.is_success(), "{path}: {status}");
        Ok(size)
    }

    /// Sends a request and returns the status and size of the answer.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> anyhow::Result<(StatusCode, usize)> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::ACCEPT, self.accept)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body.into()))?;
        if let Some(token) = &self.token {
            request.headers_mut().insert(header::AUTHORIZATION, token.clone());
        }
        self.requests.ready().await?;
        let answer = self.requests.send_request(request).await?;
        let status = answer.status();
        let mut body = answer.into_body();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            size += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok((status, size))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
