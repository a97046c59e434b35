//! `orrery up` as a process: what it prints and leaves behind, how it ends, and what survives.

#[path = "support/hub.rs"]
#[expect(dead_code, reason = "each test uses a part")]
mod hub;

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use bytes::Bytes;
use http::Method;
use hub::{CONFIG_MAPS, config_map, connect, orrery, run, up};
use orrery::kubeconfig::Kubeconfig;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// By what the kubeconfig knows the server.
fn authority(kubeconfig: &Path) -> String {
    let kubeconfig = Kubeconfig::read(kubeconfig).expect("a kubeconfig");
    let cluster = kubeconfig.cluster("orrery").expect("the cluster is in it");
    cluster["certificate-authority-data"].as_str().expect("so is its authority").to_owned()
}

#[tokio::test]
async fn an_empty_directory_becomes_a_control_plane() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let hub = up(&data_dir, &[]);
    let parts: Vec<&str> = hub.said().iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(parts, ["store", "certificates", "controllers", "broker", "api", "kubeconfig", "ready:"]);
    assert!(hub.url().starts_with("https://127.0.0.1:"), "{}", hub.url());
    let kubeconfig = hub.kubeconfig().to_owned();
    assert_eq!(kubeconfig, data_dir.join("admin.kubeconfig"));
    assert!(hub.broker_url().starts_with("mqtts://127.0.0.1:"), "{}", hub.broker_url());
    let ready = format!("ready: {} (broker {}, kubeconfig {})", hub.url(), hub.broker_url(), kubeconfig.display());
    assert_eq!(hub.said().last(), Some(&ready));
    assert_eq!((mode(&kubeconfig), mode(&data_dir)), (0o600, 0o700));

    let mut client = connect(&kubeconfig).await;
    let namespaces = client.get("/api/v1/namespaces").await.unwrap();
    let names: Vec<&str> =
        namespaces["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    for check in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(
            client.send_raw(Method::GET, check, Bytes::new()).await.unwrap(),
            (200, Bytes::from("ok")),
            "{check}"
        );
    }
    drop(client);
    assert!(hub.stop().success());
}

#[tokio::test]
async fn a_restart_keeps_the_authority_and_what_was_added_to_the_kubeconfig() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let path = hub.kubeconfig().to_owned();
    let (first, first_url) = (authority(&path), hub.url().to_owned());
    let mut kubeconfig = Kubeconfig::read(&path).unwrap();
    kubeconfig.set_cluster("orrery-team-a", serde_json::json!({"server": format!("{first_url}/spaces/team-a")}));
    kubeconfig.set_context("orrery-team-a", "orrery-team-a", "orrery");
    kubeconfig.use_context("orrery-team-a");
    kubeconfig.write(&path).unwrap();
    assert!(hub.stop().success());

    let hub = up(directory.path(), &[]);
    assert_eq!(authority(&path), first);
    let kubeconfig = Kubeconfig::read(&path).unwrap();
    assert_eq!(kubeconfig.current_context(), "orrery-team-a");
    let moved = kubeconfig.cluster("orrery-team-a").unwrap()["server"].as_str().unwrap();
    assert_eq!(moved, format!("{}/spaces/team-a", hub.url()));
    assert_eq!(kubeconfig.cluster("orrery").unwrap()["server"], hub.url());
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let kubeconfig = hub.kubeconfig().to_owned();
    let mut client = connect(&kubeconfig).await;
    for number in 0..20 {
        client.send(Method::POST, CONFIG_MAPS, Some(&config_map(&format!("kept-{number}")))).await.unwrap();
    }
    hub.kill();

    let hub = up(directory.path(), &[]);
    let mut client = connect(hub.kubeconfig()).await;
    for number in 0..20 {
        let kept = client.get(&format!("{CONFIG_MAPS}/kept-{number}")).await.unwrap();
        assert_eq!(kept["data"]["a"], "1");
    }
}

#[tokio::test]
async fn watches_end_in_order_when_the_program_stops() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let mut client = connect(hub.kubeconfig()).await;
    client.send(Method::POST, CONFIG_MAPS, Some(&config_map("seen"))).await.unwrap();
    let selected = format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dseen");
    let watch = tokio::spawn(async move { client.send_raw(Method::GET, &selected, Bytes::new()).await });
    // The watch is there when it is counted beside those of the controllers.
    let mut other = connect(hub.kubeconfig()).await;
    let counted =
        "apiserver_request_total{verb=\"watch\",group=\"\",resource=\"configmaps\",subresource=\"\",code=\"200\"} 1";
    while !metrics(&mut other).await.contains(counted) {
        tokio::task::yield_now().await;
    }
    drop(other);
    assert!(hub.stop().success());
    let (code, body) = watch.await.unwrap().expect("the answer arrives as a whole");
    let event: serde_json::Value = serde_json::from_slice(&body).expect("one event");
    assert_eq!((code, event["type"].as_str().unwrap()), (200, "ADDED"));
}

