//! How fast events go one way through a broker: `cargo bench -p orrery-broker [-- mosquitto built-in]`. Prints numbers, judges none.
//!
//! Our transport, from message to message, is measured between two measurements of a bare publisher and subscriber on the same
//! broker in the same run, so that a change of the machine's mood shows.

use std::{
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use orrery_broker::{Access, Broker, Client, Config, Role};
use orrery_works::{
    Bundle, Cause, Codec, Dialect, Message, Packet, Spec, Version, Wish,
    codec::Stamp,
    event::Meta,
    mqtt::{self, Mqtt},
    transport::{Incoming, Transport},
};
use rumqttc::v5::{
    AsyncClient, Event, MqttOptions,
    mqttbytes::{QoS, v5::Packet as MqttPacket, v5::PublishProperties},
};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// The allocator of our programs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How many events go through in one measurement.
const EVENTS: u64 = 20_000;
const SOURCE: &str = "source.hub1";
const AGENT: &str = "agent.cluster1";
const PASSWORD: &str = "secret";

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if runs("mosquitto") {
        match Mosquitto::start() {
            Some(broker) => runtime.block_on(compare("mosquitto", broker.port)),
            None => println!("mosquitto is not installed: no measurement through it"),
        }
    }
    if runs("built-in") {
        runtime.block_on(through_the_built_in_broker());
    }
}

async fn through_the_built_in_broker() {
    let access = Access::default();
    for user in [SOURCE, AGENT] {
        access.admit(Client::with_password(Role::from_user(user).expect("a role"), PASSWORD));
    }
    let mut broker = Broker::new(Config::default(), access);
    let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = tcp.local_addr().expect("an address").port();
    broker.listen_plaintext(tcp);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(broker.run(async move { drop(stopped.await) }));
    compare("the built-in broker", port).await;
    drop(stop);
    task.await.expect("the broker ends");
}

async fn compare(broker: &str, port: u16) {
    let patience = Duration::from_secs(60);
    let mut bare = Vec::new();
    let mut ours = Vec::new();
    for round in 0..3 {
        for is_ours in [false, true, false] {
            let rates = if is_ours { &mut ours } else { &mut bare };
            let measured = async { if is_ours { one_way(port).await } else { raw_pair(port).await } };
            match tokio::time::timeout(patience, measured).await {
                Ok(rate) => rates.push(rate),
                Err(_) => println!("{broker}, round {round}: not finished within {patience:?}"),
            }
        }
    }
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(0.0)
    };
    let (bare, ours) = (median(&mut bare), median(&mut ours));
    println!(
        "one way through {broker}: a bare pair {bare:.0} events/s, our transport {ours:.0} events/s, {:.0} % of it (medians of 6 and 3)",
        100.0 * ours / bare
    );
}

/// A mosquitto of our own.
struct Mosquitto {
    port: u16,
    child: Child,
    _dir: TempDir,
}

