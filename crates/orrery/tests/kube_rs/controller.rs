//! A controller as people write them: it makes a Secret for each ConfigMap, owns it, and makes it again when it is gone.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
    runtime::{Controller, controller::Action, watcher},
};

use crate::{both_ways, create};

const OBJECTS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn what_it_owns_is_there_and_comes_back() {
    both_ways(check).await;
}

async fn check(client: Client) {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let secrets: Api<Secret> = Api::namespaced(client, "default");
    for number in 0..OBJECTS / 2 {
        create(&config_maps, &format!("made-before-{number:02}"), "1").await;
    }
    let config = watcher::Config::default().streaming_lists();
    let running = Controller::new(config_maps.clone(), config.clone()).owns(secrets.clone(), config).run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_millis(50)),
        Arc::new(secrets.clone()),
    );
    let running = tokio::spawn(running.for_each(|_| std::future::ready(())));
    for number in 0..OBJECTS / 2 {
        create(&config_maps, &format!("made-after-{number:02}"), "1").await;
    }
    until_there(&secrets).await;
    secrets.delete("made-before-03", &DeleteParams::default()).await.expect("it is deleted");
    secrets.delete("made-after-03", &DeleteParams::default()).await.expect("it is deleted");
    until_there(&secrets).await;

    // Nothing would bring its Secret back, and the owner takes it along.
    config_maps.delete("made-before-05", &DeleteParams::background()).await.expect("it is deleted");
    let mut gone =
        std::pin::pin!(watcher(secrets.clone(), watcher::Config::default().fields("metadata.name=made-before-05")));
    loop {
        match gone.next().await.expect("a watcher does not end").expect("nothing goes wrong") {
            watcher::Event::Delete(_) => break,
            watcher::Event::InitDone if secrets.get_opt("made-before-05").await.expect("an answer").is_none() => break,
            _ => {}
        }
    }
    running.abort();
}

async fn reconcile(object: Arc<ConfigMap>, secrets: Arc<Api<Secret>>) -> Result<Action, kube::Error> {
    if object.name_any() == "kube-root-ca.crt" || object.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let secret = Secret {
        metadata: ObjectMeta {
            name: object.metadata.name.clone(),
            owner_references: Some(object.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        string_data: Some(BTreeMap::from([("from".to_owned(), object.name_any())])),
        ..Secret::default()
    };
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(_) => Ok(Action::await_change()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Action::await_change()),
        Err(error) => Err(error),
    }
}

/// Waits until there is a Secret for each object.
async fn until_there(secrets: &Api<Secret>) {
    let mut events = std::pin::pin!(watcher(secrets.clone(), watcher::Config::default()));
    loop {
        let listed = secrets.list(&ListParams::default()).await.expect("a list");
        if listed.iter().filter(|secret| secret.name_any().starts_with("made-")).count() == OBJECTS {
            return;
        }
        events.next().await.expect("a watcher does not end").expect("nothing goes wrong");
    }
}
