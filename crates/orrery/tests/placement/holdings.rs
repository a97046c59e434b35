//! Works that clusters have and nobody knows wait for a person, and nobody waits for clusters that left.

use orrery_works::source::{Change, Effect};
use serde_json::{Value, json};

use crate::stage::{CLUSTERS, Hub, labelled};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_sees_what_is_held_and_agrees() {
    let mut hub = Hub::start().await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    let (cluster, epoch) = ("c1".parse().expect("a name"), "e1".parse().expect("an epoch"));
    let ids = vec!["work-1".parse().expect("an id")];
    placement.hears_that(Effect::Held { cluster, epoch, ids }).await;
    let held = |is: &'static str| {
        move |cluster: &Value| {
            let conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
            conditions.into_iter().any(|condition| condition["type"] == "DeletionsHeld" && condition["status"] == is)
        }
    };
    let shown = hub.wait(CLUSTERS, "c1", "what is held", held("True")).await;
    let message = shown["status"]["conditions"][0]["message"].as_str().expect("a message");
    assert!(message.contains("work-1") && message.contains("control.orrery.io/agree-deletions=e1"), "{message}");

    let agree = |object: &mut Value| {
        object["metadata"]["annotations"] = json!({"control.orrery.io/agree-deletions": "e1"});
    };
    hub.change(&format!("{CLUSTERS}/c1"), agree).await;
    let Change::Agree { cluster, epoch } = placement.next().await else { panic!("something else was told") };
    assert_eq!((cluster.as_str(), epoch.as_str()), ("c1", "e1"));
    placement.hears_that(Effect::Agreed { cluster }).await;
    hub.wait(CLUSTERS, "c1", "that nothing is held", held("False")).await;
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_works_of_a_cluster_that_left_are_deleted_and_then_nobody_waits_for_it() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    hub.delete(&format!("{CLUSTERS}/c2")).await;
    placement.until(&["c1 plain p"]).await;
    // The next change comes after it was told which clusters are left.
    hub.set_text("prod", "plain", "text", "q").await;
    placement.until(&["c1 plain q"]).await;
    assert!(placement.clusters.iter().eq(["c1"]), "{:?}", placement.clusters);
    placement.stop().await;
}
