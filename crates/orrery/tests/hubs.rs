//! Two hubs on one etcd are one installation.

#[path = "../../store/tests/support/etcd_server.rs"]
#[expect(dead_code, reason = "the store's tests use more of it")]
mod etcd_server;
#[path = "support/hub.rs"]
#[expect(dead_code, reason = "each test uses a part")]
mod hub;
#[path = "../../store/tests/support/proxy.rs"]
mod proxy;

use std::{fs, path::Path};

use bytes::Bytes;
use etcd_server::EtcdServer;
use http::Method;
use hub::{CONFIG_MAPS, config_map, connect, up};
use orrery::{client::Client, kubeconfig::Kubeconfig};
use orrery_testkit::Program;
use proxy::Proxy;
use serde_json::json;

fn hub_on(server: &EtcdServer, data_dir: &Path) -> Program {
    let store = server.endpoint().replace("http://", "etcd://");
    up(data_dir, &["--store", &store])
}

async fn shows(client: &mut Client, metric: &str) -> bool {
    let (_, body) = client.send_raw(Method::GET, "/metrics", Bytes::new()).await.expect("an answer");
    String::from_utf8_lossy(&body).lines().any(|line| line == metric)
}

async fn leads(client: &mut Client) -> bool {
    shows(client, "orrery_controllers_leading 1").await
}

/// Waits until a hub is the source of works and has its broker.
async fn becomes_the_source(client: &mut Client) {
    while !shows(client, "orrery_works_connected 1").await {
        tokio::task::yield_now().await;
    }
}