impl Mosquitto {
    fn start() -> Option<Self> {
        let program =
            ["/usr/sbin/mosquitto", "/usr/bin/mosquitto"].into_iter().find(|path| Path::new(path).exists())?;
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let dir = tempfile::tempdir().ok()?;
        let config = dir.path().join("mosquitto.conf");
        // By default mosquitto drops what a subscriber is more than 1000 messages behind.
        let settings = format!("listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n");
        std::fs::write(&config, settings).ok()?;
        let child = Command::new(program).arg("-c").arg(&config).stderr(Stdio::null()).spawn().ok()?;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        Some(Self { port, child, _dir: dir })
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        // It is over either way.
        let _dead = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// About 2 KB: a Deployment as people write them.
fn spec(number: u64) -> Message {
    let env: Vec<String> = (0..18)
        .map(|variable| {
            format!(r#"{{"name":"VARIABLE_{variable}","value":"a value that says something, {variable} times, of shop {number}"}}"#)
        })
        .collect();
    let manifest = format!(
        r#"[{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"shop"}},"spec":{{"template":{{"spec":{{"containers":[{{"name":"shop","env":[{}]}}]}}}}}}}}]"#,
        env.join(",")
    );
    let bundle = Bundle { manifests: serde_json::from_str(&manifest).expect("valid JSON"), ..Bundle::default() };
    Message::Spec(Spec {
        source: "hub1".parse().expect("a name"),
        cluster: "cluster1".parse().expect("a name"),
        id: format!("{number:08}-0000-4000-8000-000000000000").parse().expect("a name"),
        version: Version::new(3).expect("not negative"),
        wish: Wish::Apply(Arc::new(bundle)),
        cause: Cause::Updated,
        meta: Some(Meta::Named(Arc::from("work"))),
        epoch: None,
        sent: None,
    })
}

fn stamp(number: u64) -> Stamp<'static> {
    Stamp { id: u128::from(number), time: Timestamp::now(), agent: "agent" }
}

/// A publisher and a subscriber with nothing around them.
async fn raw_pair(port: u16) -> f64 {
    let options = |user: &str| {
        let mut options = MqttOptions::new(format!("raw-{user}"), "127.0.0.1", port);
        options.set_max_packet_size(Some(1 << 20)).set_outgoing_inflight_upper_limit(100);
        options.set_credentials(user, PASSWORD);
        options
    };
    let (subscriber, mut subscribed) = AsyncClient::new(options(AGENT), 100);
    let (publisher, mut published) = AsyncClient::new(options(SOURCE), 100);
    subscriber.subscribe("sources/+/clusters/cluster1/sourceevents", QoS::AtLeastOnce).await.expect("subscribes");
    while !matches!(subscribed.poll().await.expect("connected"), Event::Incoming(MqttPacket::SubAck(_))) {}
    let driver = tokio::spawn(async move { while published.poll().await.is_ok() {} });
    let codec = Codec::of(Dialect::Ocm);
    let packets: Vec<(Packet, PublishProperties)> = (0..EVENTS)
        .map(|number| {
            let mut packet = codec.encode(&spec(number), stamp(number)).expect("encodes");
            let owned = std::mem::take(&mut packet.properties).into_iter();
            let properties = PublishProperties {
                user_properties: owned.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
                content_type: packet.content_type.take().map(|text| text.into_owned()),
                ..Default::default()
            };
            (packet, properties)
        })
        .collect();
    let start = Instant::now();
    let sender = tokio::spawn(async move {
        for (packet, properties) in packets {
            publisher
                .publish_with_properties(packet.topic, QoS::AtLeastOnce, false, packet.payload, properties)
                .await
                .expect("publishes");
        }
        publisher
    });
    let mut received = 0;
    while received < EVENTS {
        if let Event::Incoming(MqttPacket::Publish(_)) = subscribed.poll().await.expect("connected") {
            received += 1;
        }
    }
    let rate = EVENTS as f64 / start.elapsed().as_secs_f64();
    drop(sender.await);
    driver.abort();
    rate
}

/// The same through our transport, from message to message.
async fn one_way(port: u16) -> f64 {
    let config = |user: &str| mqtt::Config {
        credentials: Some((user.to_owned(), PASSWORD.to_owned())),
        ..mqtt::Config::new("127.0.0.1", port, format!("ours-{user}"))
    };
    let codec = Codec::of(Dialect::Ocm);
    let filters = codec.topics().agent_filters(&"cluster1".parse().expect("a name"));
    let mut receiver = Mqtt(config(AGENT)).open(filters).expect("opens");
    let filters = codec.topics().source_filters(&"hub1".parse().expect("a name"), None);
    let sender = Mqtt(config(SOURCE)).open(filters).expect("opens");
    while !matches!(receiver.incoming.recv().await, Some(Incoming::Connected { .. })) {}
    let messages: Vec<Message> = (0..EVENTS).map(spec).collect();
    let writer = codec.clone();
    let start = Instant::now();
    let sending = tokio::spawn(async move {
        for (number, message) in (0..).zip(&messages) {
            let packet = writer.encode(message, stamp(number)).expect("encodes");
            sender.outgoing.send(packet).await.expect("the transport runs");
        }
        sender
    });
    let mut received = 0;
    while received < EVENTS {
        if let Some(Incoming::Packet(packet)) = receiver.incoming.recv().await {
            std::hint::black_box(codec.decode(&packet).expect("decodes"));
            received += 1;
        }
    }
    let rate = EVENTS as f64 / start.elapsed().as_secs_f64();
    drop(sending.await);
    rate
}
