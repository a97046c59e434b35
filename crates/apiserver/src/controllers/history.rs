//! Forgets what is too old to be read again, as Kubernetes does: a list that is read in pages for longer than some minutes,
//! and a watch that comes back later, begin anew.
//!
//! The server renews a Lease whenever it looks, as a server of Kubernetes does far more often. So the revision moves on even
//! when nobody writes, and what was read before can be told from what is read now.

use std::{collections::VecDeque, sync::Arc};

use orrery_store::Revision;
use serde_json::{Value, json};

use super::{contents, contents::Place, writer};
use crate::{request::ROOT, server::Shared, status::Status};

const LEASE: &str = "orrery-apiserver";
const NAMESPACE: &str = "kube-system";

/// How often it looks while something is kept.
const LOOKS: u32 = 2;

/// Looks every now and then, and forgets what has been there for long enough.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut seen = VecDeque::new();
    loop {
        tokio::time::sleep(shared.config.history / LOOKS).await;
        if let Err(status) = renew(&shared).await {
            tracing::warn!(why = %status.message(), "the Lease of this server was not renewed");
        }
        if seen.len() == LOOKS as usize
            && let Some(through) = seen.pop_front()
        {
            forget(&shared, through).await;
        }
        seen.push_back(shared.store.stored().revision());
    }
}

async fn forget(shared: &Shared, through: Revision) {
    if let Err(error) = shared.store.stored().compact(through).await {
        tracing::warn!(%error, "old history is kept for now");
    }
}

async fn renew(shared: &Shared) -> Result<(), Status> {
    let resource = shared.registry.resource("coordination.k8s.io", "v1", "leases");
    let resource = resource.ok_or_else(Status::no_such_resource)?;
    let writer = writer(shared, resource, ROOT, NAMESPACE);
    let now = Value::from((shared.config.clock)().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string());
    match writer.edit(LEASE, |lease| lease["spec"]["renewTime"] = now.clone()).await {
        Err(status) if status.code() == 404 => {
            // Long enough for a look to be late.
            let seconds = shared.config.history.as_secs().max(1) * 12;
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
                "spec": {"holderIdentity": LEASE, "leaseDurationSeconds": seconds, "renewTime": now},
            });
            let place = Place { space: ROOT.to_owned(), namespace: NAMESPACE.to_owned() };
            contents::ensure(shared, &place, resource, LEASE, lease).await
        }
        renewed => renewed.map(drop),
    }
}