async fn metrics(client: &mut orrery::client::Client) -> String {
    let (code, body) = client.send_raw(Method::GET, "/metrics", Bytes::new()).await.expect("an answer");
    assert_eq!(code, 200);
    String::from_utf8(body.to_vec()).expect("text")
}

#[tokio::test]
async fn metrics_tell_of_requests_and_never_of_spaces() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let mut client = connect(hub.kubeconfig()).await;
    let spaces = "/apis/core.orrery.io/v1alpha1/logicalspaces";
    for number in 0..3 {
        let space = serde_json::json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": format!("secretive-{number}")}});
        client.send(Method::POST, spaces, Some(&space)).await.unwrap();
        client.get(&format!("/spaces/secretive-{number}{CONFIG_MAPS}")).await.unwrap();
        let nowhere = format!("/spaces/secretive-{number}/nowhere/{number}");
        assert_eq!(client.send_raw(Method::GET, &nowhere, Bytes::new()).await.unwrap().0, 404);
    }
    // Anybody with a space can define any number of resources.
    for name in ["gadgets", "widgets"] {
        let definition = serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{name}.secretive.io")},
            "spec": {
                "group": "secretive.io", "scope": "Namespaced", "names": {"plural": name, "kind": name},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        });
        let definitions = "/spaces/secretive-0/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        client.send(Method::POST, definitions, Some(&definition)).await.unwrap();
        client.get(&format!("/spaces/secretive-0/apis/secretive.io/v1/{name}")).await.unwrap();
    }
    let text = metrics(&mut client).await;
    assert!(!text.contains("secretive"), "{text}");
    for line in [
        "apiserver_request_total{verb=\"list\",group=\"custom\",resource=\"custom\",subresource=\"\",code=\"200\"} 2",
        "apiserver_request_total{verb=\"create\",group=\"core.orrery.io\",resource=\"logicalspaces\",subresource=\"\",code=\"201\"} 3",
        "apiserver_request_total{verb=\"list\",group=\"\",resource=\"configmaps\",subresource=\"\",code=\"200\"} 3",
        "apiserver_request_total{verb=\"get\",group=\"\",resource=\"\",subresource=\"\",code=\"404\"} 3",
        "orrery_controllers_leading 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for name in [
        "orrery_store_objects ",
        "orrery_certificate_expiry_seconds{certificate=\"serving\"} ",
        "process_resident_memory_bytes ",
    ] {
        assert!(text.lines().any(|found| found.starts_with(name)), "{name} is not in\n{text}");
    }
}

#[tokio::test]
async fn whoever_forgets_tls_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let mut stream = TcpStream::connect(hub.url().trim_start_matches("https://")).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 400") && answer.contains("https://"), "{answer}");
}

/// Runs `up`, which must refuse with this exit code and in these words.
#[track_caller]
fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(&mut orrery(&[&["up", "--mqtt", "127.0.0.1:0"], arguments].concat()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.starts_with("error: "), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

#[test]
fn a_taken_port_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let address = hub.url().trim_start_matches("https://");
    let other = directory.path().join("other");
    refused(
        &["--listen", address, "--data-dir", other.to_str().unwrap()],
        1,
        &["cannot listen on", address, "another program listens there", "--listen"],
    );
    let broker = hub.broker_url().trim_start_matches("mqtts://");
    let arguments = ["--listen", "127.0.0.1:0", "--data-dir", other.to_str().unwrap(), "--mqtt-plaintext", broker];
    refused(&arguments, 1, &["cannot listen on", broker, "another program listens there", "--mqtt-plaintext"]);
}

#[test]
fn a_directory_in_use_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let _hub = up(directory.path(), &[]);
    let data_dir = directory.path().to_str().unwrap();
    refused(&["--listen", "127.0.0.1:0", "--data-dir", data_dir], 1, &["in use by another process", data_dir]);
}

#[test]
fn a_directory_that_is_none_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    refused(&["--listen", "127.0.0.1:0", "--data-dir", path], 1, &["cannot use the data directory", path]);
}

#[test]
fn a_kubeconfig_that_is_none_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious");
    fs::write(&path, "- not\n- a kubeconfig\n").unwrap();
    let data_dir = directory.path().join("data");
    refused(
        &[
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            data_dir.to_str().unwrap(),
            "--kubeconfig-out",
            path.to_str().unwrap(),
        ],
        1,
        &["precious is not a kubeconfig"],
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "- not\n- a kubeconfig\n");
}

