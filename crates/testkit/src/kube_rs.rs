//! Clients of kube-rs: over TLS as anybody has them, and in the process of the server without a socket.

use std::path::Path;

use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
};
pub use orrery::client::kube_in_process;

use crate::ControlPlane;

/// A client as a kubeconfig describes it.
pub async fn kube_client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("a context");
    Client::try_from(config).expect("a client")
}

impl ControlPlane {
    /// A client of a space that may do everything, without a socket. `*` is all spaces, `root` the management space.
    pub fn kube(&self, space: &str) -> Client {
        kube_in_process(self.service(), space)
    }

    /// A client over TLS that may do everything in a space, which is made if it is not there.
    pub async fn kube_over_tls(&self, space: &str) -> Client {
        kube_client(&self.space(space).await).await
    }
}