/// Deletes a namespace, which is gone only when a controller has emptied it.
async fn namespace_goes(client: &mut Client, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    client.send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await.expect("it is made");
    let path = format!("/api/v1/namespaces/{name}");
    client.send(Method::DELETE, &path, None).await.expect("its end begins");
    while client.get_opt(&path).await.expect("an answer").is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hubs_are_one_installation_and_one_of_them_leads() {
    let server = EtcdServer::start();
    let directory = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| directory.path().join(name));
    let (one, two) = (hub_on(&server, &paths[0]), hub_on(&server, &paths[1]));

    // Both are known by one authority, and a certificate from one is good at the other.
    let authority = |hub: &Program| {
        Kubeconfig::read(hub.kubeconfig()).unwrap().cluster("orrery").unwrap()["certificate-authority-data"].clone()
    };
    assert_eq!(authority(&one), authority(&two));
    let crossed = directory.path().join("crossed");
    fs::write(&crossed, fs::read_to_string(one.kubeconfig()).unwrap().replace(one.url(), two.url())).unwrap();
    let (mut first, mut second) = (connect(one.kubeconfig()).await, connect(&crossed).await);

    // What is written through one is read through the other at once.
    for number in 0..20 {
        let (writer, reader) = if number % 2 == 0 { (&mut first, &mut second) } else { (&mut second, &mut first) };
        let name = format!("shared-{number}");
        writer.send(Method::POST, CONFIG_MAPS, Some(&config_map(&name))).await.unwrap();
        assert_eq!(reader.get(&format!("{CONFIG_MAPS}/{name}")).await.unwrap()["data"]["a"], "1");
    }

    // One of them leads, whoever is asked the controllers work.
    while !(leads(&mut first).await || leads(&mut second).await) {
        tokio::task::yield_now().await;
    }
    assert_ne!(leads(&mut first).await, leads(&mut second).await);
    namespace_goes(&mut first, "gone-1").await;
    namespace_goes(&mut second, "gone-2").await;

    // The one that leads is the source of works, under one name.
    let source = |hub: &Program| hub.part("broker").split_once('(').unwrap().1.to_owned();
    assert_eq!(source(&one), source(&two));
    let (leads_now, other) =
        if leads(&mut first).await { (&mut first, &mut second) } else { (&mut second, &mut first) };
    becomes_the_source(leads_now).await;
    assert!(shows(other, "orrery_works_source 0").await);

    // The leader is killed: the other takes over.
    let (leader, mut rest, _other) = if leads(&mut first).await { (one, second, two) } else { (two, first, one) };
    leader.kill();
    namespace_goes(&mut rest, "gone-3").await;
    assert!(leads(&mut rest).await);
    becomes_the_source(&mut rest).await;
    let lease =
        rest.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/orrery-controllers").await.unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 1);

    // A hub that comes back is one of the installation again.
    let back = hub_on(&server, &directory.path().join("three"));
    assert_eq!(authority(&back), authority(&_other));
    let mut third = connect(back.kubeconfig()).await;
    assert_eq!(third.get(&format!("{CONFIG_MAPS}/shared-7")).await.unwrap()["data"]["a"], "1");
    assert!(!leads(&mut third).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_is_not_ready_while_etcd_does_not_answer() {
    let server = EtcdServer::start();
    let proxy = Proxy::start(&server.endpoint()).await;
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &["--store", &proxy.endpoint().replace("http://", "etcd://")]);
    let mut client = connect(hub.kubeconfig()).await;
    let mut ask = async |path: &str| {
        let (code, body) = client.send_raw(Method::GET, path, Bytes::new()).await.expect("an answer");
        (code, String::from_utf8(body.to_vec()).expect("text"))
    };
    while ask("/readyz").await != (200, "ok".to_owned()) {
        tokio::task::yield_now().await;
    }
    proxy.freeze();
    let failed = "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\n\
                  [+]informer-sync ok\n[+]shutdown ok\nreadyz check failed\n";
    assert_eq!(ask("/readyz").await, (500, failed.to_owned()));
    let (code, why) = ask("/readyz/etcd").await;
    assert!(code == 500 && why.starts_with("internal server error: the store did not answer"), "{why}");
    assert_eq!(ask("/livez").await.0, 500);
    assert_eq!(ask("/livez?exclude=etcd").await, (200, "ok".to_owned()));
    proxy.mend();
    while ask("/readyz").await.0 != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_through_one_hub_is_decided_on_by_what_was_written_through_the_other() {
    let mut server = EtcdServer::start();
    let directory = tempfile::tempdir().unwrap();
    let hubs = ["one", "two"].map(|name| hub_on(&server, &directory.path().join(name)));
    let (mut first, mut second) = (connect(hubs[0].kubeconfig()).await, connect(hubs[1].kubeconfig()).await);
    first.send(Method::POST, CONFIG_MAPS, Some(&config_map("shared"))).await.unwrap();
    let path = format!("{CONFIG_MAPS}/shared");
    for round in 0..30 {
        // What looks as if nothing changed to whoever is behind is a change.
        for (client, value) in [(&mut first, "2"), (&mut second, "1")] {
            let mut object = config_map("shared");
            object["data"]["a"] = value.into();
            client.send(Method::PUT, &path, Some(&object)).await.unwrap();
        }
        assert_eq!(first.get(&path).await.unwrap()["data"]["a"], "1", "round {round}");
        // What one has made, the other finds, goes into and removes.
        let (space, name) = (format!("space-{round}"), format!("namespace-{round}"));
        let made =
            json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": space}});
        first.send(Method::POST, "/apis/core.orrery.io/v1alpha1/logicalspaces", Some(&made)).await.unwrap();
        let namespace = json!({"metadata": {"name": name}});
        second.send(Method::POST, &format!("/spaces/{space}/api/v1/namespaces"), Some(&namespace)).await.unwrap();
        let inside = format!("/spaces/{space}/api/v1/namespaces/{name}/configmaps");
        first.send(Method::POST, &inside, Some(&config_map("inside"))).await.unwrap();
        second.send(Method::DELETE, &format!("{inside}/inside"), None).await.unwrap();
        first.send(Method::POST, &inside, Some(&config_map("inside"))).await.unwrap();
    }

    // Who is content with what a hub knows needs nobody else.
    server.kill();
    for query in ["", "/shared"] {
        first.get(&format!("{CONFIG_MAPS}{query}?resourceVersion=0")).await.unwrap();
    }
}