#[test]
fn an_etcd_that_is_not_there_is_told() {
    let directory = tempfile::tempdir().unwrap();
    // Nothing listens on the port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (store, data_dir) = (format!("etcd://127.0.0.1:{port}"), directory.path().to_str().unwrap());
    refused(
        &["--listen", "127.0.0.1:0", "--data-dir", data_dir, "--store", &store],
        1,
        &["cannot open the store", &format!("127.0.0.1:{port}"), "check that etcd runs there"],
    );
}

#[test]
fn wrong_settings_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let listen = ["--listen", "127.0.0.1:0"];
    let check = |arguments: &[&str], words: &[&str]| refused(&[&listen[..], arguments].concat(), 2, words);
    check(&["--store", "redis://somewhere"], &["redis://somewhere", "neither embedded nor etcd://"]);
    check(&["--store", "etcd://somewhere"], &["somewhere", "HOST:PORT"]);
    check(&["--etcd-ca", "ca.pem"], &["etcd-ca is given, but the store is embedded"]);
    check(&["--max-work-bytes", "512001"], &["max-work-bytes 512001 must be from 1 to 512000"]);
    check(&["--max-work-objects", "0"], &["max-work-objects 0 would let nothing be sent"]);
    check(&["--store", "etcd://a:1", "--etcd-cert", "c"], &["need etcd-ca"]);
    check(&["--store", "etcd://a:1", "--etcd-username", "ann"], &["etcd-password-file", "together"]);
    let ca = file("ca.pem", "no certificate");
    check(&["--broker", "broker:1883"], &["broker:1883", "mqtts://"]);
    check(&["--broker", "mqtts://ann:secret@broker"], &["broker-username and broker-password-file"]);
    check(&["--broker", "mqtts://broker"], &["mqtts://broker:8883 needs broker-ca"]);
    check(&["--broker", "mqtts://broker", "--broker-ca", "/nowhere/ca"], &["cannot read broker-ca, /nowhere/ca"]);
    check(&["--broker", "mqtts://broker", "--broker-ca", &ca], &["there is no CA certificate"]);
    check(&["--broker", "mqtt://broker", "--broker-ca", &ca], &["without TLS", "mqtts://"]);
    check(&["--broker", "mqtt://broker", "--broker-cert", &ca], &["broker-cert and broker-key", "together"]);
    check(&["--broker", "mqtt://broker", "--broker-username", "ann"], &["broker-password-file", "together"]);
    check(&["--broker-username", "ann"], &["broker-username is given, but the broker is the built-in one"]);
    check(&["--mqtt-plaintext", "1883"], &["--mqtt-plaintext", "a port is missing"]);
    check(&["--source-id", "Hub_1"], &["source-id", "Hub_1", "a-z, 0-9 and -"]);
    check(&["--tls-san", "not a name"], &["not a name", "DNS name"]);
    check(&["--external-url", "http://plain"], &["--external-url", "https://"]);
    check(
        &["--config", "/nowhere/orrery.yaml"],
        &["cannot read the configuration /nowhere/orrery.yaml", "No such file"],
    );
    let misspelt = file("misspelt.yaml", "# ours\nlisten: 127.0.0.1:0\ndata-dirr: x\n");
    check(
        &["--config", &misspelt],
        &["misspelt.yaml:3:1:", "\"data-dirr\" is no setting", "did you mean \"data-dir\""],
    );
    let foreign = file("foreign.yaml", "qqq: 127.0.0.1:1883\n");
    check(&["--config", &foreign], &["foreign.yaml:1:1:", "\"qqq\" is no setting", "there are data-dir, listen"]);
    let broken = file("broken.yaml", "listen: [\n");
    check(&["--config", &broken], &["broken.yaml:"]);
    let wrong = file("wrong.yaml", "data-dir: x\nlisten: nowhere\n");
    check(&["--config", &wrong], &["wrong.yaml:2:9:", "a port is missing"]);
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let config = path("orrery.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nmqtt: 127.0.0.1:0\ndata-dir: {}\nkubeconfig-out: {}\n",
        path("data").display(),
        path("from-file").display()
    );
    fs::write(&config, text).unwrap();
    let kubeconfig = |environment: &[(&str, &str)], arguments: &[&str]| {
        let environment = environment.iter().map(|(name, value)| format!("{name}={value}"));
        // `env` sets variables for the program alone: tests share the environment of their process.
        let mut all: Vec<String> = environment.collect();
        all.extend([hub::ORRERY.to_owned(), "up".to_owned(), "--config".to_owned(), config.display().to_string()]);
        all.extend(arguments.iter().map(ToString::to_string));
        let hub = orrery_testkit::Program::start("env", all);
        hub.kubeconfig().file_name().unwrap().to_str().unwrap().to_owned()
    };
    let (variable, flag) = (path("from-variable"), path("from-flag"));
    let variable = [("ORRERY_KUBECONFIG_OUT", variable.to_str().unwrap())];
    assert_eq!(kubeconfig(&[], &[]), "from-file");
    assert_eq!(kubeconfig(&variable, &[]), "from-variable");
    assert_eq!(kubeconfig(&variable, &["--kubeconfig-out", flag.to_str().unwrap()]), "from-flag");
    assert!(path("data").join("store").is_dir());
}

