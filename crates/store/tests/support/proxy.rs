//! A connection to a server that a test can cut, freeze and mend.

use std::sync::Arc;

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Passes connections on to a server, as long as it is open.
pub(crate) struct Proxy {
    endpoint: String,
    state: Arc<watch::Sender<State>>,
    accepting: JoinHandle<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Connections stay, but nothing gets through.
    Frozen,
    Cut,
}

impl Proxy {
    /// A proxy for the server at an endpoint.
    pub(crate) async fn start(target: &str) -> Self {
        let address = target.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("its address"));
        let state = Arc::new(watch::Sender::new(State::Open));
        let accepting = tokio::spawn(accept(listener, address, state.clone()));
        Self { endpoint, state, accepting }
    }

    /// Where clients find it.
    pub(crate) fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    /// Breaks all connections and lets no new ones through.
    pub(crate) fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Leaves connections as they are and lets nothing through them.
    pub(crate) fn freeze(&self) {
        self.state.send_replace(State::Frozen);
    }

    /// Lets connections through again.
    pub(crate) fn mend(&self) {
        self.state.send_replace(State::Open);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, address: String, state: Arc<watch::Sender<State>>) {
    while let Ok((client, _)) = listener.accept().await {
        // Each ends when it is cut, which dropping the proxy does.
        tokio::spawn(serve(client, address.clone(), state.subscribe()));
    }
}

async fn serve(client: TcpStream, address: String, mut state: watch::Receiver<State>) {
    let mut passing = std::pin::pin!(pass_on(client, &address));
    loop {
        let now = *state.borrow_and_update();
        if now == State::Cut {
            return;
        }
        tokio::select! {
            _ = &mut passing, if now == State::Open => return,
            changed = state.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

async fn pass_on(mut client: TcpStream, address: &str) -> std::io::Result<()> {
    let mut server = TcpStream::connect(address).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}
