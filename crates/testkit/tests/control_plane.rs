//! The control plane for tests is a whole one: over TLS and without, for admins, spaces and users, across restarts.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use http::Method;
use jiff::Timestamp;
use orrery::{
    access::Access,
    client::{Client, refused_with},
};
use orrery_testkit::ControlPlane;
use serde_json::json;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn connect(kubeconfig: &Path) -> Client {
    Client::connect(&Access::read(kubeconfig).expect("a kubeconfig")).await.unwrap_or_else(|error| panic!("{error:#}"))
}

async fn create(client: &mut Client, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    client.send(Method::POST, CONFIG_MAPS, Some(&object)).await.unwrap_or_else(|error| panic!("{error:#}"));
}

#[tokio::test]
async fn the_same_objects_are_there_over_tls_and_in_process() {
    let plane = ControlPlane::start().await;
    create(&mut plane.admin(), "inside").await;
    let mut outside = connect(plane.admin_kubeconfig()).await;
    assert!(outside.get(&format!("{CONFIG_MAPS}/inside")).await.is_ok());
    create(&mut outside, "outside").await;
    assert!(plane.admin().get(&format!("{CONFIG_MAPS}/outside")).await.is_ok());
    drop(outside);
    plane.stop().await;
}

#[tokio::test]
async fn spaces_and_users_have_kubeconfigs() {
    let plane = ControlPlane::start().await;
    let mut space = connect(&plane.space("team-a").await).await;
    create(&mut space, "mine").await;
    assert!(plane.admin().get(&format!("/spaces/team-a{CONFIG_MAPS}/mine")).await.is_ok());
    assert!(plane.admin().get_opt(&format!("{CONFIG_MAPS}/mine")).await.unwrap().is_none());
    // A user of a space is nobody in the management space.
    let stranger = plane.space_user("team-a", "ann", &["dev"]).await;
    let text = std::fs::read_to_string(&stranger).unwrap().replace("/spaces/team-a", "");
    std::fs::write(&stranger, text).unwrap();
    let refusal = connect(&stranger).await.get("/api/v1/namespaces").await.unwrap_err();
    assert!(refused_with(&refusal, 401), "{refusal:#}");
    // Anybody may ask for the version, also a user whom nobody gave anything.
    assert!(connect(&plane.user("ann", &["dev", "ops"])).await.get("/version").await.is_ok());
}

#[tokio::test]
async fn what_is_stored_survives_restarts() {
    let plane = ControlPlane::start().await;
    let authority = plane.authority();
    create(&mut plane.admin(), "first").await;
    let plane = plane.restart().await;
    create(&mut plane.admin(), "second").await;
    let plane = plane.crash_and_restart().await;
    assert_eq!(plane.authority(), authority);
    for name in ["first", "second"] {
        assert!(plane.admin().get(&format!("{CONFIG_MAPS}/{name}")).await.is_ok());
    }
}

/// How many certificates the config map of a namespace tells of.
async fn told(plane: &ControlPlane) -> usize {
    let told = plane.admin().get(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).await;
    told.map_or(0, |told| told["data"]["ca.crt"].as_str().unwrap_or_default().matches("BEGIN CERTIFICATE").count())
}

#[tokio::test]
async fn certificates_are_made_anew_without_a_restart() {
    let day = 86_400;
    let today = Timestamp::now().as_second();
    let time = Arc::new(AtomicI64::new(today));
    let clock = time.clone();
    let plane = ControlPlane::start_with(|config| {
        config.clock = Arc::new(move || Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap());
        config.renewal_interval = Duration::from_millis(10);
    })
    .await;
    while told(&plane).await != 1 {
        tokio::task::yield_now().await;
    }
    time.store(today + 3000 * day, Ordering::Relaxed);
    while told(&plane).await != 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(plane.authority().matches("BEGIN CERTIFICATE").count(), 2);
    // A space that is made now is told both from the beginning.
    plane.space("young").await;
    let young = plane.admin().get(&format!("/spaces/young{CONFIG_MAPS}/kube-root-ca.crt")).await.unwrap();
    assert_eq!(young["data"]["ca.crt"], plane.authority());
}
