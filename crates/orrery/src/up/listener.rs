//! Connections: accepted, greeted over TLS, served in HTTP/1.1 or HTTP/2, and ended in order.
//!
//! Every connection is a task of the listener, which waits for all of them when it stops.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use orrery_apiserver::identity::User;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::answers::Answers;

/// What clients are given.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most connections at a time; more wait to be accepted.
    pub connections: usize,
    /// How long a client may take for its side of the TLS handshake, until its first request, and for the head of each.
    pub greeting: Duration,
    /// How long a request may take until its answer begins, its body included.
    pub request: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 65_536, greeting: Duration::from_secs(10), request: Duration::from_secs(60) }
    }
}

/// How long what is under way may take when the server stops.
const FAREWELL: Duration = Duration::from_secs(10);
/// How often a silent client on HTTP/2 is asked whether it is still there, and how long it may take to say so.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// Most requests at a time on one connection of HTTP/2. Every watch is one.
const STREAMS: u32 = 1000;
/// How long to wait when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Serves connections until told to stop, and then until they have ended.
pub(super) async fn run(
    listener: TcpListener,
    tls: watch::Receiver<Arc<ServerConfig>>,
    answers: Answers,
    limits: Limits,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let accept = async {
            let permit = room.clone().acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (config, answers, stop) = (tls.borrow().clone(), answers.clone(), stop.clone());
                connections.spawn(async move {
                    if let Err(problem) = serve(stream, config, answers, limits, stop).await {
                        tracing::debug!(%peer, "a connection ended early: {problem:#}");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(NO_ROOM).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Tells a client that forgot TLS.
async fn refuse_plaintext(mut stream: TcpStream, greeting: Duration) -> anyhow::Result<()> {
    // Closing a connection with something unread in it would take the answer back.
    let mut request = [0; 4096];
    timeout(greeting, stream.read(&mut request)).await??;
    let answer = "HTTP/1.0 400 Bad Request\r\n\r\nThis is an HTTPS server: begin the address with https://\n";
    stream.write_all(answer.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

/// Serves one connection until it ends.
async fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    answers: Answers,
    limits: Limits,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let greeting = limits.greeting;
    stream.set_nodelay(true)?;
    let mut first = [0];
    // A TLS handshake begins with 22; an HTTP request does not.
    if timeout(greeting, stream.peek(&mut first)).await?? == 1 && first[0].is_ascii_alphabetic() {
        return refuse_plaintext(stream, greeting).await;
    }
    let stream = timeout(greeting, TlsAcceptor::from(config).accept(stream)).await??;
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let user = certificate.map(|certificate| User::from_certificate(certificate)).transpose()?;
    let asked = Arc::new(AtomicBool::new(false));
    let first = asked.clone();
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        first.store(true, Ordering::Relaxed);
        if let Some(user) = &user {
            request.extensions_mut().insert(user.clone());
        }
        let answers = answers.clone();
        async move { Ok::<Response<_>, Infallible>(answers.answer(request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(greeting);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .max_concurrent_streams(STREAMS);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Neither version of HTTP limits how long a client may say nothing at all.
    let silence = async {
        tokio::time::sleep(greeting).await;
        if asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = silence => anyhow::bail!("nothing was asked for"),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(FAREWELL, connection).await?
        }
    };
    ended.map_err(|error| anyhow::anyhow!(error))
}
