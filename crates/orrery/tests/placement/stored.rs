//! What is stored: Bindings and ledgers in several parts, and what becomes of what others change.

use orrery_hub::delivery;
use serde_json::{Value, json};

use crate::stage::{BINDINGS, EXPAND, Hub, LEDGERS, POLICIES, labelled};

async fn names(hub: &mut Hub, collection: &str) -> Vec<String> {
    let list = hub.get(collection).await.expect("a list");
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_for_one_object_is_stored_in_several() {
    let mut hub = Hub::start().await;
    let text = |number: usize| format!("{number} {{{{.region}}}}");
    for number in 0..8 {
        hub.config_map("prod", &format!("o{number}"), &text(number), json!({EXPAND: "true"})).await;
    }
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let small = delivery::Config { max_binding_bytes: 1500, max_ledger_bytes: 700, ..delivery::Config::default() };
    let mut placement = hub.placement_with(small);
    placement.until_complete().await;
    assert_eq!(placement.sent().len(), 16);
    let parts = ["web", "web--2"];
    assert_eq!(names(&mut hub, BINDINGS).await, parts);
    assert_eq!(names(&mut hub, LEDGERS).await, parts);
    for part in parts {
        let binding = hub.get(&format!("{BINDINGS}/{part}")).await.expect("a Binding");
        assert_eq!(binding["metadata"]["ownerReferences"][0]["name"], "web");
        assert_eq!(binding["spec"]["destinations"], json!([{"clusterId": "c1"}, {"clusterId": "c2"}]));
    }

    // What clusters have is remembered while it cannot be rendered, in further ledgers.
    let before = placement.works.clone();
    hub.set_text("prod", "o0", "text", "{{.nope}}").await;
    let is_held = |binding: &Value| binding["status"]["errors"].is_array();
    hub.wait(BINDINGS, "web", "an error", is_held).await;
    let held = names(&mut hub, LEDGERS).await;
    assert!(held.len() > 2 && held.iter().all(|name| name.starts_with("web")), "{held:?}");
    placement.stop().await;
    // One that was not written to its end, and is in nobody's list.
    let stray = json!({
        "apiVersion": "core.orrery.io/v1alpha1", "kind": "WorkLedger", "metadata": {"name": "web.stray"}, "spec": {"binding": "web"},
    });
    hub.post(LEDGERS, stray).await;
    let mut next = hub.placement_with(small);
    next.until_complete().await;
    assert_eq!(next.works, before);
    assert_eq!(names(&mut hub, LEDGERS).await, held, "nothing moved, and the stray one is gone");
    hub.set_text("prod", "o0", "text", &text(0)).await;
    hub.wait(BINDINGS, "web", "no error", |binding| !is_held(binding)).await;
    assert_eq!(names(&mut hub, LEDGERS).await, parts);

    hub.delete(&format!("{POLICIES}/web")).await;
    next.until(&[]).await;
    assert!(names(&mut hub, BINDINGS).await.is_empty());
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_that_somebody_changes_or_deletes_is_put_right() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    let path = format!("{BINDINGS}/web");
    let first = hub.get(&path).await.expect("a Binding");
    hub.change(&path, |binding| binding["spec"]["destinations"] = json!([])).await;
    let has_clusters = |binding: &Value| binding["spec"]["destinations"].as_array().map(Vec::len) == Some(2);
    let is_right =
        |binding: &Value| has_clusters(binding) && binding["metadata"]["generation"] != first["metadata"]["generation"];
    let second = hub.wait(BINDINGS, "web", "its clusters again", is_right).await;
    hub.delete(&path).await;
    let is_another = |binding: &Value| has_clusters(binding) && binding["metadata"]["uid"] != second["metadata"]["uid"];
    let third = hub.wait(BINDINGS, "web", "another life", is_another).await;
    assert_eq!(third["spec"], first["spec"]);
    assert_eq!(placement.rendered(), 2, "clusters hear nothing of it");
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_goes_comes_back_also_while_changes_are_held() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 plain p", "c2 plain p"]).await;
    for held in [false, true] {
        if held {
            hub.config_map("prod", "wrong", "{{.nope}}", json!({EXPAND: "true"})).await;
            hub.wait(BINDINGS, "web", "an error", |binding| binding["status"]["errors"].is_array()).await;
        }
        let keeps = |ledger: &Value| ledger["spec"]["kept"].as_array().is_some_and(|kept| !kept.is_empty()) == held;
        let first = hub.wait(LEDGERS, "web", "what it keeps", keeps).await;
        let is_another = |ledger: &Value, than: &Value| {
            keeps(ledger) && ledger["metadata"]["uid"] != than["metadata"]["uid"] && ledger["spec"] == than["spec"]
        };
        hub.delete(&format!("{LEDGERS}/web")).await;
        let second = hub.wait(LEDGERS, "web", "another life", |ledger| is_another(ledger, &first)).await;
        // Of a Binding that goes, the ledger is kept for its next life, or comes back.
        let before = hub.get(&format!("{BINDINGS}/web")).await.expect("a Binding");
        hub.delete(&format!("{BINDINGS}/web")).await;
        let is_next = |binding: &Value| binding["metadata"]["uid"] != before["metadata"]["uid"];
        let next = hub.wait(BINDINGS, "web", "another life", is_next).await;
        let belongs = |ledger: &Value| {
            ledger["metadata"]["ownerReferences"][0]["uid"] == next["metadata"]["uid"]
                && ledger["spec"] == second["spec"]
        };
        hub.wait(LEDGERS, "web", "the same for it", belongs).await;
    }
    let before = placement.works.clone();
    placement.stop().await;
    let mut next = hub.placement();
    next.until_complete().await;
    assert_eq!(next.works, before, "clusters keep what they have");
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_is_made_anew_has_a_binding_of_its_own() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    let first = hub.get(&format!("{POLICIES}/web")).await.expect("the policy");
    hub.delete(&format!("{POLICIES}/web")).await;
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let second = hub.get(&format!("{POLICIES}/web")).await.expect("the policy");
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    let owner = &second["metadata"]["uid"];
    let is_its_own = |binding: &Value| {
        let owners = &binding["metadata"]["ownerReferences"];
        owners[0]["uid"] == *owner && binding["metadata"]["deletionTimestamp"].is_null()
    };
    hub.wait(BINDINGS, "web", "its policy", is_its_own).await;
    placement.until(&["c1 plain p", "c2 plain p"]).await;
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_is_told_on_both_bindings() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.policy("a", labelled(&["configmaps"], json!({}))).await;
    hub.policy("b", labelled(&["configmaps"], json!({"createOnly": true}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 plain p", "c2 plain p"]).await;
    assert!(placement.works.values().all(|(_, bundle)| bundle.manifest_configs.is_empty()), "the older keeps it");
    for (binding, end) in [("a", "which is younger and leaves it out"), ("b", "which is older and keeps it")] {
        let told = |binding: &Value| {
            let error = binding["status"]["errors"][0].as_str().unwrap_or_default();
            error.starts_with("conflict over configmaps prod/plain in cluster c1 and 1 other") && error.ends_with(end)
        };
        hub.wait(BINDINGS, binding, "the conflict", told).await;
    }
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_named_as_the_binding_of_another_is_told_so_and_gets_it_once_it_is_free() {
    let mut hub = Hub::start().await;
    for number in 0..8 {
        hub.config_map("prod", &format!("o{number}"), "x", json!({})).await;
    }
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let small = delivery::Config { max_binding_bytes: 1500, ..delivery::Config::default() };
    let mut placement = hub.placement_with(small);
    placement.until_complete().await;
    let before = hub.get(&format!("{BINDINGS}/web--2")).await.expect("the rest of the policy");
    let works = placement.works.clone();

    hub.policy("web--2", labelled(&["configmaps"], json!({}))).await;
    let is_told = |policy: &Value| {
        let error = policy["status"]["errors"][0].as_str().unwrap_or_default();
        error.contains("Binding web--2 is taken, it continues BindingPolicy web")
    };
    hub.wait(POLICIES, "web--2", "what is wrong", is_told).await;
    let is_about_it = |event: &Value| {
        event["involvedObject"]["kind"] == "BindingPolicy" && event["involvedObject"]["name"] == "web--2"
    };
    let event = hub.wait("/api/v1/namespaces/default/events", "", "an Event", is_about_it).await;
    assert_eq!((&event["type"], &event["reason"]), (&json!("Warning"), &json!("NotSent")));
    let now = hub.get(&format!("{BINDINGS}/web--2")).await.expect("the rest of the policy");
    assert_eq!(now, before);
    assert_eq!((placement.rendered(), &placement.works), (4, &works), "nobody hears of it");

    hub.change(&format!("{POLICIES}/web"), |policy| policy["spec"]["downsync"][0]["resources"] = json!(["secrets"]))
        .await;
    hub.wait(POLICIES, "web--2", "nothing wrong", |policy| policy["status"]["errors"].is_null()).await;
    let is_its_own = |binding: &Value| binding["metadata"]["ownerReferences"][0]["name"] == "web--2";
    hub.wait(BINDINGS, "web--2", "its own policy", is_its_own).await;
    placement.until_works(|now| now.len() == 4 && now.keys().all(|id| !works.contains_key(id))).await;
    assert_eq!(placement.sent().len(), 16);
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_with_the_longest_name_is_stored_in_several_parts_and_found_again() {
    let mut hub = Hub::start().await;
    for number in 0..8 {
        hub.config_map("prod", &format!("o{number}"), "{{.region}}", json!({EXPAND: "true"})).await;
    }
    let name = "x".repeat(253);
    hub.policy(&name, labelled(&["configmaps"], json!({}))).await;
    let small = delivery::Config { max_binding_bytes: 1500, max_ledger_bytes: 700, ..delivery::Config::default() };
    let mut placement = hub.placement_with(small);
    placement.until_complete().await;
    let parts = names(&mut hub, BINDINGS).await;
    assert_eq!((parts.len(), names(&mut hub, LEDGERS).await), (2, parts.clone()));
    let works = placement.works.clone();
    assert_eq!((works.len(), placement.sent().len()), (4, 16));
    // Its last good state is kept in ledgers that have names too.
    hub.set_text("prod", "o0", "text", "{{.nope}}").await;
    hub.wait(BINDINGS, "", "an error", |binding| binding["status"]["errors"].is_array()).await;
    placement.stop().await;
    let mut next = hub.placement_with(small);
    next.until_complete().await;
    assert_eq!(next.works, works);
    assert_eq!(names(&mut hub, BINDINGS).await, parts);
    next.stop().await;
}
