//! Every namespace has a config map with the certificate by which its clients know the server.

use serde_json::{Value, json};

use super::contents::{self, Place};
use crate::{server::Shared, status::Status};

/// Its name.
pub(super) const NAME: &str = "kube-root-ca.crt";

/// What its annotation says, which is what Kubernetes says.
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
                           such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
                           distributions of Kubernetes clusters.";

/// What it is.
pub(super) fn object(root_ca: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "annotations": {"kubernetes.io/description": DESCRIPTION}},
        "data": {"ca.crt": root_ca},
    })
}

/// Makes it if it is not there, and sets it right if somebody changed it.
pub(super) async fn ensure(shared: &Shared, place: &Place) -> Result<(), Status> {
    let object = object(&(shared.config.root_ca)());
    let resource = shared.registry.resource("", "v1", "configmaps").ok_or_else(Status::no_such_resource)?;
    contents::ensure(shared, place, resource, NAME, object.clone()).await?;
    let writer = super::writer(shared, resource, &place.space, &place.namespace);
    match writer.edit(NAME, |current| current["data"] = object["data"].clone()).await {
        Err(status) if status.code() != 404 => Err(status),
        _ => Ok(()),
    }
}
