//! An operator as people write them with kube-rs: a custom kind with defaults, a rule, status, finalizer and owned objects, through its whole life.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    runtime::{
        Controller,
        controller::Action,
        finalizer::{Event, finalizer},
        wait::{await_condition, conditions},
        watcher,
    },
};
use serde_json::json;

use crate::both_ways;

const FINALIZER: &str = "example.com/registered";
const MANAGER: &str = "website-operator";

/// What the operator works with.
struct Clients {
    websites: Api<DynamicObject>,
    config_maps: Api<ConfigMap>,
    deployments: Api<Deployment>,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_kind_lives_and_dies_with_its_operator() {
    both_ways(check).await;
}

async fn check(client: Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = serde_json::from_value(definition()).expect("a definition");
    definitions.create(&PostParams::default(), &definition).await.expect("it is created");
    await_condition(definitions.clone(), "websites.example.com", conditions::is_crd_established())
        .await
        .expect("it is served");

    let kind = website();
    let websites: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let config = watcher::Config::default().streaming_lists();
    let clients =
        Clients { websites: websites.clone(), config_maps: config_maps.clone(), deployments: deployments.clone() };
    let running = Controller::new_with(websites.clone(), config.clone(), kind.clone())
        .owns(config_maps.clone(), config.clone())
        .owns(deployments.clone(), config)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), Arc::new(clients));
    let running = tokio::spawn(running.for_each(|_| std::future::ready(())));

    let greedy = DynamicObject::new("greedy", &kind).data(json!({"spec": {"page": "hello", "replicas": 11}}));
    let refused = websites.create(&PostParams::default(), &greedy).await.expect_err("the rule refuses it").to_string();
    assert!(refused.contains("ten replicas are enough"), "{refused}");

    let home = DynamicObject::new("home", &kind).data(json!({"spec": {"page": "hello"}}));
    let home = websites.create(&PostParams::default(), &home).await.expect("it is created");
    assert_eq!(home.data["spec"]["replicas"], 1, "the default is there");
    until_ready(&websites, 1).await;

    let change = json!({"spec": {"page": "changed", "replicas": 3}});
    websites.patch("home", &PatchParams::default(), &Patch::Merge(change)).await.expect("it is changed");
    until_ready(&websites, 2).await;
    let page = config_maps.get("home").await.expect("it is there");
    assert_eq!(page.data.and_then(|data| data.get("index.html").cloned()).as_deref(), Some("changed"));
    let served = deployments.get("home").await.expect("it is there");
    assert_eq!(served.spec.and_then(|spec| spec.replicas), Some(3));

    let uid = page.metadata.uid.expect("an object has a uid");
    config_maps.delete("home", &DeleteParams::default()).await.expect("it is deleted");
    let came_back = |object: Option<&ConfigMap>| object.is_some_and(|object| object.uid().as_ref() != Some(&uid));
    await_condition(config_maps.clone(), "home", came_back).await.expect("it comes back");

    websites.delete("home", &DeleteParams::background()).await.expect("it is deleted");
    await_condition(websites.clone(), "home", |object: Option<&DynamicObject>| object.is_none())
        .await
        .expect("it goes");
    await_condition(config_maps.clone(), "home", |object: Option<&ConfigMap>| object.is_none()).await.expect("it goes");
    await_condition(deployments, "home", |object: Option<&Deployment>| object.is_none()).await.expect("it goes");
    assert!(config_maps.get_opt("registered-home").await.expect("an answer").is_none(), "the finalizer ran");

    let gone = definitions.delete("websites.example.com", &DeleteParams::default()).await.expect("it is deleted");
    if let Some(deleting) = gone.left() {
        let uid = deleting.metadata.uid.expect("an object has a uid");
        await_condition(definitions, "websites.example.com", conditions::is_deleted(&uid)).await.expect("it goes");
    }
    running.abort();
}

async fn reconcile(website: Arc<DynamicObject>, clients: Arc<Clients>) -> Result<Action, kube::Error> {
    let done = finalizer(&clients.websites, FINALIZER, website, |event| async {
        match event {
            Event::Apply(website) => apply(&website, &clients).await,
            Event::Cleanup(website) => clean_up(&website, &clients).await,
        }
    });
    match done.await {
        Ok(action) => Ok(action),
        Err(
            kube::runtime::finalizer::Error::ApplyFailed(error) | kube::runtime::finalizer::Error::CleanupFailed(error),
        ) => Err(error),
        // Somebody else was faster: the change that did it brings us here again.
        Err(_) => Ok(Action::requeue(Duration::from_millis(50))),
    }
}

async fn apply(website: &DynamicObject, clients: &Clients) -> Result<Action, kube::Error> {
    let name = website.name_any();
    let owner = website.controller_owner_ref(&self::website());
    let params = PatchParams::apply(MANAGER).force();
    let register = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("registered-{name}")}});
    clients.config_maps.patch(&format!("registered-{name}"), &params, &Patch::Apply(register)).await?;
    let page = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [owner]},
        "data": {"index.html": website.data["spec"]["page"]},
    });
    clients.config_maps.patch(&name, &params, &Patch::Apply(page)).await?;
    let served = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "replicas": website.data["spec"]["replicas"],
            "selector": {"matchLabels": {"website": name}},
            "template": {
                "metadata": {"labels": {"website": name}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    });
    clients.deployments.patch(&name, &params, &Patch::Apply(served)).await?;
    let status = json!({"apiVersion": "example.com/v1", "kind": "Website", "status": {
        "observedGeneration": website.metadata.generation, "ready": true,
    }});
    clients.websites.patch_status(&name, &params, &Patch::Apply(status)).await?;
    Ok(Action::await_change())
}

async fn clean_up(website: &DynamicObject, clients: &Clients) -> Result<Action, kube::Error> {
    let name = format!("registered-{}", website.name_any());
    match clients.config_maps.delete(&name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    Ok(Action::await_change())
}

/// Waits until the operator has dealt with a generation of the website.
async fn until_ready(websites: &Api<DynamicObject>, generation: i64) {
    let ready = move |website: Option<&DynamicObject>| {
        website.is_some_and(|website| {
            let status = &website.data["status"];
            status["ready"] == true && status["observedGeneration"].as_i64() >= Some(generation)
        })
    };
    await_condition(websites.clone(), "home", ready).await.expect("the operator says that it is ready");
}

fn website() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Website"))
}

fn definition() -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "websites.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "websites", "kind": "Website"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["page"],
                            "properties": {
                                "page": {"type": "string"},
                                "replicas": {"type": "integer", "minimum": 0, "default": 1},
                            },
                            "x-kubernetes-validations": [
                                {"rule": "self.replicas <= 10", "message": "ten replicas are enough for any page"},
                            ],
                        },
                        "status": {
                            "type": "object",
                            "properties": {
                                "ready": {"type": "boolean"},
                                "observedGeneration": {"type": "integer", "format": "int64"},
                            },
                        },
                    },
                }},
            }],
        },
    })
}
