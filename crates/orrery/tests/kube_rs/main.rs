//! kube-rs against the control plane, over TLS and in the same process: reflectors, paged lists, controllers, and one watch across many spaces.

mod across_spaces;
mod controller;
mod crash;
mod lister;
mod operator;
mod reflector;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt, api::PostParams};
use orrery_testkit::ControlPlane;

/// Runs a check with a client over TLS and with one in this process, each in a space of its own.
async fn both_ways<F: Future<Output = ()>>(check: impl Fn(Client) -> F) {
    let control_plane = ControlPlane::start().await;
    control_plane.space("near").await;
    check(control_plane.kube("near")).await;
    check(control_plane.kube_over_tls("far").await).await;
    control_plane.stop().await;
}

fn config_map(name: &str, data: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::core::ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
        data: Some(BTreeMap::from([("value".to_owned(), data.to_owned())])),
        ..ConfigMap::default()
    }
}

async fn create(api: &Api<ConfigMap>, name: &str, data: &str) -> ConfigMap {
    api.create(&PostParams::default(), &config_map(name, data)).await.expect("it is created")
}

/// The number by which an object's version is told from others.
fn revision(object: &impl ResourceExt) -> u64 {
    object
        .resource_version()
        .and_then(|version| version.parse().ok())
        .expect("an object has a version that is a number")
}
