//! Works that clusters have and nobody knows: what is held is shown on the ManagedCluster, and a person agrees there.

use std::{collections::BTreeMap, sync::Arc};

use kube::{Client, ResourceExt, core::DynamicObject};
use orrery_api::cluster::{AGREE_DELETIONS, DELETIONS_HELD};
use orrery_works::{ClusterName, Epoch, ResourceId, source::Change};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Counters,
    fleet::Fleet,
    path,
    pause::Pause,
    write::{self, Unwritten},
};

/// How many works a condition names.
const MAX_NAMED: usize = 10;

/// What is held, for whom, and what was agreed to.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// What a person agreed to, by cluster, and was not told yet.
    agreed: BTreeMap<ClusterName, Epoch>,
    /// What was told of that.
    told: BTreeMap<ClusterName, Epoch>,
    /// What is to be shown of a cluster: the works that are held, or that none are.
    shown: BTreeMap<ClusterName, Shown>,
    pause: Pause,
}

#[derive(Clone, Debug)]
enum Shown {
    Held { epoch: Epoch, ids: Vec<ResourceId> },
    Agreed,
}

impl Holdings {
    /// A cluster was seen.
    pub(super) fn see(&mut self, cluster: &DynamicObject) {
        let (Ok(name), Some(agreed)) =
            (ClusterName::new(cluster.name_any()), cluster.annotations().get(AGREE_DELETIONS))
        else {
            return;
        };
        if let Ok(epoch) = Epoch::new(agreed)
            && self.told.get(&name) != Some(&epoch)
        {
            self.agreed.insert(name, epoch);
        }
    }

    /// A cluster has works that its source does not know.
    pub(super) fn hold(&mut self, cluster: ClusterName, epoch: Epoch, ids: Vec<ResourceId>) {
        self.shown.insert(cluster, Shown::Held { epoch, ids });
    }

    /// The source heard that somebody agreed.
    pub(super) fn agree(&mut self, cluster: ClusterName) {
        self.shown.insert(cluster, Shown::Agreed);
    }

    /// A cluster left.
    pub(super) fn forget(&mut self, cluster: &str) {
        if let Ok(cluster) = ClusterName::new(cluster) {
            self.agreed.remove(&cluster);
            self.told.remove(&cluster);
            self.shown.remove(&cluster);
        }
    }

    pub(super) fn next_try(&self, now: Instant) -> Option<Instant> {
        self.pause.until().filter(|next| !self.shown.is_empty() && *next > now)
    }
}

impl Fleet {
    /// Tells what was agreed to. Says whether anybody listens.
    pub(super) async fn tell_agreed(&mut self) -> bool {
        while let Some((cluster, epoch)) = self.holdings.agreed.pop_first() {
            self.holdings.told.insert(cluster.clone(), epoch.clone());
            if self.changes.send(Change::Agree { cluster, epoch }).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Shows what is held on the clusters that hold it.
    pub(super) async fn show_holdings(&mut self) {
        let now = Instant::now();
        if !self.holdings.pause.is_over(now) {
            return;
        }
        let (stop, counters) = (self.stop.clone(), Arc::clone(&self.counters));
        let failed = || Counters::add(&counters.failed_writes, 1);
        let time = (self.config.clock)().to_string();
        while let Some((cluster, shown)) = self.holdings.shown.pop_first() {
            let path = path::object(&path::clusters(), "", cluster.as_str());
            let attempt = || show(&self.config.inventory, &path, &shown, &time);
            let written = write::persist("the status of a ManagedCluster", &stop, failed, attempt).await;
            if written == Err(Unwritten::NotNow) {
                self.holdings.shown.entry(cluster).or_insert(shown);
                return self.holdings.pause.begin(now);
            }
        }
        self.holdings.pause.end();
    }
}

async fn show(inventory: &Client, path: &str, shown: &Shown, now: &str) -> Result<(), kube::Error> {
    let Some(found) = write::get(inventory, path).await? else { return Ok(()) };
    let Some(part) = with_condition(&found, shown, now) else { return Ok(()) };
    write::merge(inventory, &format!("{path}/status"), &part).await.map(drop)
}

/// The part of a ManagedCluster to merge, unless it says so already. Its version makes sure that nobody else's condition is lost.
fn with_condition(cluster: &Value, shown: &Shown, now: &str) -> Option<Value> {
    let mut conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let at = conditions.iter().position(|condition| condition["type"] == DELETIONS_HELD);
    let known = at.map(|at| conditions.swap_remove(at));
    let mut condition = match shown {
        Shown::Held { epoch, ids } => json!({
            "type": DELETIONS_HELD, "status": "True", "reason": "UnknownWorks", "message": message(epoch, ids),
        }),
        Shown::Agreed => json!({
            "type": DELETIONS_HELD, "status": "False", "reason": "Agreed", "message": "The works that were held are deleted",
        }),
    };
    match (&known, shown) {
        // Nothing was held: there is nothing to take back.
        (None, Shown::Agreed) => return None,
        (Some(known), _) if known["message"] == condition["message"] => return None,
        _ => {}
    }
    let since = known.filter(|known| known["status"] == condition["status"]);
    let since = since.as_ref().and_then(|known| known["lastTransitionTime"].as_str()).unwrap_or(now);
    condition["lastTransitionTime"] = since.into();
    conditions.push(condition);
    let version = &cluster["metadata"]["resourceVersion"];
    Some(json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}))
}

fn message(epoch: &Epoch, ids: &[ResourceId]) -> String {
    let named: Vec<&str> = ids.iter().take(MAX_NAMED).map(ResourceId::as_str).collect();
    let more = if ids.len() > MAX_NAMED { ", …" } else { "" };
    format!(
        "The cluster has {} works that this installation does not know: {}{more}. They stay until somebody agrees to their deletion \
         with the annotation {AGREE_DELETIONS}={epoch}",
        ids.len(),
        named.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_stands_beside_others_and_is_written_when_it_says_something_new() {
        let ids: Vec<ResourceId> =
            (0..12).map(|number| ResourceId::new(format!("w{number}")).expect("an id")).collect();
        let held = Shown::Held { epoch: Epoch::new("e1").expect("an epoch"), ids };
        let mut cluster = json!({
            "metadata": {"resourceVersion": "7"}, "status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True"}]},
        });
        assert_eq!(with_condition(&cluster, &Shown::Agreed, "1"), None, "nothing was held");
        let part = with_condition(&cluster, &held, "1").expect("news");
        assert_eq!(part["metadata"], json!({"resourceVersion": "7"}));
        let conditions = part["status"]["conditions"].as_array().expect("conditions");
        assert_eq!((conditions.len(), &conditions[1]["lastTransitionTime"]), (2, &json!("1")));
        let message = conditions[1]["message"].as_str().expect("a message");
        assert!(message.contains("has 12 works") && message.contains("w9, …"), "{message}");
        assert!(message.ends_with("control.orrery.io/agree-deletions=e1"), "{message}");

        cluster["status"] = part["status"].clone();
        assert_eq!(with_condition(&cluster, &held, "2"), None, "it says so");
        let part = with_condition(&cluster, &Shown::Agreed, "2").expect("news");
        let condition = &part["status"]["conditions"][1];
        assert_eq!((&condition["status"], &condition["lastTransitionTime"]), (&json!("False"), &json!("2")));
    }
}
