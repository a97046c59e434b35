//! Listening, letting connections in, and ending in order.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    Config, Counters,
    access::Access,
    connection::{self, End},
    exchange::Exchange,
    tls::common_name,
    wire::Reason,
};

/// How long connections are given to end.
const PARTING: Duration = Duration::from_secs(5);
/// A pause after a failure to accept, which is nearly always a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A broker that listens, and serves when it runs.
pub struct Broker {
    exchange: Arc<Exchange>,
    listeners: Vec<Listener>,
}

struct Listener {
    tcp: TcpListener,
    /// How to encrypt, as it is now; absent means plain text.
    tls: Option<watch::Receiver<Arc<ServerConfig>>>,
}

/// Looks at a broker that runs.
#[derive(Clone)]
pub struct Handle(Arc<Exchange>);

impl Handle {
    /// What the broker has seen.
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Bytes of messages that wait for clients at the moment.
    pub fn waiting_bytes(&self) -> usize {
        self.0.waiting()
    }
}

impl Broker {
    /// A broker that listens nowhere yet.
    pub fn new(config: Config, access: Access) -> Self {
        Self { exchange: Arc::new(Exchange::new(config, access)), listeners: Vec::new() }
    }

    /// Takes connections with TLS from here. The settings may be renewed while it runs.
    pub fn listen_tls(&mut self, tcp: TcpListener, tls: watch::Receiver<Arc<ServerConfig>>) {
        self.listeners.push(Listener { tcp, tls: Some(tls) });
    }

    /// Takes connections without TLS from here: passwords and works can be read on the way.
    pub fn listen_plaintext(&mut self, tcp: TcpListener) {
        self.listeners.push(Listener { tcp, tls: None });
    }

    /// Looks at the broker while it runs.
    pub fn handle(&self) -> Handle {
        Handle(self.exchange.clone())
    }

    /// Serves until `shutdown`, then tells every client and returns when all connections are closed.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { exchange, listeners } = self;
        let mut tasks = JoinSet::new();
        let (stop, stopped) = watch::channel(());
        for listener in listeners {
            tasks.spawn(accept(listener, exchange.clone(), stopped.clone()));
        }
        let warden = warden(&exchange);
        tokio::select! {
            () = shutdown => {}
            () = warden => {}
        }
        drop(stop);
        exchange.close();
        // What does not end is ended with the set.
        let _late = timeout(PARTING, async { while tasks.join_next().await.is_some() {} }).await;
    }
}

/// Ends the connections of clients that are not let in any more.
async fn warden(exchange: &Exchange) {
    let mut clients = exchange.access.subscribe();
    while clients.changed().await.is_ok() {
        exchange.expel_strangers();
    }
}

/// Accepts connections until the broker stops, then waits for those it accepted.
async fn accept(listener: Listener, exchange: Arc<Exchange>, mut stopped: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.tcp.accept() => accepted,
            _ = stopped.changed() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let is_room = exchange.counters.connections.load(Relaxed) < exchange.config.limits.connections;
        let place = exchange.strangers.clone().try_acquire_owned().ok().filter(|_| is_room);
        let Some(place) = place else {
            exchange.counters.refused.fetch_add(1, Relaxed);
            tracing::warn!(%peer, "refused a connection: there are too many");
            continue;
        };
        exchange.counters.connections.fetch_add(1, Relaxed);
        let tls = listener.tls.as_ref().map(|tls| tls.borrow().clone());
        let (exchange, mut stopped) = (exchange.clone(), stopped.clone());
        connections.spawn(async move {
            let end = tokio::select! {
                end = connect(stream, tls, place, &exchange) => end,
                // Those who have come in are told; the others have nothing to lose.
                () = strangers_stop(&mut stopped) => End::Silent,
            };
            exchange.counters.connections.fetch_sub(1, Relaxed);
            tell(&exchange.counters, peer, &end);
        });
    }
    while connections.join_next().await.is_some() {}
}

/// Gives up on connections that do not end by themselves after the broker stopped.
async fn strangers_stop(stopped: &mut watch::Receiver<()>) {
    let _stopped = stopped.changed().await;
    tokio::time::sleep(PARTING / 2).await;
}

async fn connect(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    place: OwnedSemaphorePermit,
    exchange: &Exchange,
) -> End {
    // Acknowledgements are small and should not wait for more of them.
    if let Err(error) = stream.set_nodelay(true) {
        return End::Io(error);
    }
    let Some(tls) = tls else { return connection::serve(stream, None, place, exchange).await };
    // The settings may be shared with a listener for another protocol.
    let mut tls = (*tls).clone();
    tls.alpn_protocols = vec![b"mqtt".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let handshake = timeout(exchange.config.limits.introduction, acceptor.accept(stream)).await;
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return End::Handshake(error),
        Err(_) => return End::Silent,
    };
    // A certificate that names nobody is as good as one that names somebody unknown: nobody is listed without a name.
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let certificate = shown.map(|certificate| common_name(certificate).unwrap_or_default());
    connection::serve(stream, certificate, place, exchange).await
}

/// One line and one number for everything that is not the client's own leaving.
fn tell(counters: &Counters, peer: SocketAddr, end: &End) {
    match end {
        End::Left | End::Io(_) | End::Lost => tracing::debug!(%peer, %end, "a connection ended"),
        End::Handshake(_) | End::Stranger | End::Silent | End::Crowded => {
            counters.refused.fetch_add(1, Relaxed);
            tracing::warn!(%peer, %end, "refused a connection");
        }
        End::Fault(_) => {
            counters.faults.fetch_add(1, Relaxed);
            tracing::warn!(%peer, %end, "ended a connection");
        }
        End::Closed(reason) => {
            if *reason == Reason::Quota {
                counters.behind.fetch_add(1, Relaxed);
            }
            tracing::info!(%peer, %end, "ended a connection");
        }
    }
}
