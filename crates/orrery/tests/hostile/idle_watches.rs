//! Ten thousand watches that wait: they cost memory, and nothing else until something happens.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use orrery::access::Access;
use orrery_testkit::ControlPlane;
use rustls::pki_types::ServerName;
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::TlsConnector;

use crate::wire::{others_are_served, send};

const CONNECTIONS: usize = 20;
const EACH: usize = 500;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_of_them() {
    let control_plane = ControlPlane::start().await;
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let requests = connect(&control_plane).await;
        connections.spawn(open(requests));
    }
    let mut watches: Vec<Incoming> = Vec::new();
    let mut kept = Vec::new();
    while let Some(opened) = connections.join_next().await {
        let (requests, opened) = opened.expect("they are opened");
        watches.extend(opened);
        kept.push(requests);
    }
    assert_eq!(watches.len(), CONNECTIONS * EACH);
    others_are_served(&control_plane).await;

    // Something happens elsewhere, which none of them is told, and then here, which all are.
    let make = async |namespace: &str| {
        let object = br#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"awaited"}}"#;
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        assert_eq!(send(&control_plane, "POST", &path, Some("application/json"), object).await.code, 201);
    };
    make("kube-public").await;
    make("default").await;
    let mut told = JoinSet::new();
    for mut watch in watches {
        told.spawn(async move {
            let frame = watch.frame().await.expect("it goes on").expect("nothing goes wrong");
            let event: serde_json::Value = serde_json::from_slice(frame.data_ref().expect("data")).expect("one event");
            assert_eq!(
                (&event["type"], &event["object"]["metadata"]["namespace"]),
                (&"ADDED".into(), &"default".into())
            );
        });
    }
    while let Some(ended) = told.join_next().await {
        ended.expect("each is told");
    }
    others_are_served(&control_plane).await;
    drop(kept);
    control_plane.stop().await;
}

/// Opens watches on one connection, and waits until each is answered.
async fn open(mut requests: SendRequest<Empty<Bytes>>) -> (SendRequest<Empty<Bytes>>, Vec<Incoming>) {
    const WATCH: &str = "https://localhost/api/v1/namespaces/default/secrets?watch=true&timeoutSeconds=3600";
    let mut watches = Vec::new();
    for _ in 0..EACH {
        let request = Request::get(WATCH).body(Empty::new()).expect("a request");
        let answer = requests.send_request(request).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        watches.push(answer.into_body());
    }
    (requests, watches)
}

async fn connect(control_plane: &ControlPlane) -> SendRequest<Empty<Bytes>> {
    let access = Access::read(control_plane.admin_kubeconfig()).expect("a kubeconfig");
    let mut tls = access.tls().expect("its certificates are good");
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let address = control_plane.running().address();
    let stream = TcpStream::connect(address).await.expect("it listens");
    let name = ServerName::IpAddress(address.ip().into());
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.expect("it is trusted");
    let (requests, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    // It ends when the last request has.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    requests
}
