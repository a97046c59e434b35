//! Clients that take their time: who says nothing, or only a little now and then, is shown out, and takes nothing from others.

use std::time::Duration;

use orrery::up::Limits;
use orrery_testkit::ControlPlane;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use tokio_rustls::client::TlsStream;

use crate::wire::{connect, others_are_served, read};

const CLIENTS: usize = 200;

async fn impatient() -> ControlPlane {
    let limits = Limits { greeting: Duration::from_secs(1), request: Duration::from_secs(1), ..Limits::default() };
    ControlPlane::start_with(|config| config.limits = limits).await
}

/// Begins a request. Whom the server shows out before that begins again.
async fn begin(control_plane: &ControlPlane, text: &str) -> TlsStream<TcpStream> {
    loop {
        let Ok(mut stream) = connect(control_plane).await else { continue };
        if stream.write_all(text.as_bytes()).await.is_ok() && stream.flush().await.is_ok() {
            return stream;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_says_nothing() {
    let control_plane = impatient().await;
    let mut silent = Vec::new();
    for _ in 0..CLIENTS {
        silent.push(TcpStream::connect(control_plane.running().address()).await.expect("it listens"));
    }
    others_are_served(&control_plane).await;
    for mut stream in silent {
        // It ends in one way or the other.
        let _ = stream.read(&mut [0]).await;
    }
    control_plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_never_ends_a_header() {
    let control_plane = impatient().await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let head = "GET /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
        let mut stream = begin(&control_plane, head).await;
        clients.push(tokio::spawn(async move {
            // A letter now and then does not help.
            let ends = async {
                while stream.write_all(b"a").await.is_ok() && stream.flush().await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await
                }
            };
            ends.await;
        }));
    }
    others_are_served(&control_plane).await;
    for client in clients {
        client.await.expect("it is shown out");
    }
    control_plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_never_ends_a_body() {
    let control_plane = impatient().await;
    let mut clients = Vec::new();
    let request = "POST /api/v1/namespaces HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{";
    for _ in 0..CLIENTS {
        clients.push(begin(&control_plane, request).await);
    }
    others_are_served(&control_plane).await;
    for mut stream in clients {
        let answer = loop {
            match read(&mut stream).await {
                Some(answer) => break answer,
                None => stream = begin(&control_plane, request).await,
            }
        };
        let status: serde_json::Value = serde_json::from_slice(&answer.body).expect("a Status");
        assert_eq!((answer.code, &status["reason"]), (504, &serde_json::json!("Timeout")), "{status}");
    }
    control_plane.stop().await;
}