#[tokio::test]
async fn logs_are_json_if_so_wished_and_hold_no_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &["-v", "--log-format", "json"]);
    let mut client = connect(hub.kubeconfig()).await;
    let secret = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    client.send(Method::POST, "/api/v1/namespaces/default/secrets?fieldManager=mallory", Some(&secret)).await.unwrap();
    drop(client);
    let log = loop {
        let log = hub.log();
        if log.contains("secrets") {
            break log;
        }
        tokio::task::yield_now().await;
    };
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
    }
    let kept = fs::read_to_string(hub.kubeconfig()).unwrap();
    let key = kept.lines().find_map(|line| line.trim().strip_prefix("client-key-data: ")).unwrap();
    for secret in ["hunter2", "mallory", "PRIVATE KEY", key] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn whoever_asks_twice_does_not_wait() {
    let directory = tempfile::tempdir().unwrap();
    let mut hub = up(directory.path(), &[]);
    let mut stream = tls(&hub, "http/1.1").await;
    // A request whose body never comes holds up the end.
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 21];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue");
    hub.ask_to_stop();
    assert_eq!(hub.next_line().as_deref(), Some("stopping"));
    hub.ask_to_stop();
    assert_eq!(hub.wait().code(), Some(1));
}

#[tokio::test]
async fn both_versions_of_http_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    for protocol in ["h2", "http/1.1"] {
        let stream = tls(&hub, protocol).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        let io = hyper_util::rt::TokioIo::new(stream);
        let uri = format!("{}/version", hub.url());
        let request = http::Request::get(uri).header("host", "x").body(http_body_util::Empty::<Bytes>::new()).unwrap();
        let response = if protocol == "h2" {
            let executor = hyper_util::rt::TokioExecutor::new();
            let (mut requests, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
            tokio::spawn(connection);
            requests.send_request(request).await.unwrap()
        } else {
            let (mut requests, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            requests.send_request(request).await.unwrap()
        };
        assert_eq!(response.status(), 200);
    }
}

/// A connection with the admin's certificate that speaks one protocol.
async fn tls(hub: &orrery_testkit::Program, protocol: &str) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut config = orrery::access::Access::read(hub.kubeconfig()).and_then(|access| access.tls()).expect("access");
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(hub.url().trim_start_matches("https://")).await.expect("it listens");
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    tokio_rustls::TlsConnector::from(std::sync::Arc::new(config)).connect(name, stream).await.expect("it is trusted")
}

#[tokio::test]
async fn nobody_in_particular_sees_nothing_in_particular() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    // The same kubeconfig without its user.
    let text = fs::read_to_string(hub.kubeconfig()).unwrap();
    let lines =
        text.lines().filter(|line| !line.contains("client-certificate-data") && !line.contains("client-key-data"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let path = directory.path().join("anonymous");
    fs::write(&path, text).unwrap();
    let mut client = connect(&path).await;
    for (path, code) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/version", 200),
        ("/api", 403),
        ("/metrics", 403),
        (CONFIG_MAPS, 403),
        ("/spaces/*/api/v1/secrets", 403),
    ] {
        assert_eq!(client.send_raw(Method::GET, path, Bytes::new()).await.unwrap().0, code, "{path}");
    }
}

#[test]
fn what_is_kept_is_the_owners_to_read_and_a_store_that_others_can_look_into_is_told() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let said = "others can look into the store";
    let store = directory.path().join("store");
    let hub = up(directory.path(), &[]);
    assert!(!hub.log().contains(said), "{}", hub.log());
    assert_eq!((mode(&store), mode(hub.kubeconfig())), (0o700, 0o600));
    assert!(hub.stop().success());
    fs::set_permissions(&store, fs::Permissions::from_mode(0o755)).unwrap();
    let hub = up(directory.path(), &[]);
    assert!(hub.log().contains(said), "{}", hub.log());
    assert!(hub.stop().success());
}

#[test]
fn a_variable_that_is_no_setting_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let free = ["--listen", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--data-dir"];
    let arguments = ["ORRERY_DATADIR=x", hub::ORRERY, "up"].into_iter().chain(free).map(str::to_owned);
    let hub = orrery_testkit::Program::start("env", arguments.chain([directory.path().display().to_string()]));
    let log = hub.log();
    assert!(log.contains("ORRERY_DATADIR") && log.contains("ORRERY_DATA_DIR"), "{log}");
}
