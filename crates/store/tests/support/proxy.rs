//! A connection to a server that a test can cut and mend.

use std::sync::Arc;

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Passes connections on to a server, unless it is cut.
pub(crate) struct Proxy {
    endpoint: String,
    open: Arc<watch::Sender<bool>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy for the server at an endpoint.
    pub(crate) async fn start(target: &str) -> Self {
        let address = target.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("its address"));
        let open = Arc::new(watch::Sender::new(true));
        let accepting = tokio::spawn(accept(listener, address, open.clone()));
        Self { endpoint, open, accepting }
    }

    /// Where clients find it.
    pub(crate) fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    /// Breaks all connections and lets no new ones through.
    pub(crate) fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Lets connections through again.
    pub(crate) fn mend(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, address: String, open: Arc<watch::Sender<bool>>) {
    while let Ok((client, _)) = listener.accept().await {
        let mut open = open.subscribe();
        let address = address.clone();
        // Each ends when it is cut, which dropping the proxy does.
        tokio::spawn(async move {
            if *open.borrow_and_update() {
                tokio::select! {
                    _ = pass_on(client, &address) => {}
                    _ = open.wait_for(|open| !open) => {}
                }
            }
        });
    }
}

async fn pass_on(mut client: TcpStream, address: &str) -> std::io::Result<()> {
    let mut server = TcpStream::connect(address).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}
