//! A connection on which anything can be written.

use std::{sync::Arc, time::Duration};

use orrery::access::Access;
use orrery_testkit::ControlPlane;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Vec<u8>,
}

/// Connects as somebody who may do everything. Who is slow to greet, as everybody is on a busy machine, is shown out.
pub(crate) async fn connect(control_plane: &ControlPlane) -> std::io::Result<TlsStream<TcpStream>> {
    let access = Access::read(control_plane.admin_kubeconfig()).expect("a kubeconfig");
    let tls = TlsConnector::from(Arc::new(access.tls().expect("its certificates are good")));
    let address = control_plane.running().address();
    let stream = TcpStream::connect(address).await.expect("it listens");
    tls.connect(ServerName::IpAddress(address.ip().into()), stream).await
}

/// Sends a request, byte by byte as it stands, and reads the answer. The old version of HTTP has no chunks.
pub(crate) async fn send(
    control_plane: &ControlPlane,
    method: &str,
    path: &str,
    content_type: Option<&str>,
    body: &[u8],
) -> Answer {
    try_send(control_plane, method, path, content_type, body).await.expect("an answer")
}

/// The same by somebody who may be shown out before there is an answer.
async fn try_send(
    control_plane: &ControlPlane,
    method: &str,
    path: &str,
    content_type: Option<&str>,
    body: &[u8],
) -> Option<Answer> {
    let mut stream = connect(control_plane).await.ok()?;
    let mut request = format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\n").into_bytes();
    if let Some(kind) = content_type {
        request.extend(format!("Content-Type: {kind}\r\n").into_bytes());
    }
    request.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
    request.extend(body);
    // A server that has heard enough may answer and close before all is written.
    let _ = stream.write_all(&request).await;
    read(&mut stream).await
}

/// Reads an answer until the connection ends; none if it ends before there is one.
pub(crate) async fn read(stream: &mut TlsStream<TcpStream>) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16384];
    // It ends with a farewell or without one.
    while let Ok(read @ 1..) = stream.read(&mut piece).await {
        bytes.extend_from_slice(&piece[..read]);
    }
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("an answer has a code");
    Some(Answer { code, body: bytes.split_off(end + 4) })
}

/// Others are served as always. Where the server has little patience, whoever a busy machine makes late asks again.
pub(crate) async fn others_are_served(control_plane: &ControlPlane) {
    const PATIENCE: Duration = Duration::from_secs(60);
    let served = async |path: &str| {
        loop {
            match try_send(control_plane, "GET", path, None, b"").await {
                Some(answer) if answer.code != 504 => return answer,
                _ => {}
            }
        }
    };
    let both = async { (served("/api/v1/namespaces/default").await, served("/readyz").await) };
    let (namespace, ready) = tokio::time::timeout(PATIENCE, both).await.expect("it is answered");
    assert_eq!((namespace.code, ready.body), (200, b"ok".to_vec()));
}
