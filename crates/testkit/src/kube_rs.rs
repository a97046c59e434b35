//! Clients of kube-rs: over TLS as anybody has them, and in the process of the server without a socket.

use std::{
    convert::Infallible,
    path::Path,
    task::{Context, Poll},
};

use http::{Request, Response, Uri};
use kube::{
    Client,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use orrery_apiserver::{Service, identity::User};

use crate::ControlPlane;

/// A client as a kubeconfig describes it.
pub async fn kube_client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("a context");
    Client::try_from(config).expect("a client")
}

/// A client of a space that may do everything, without a socket. `*` is all spaces, `root` the management space.
pub fn kube_in_process(service: Service, space: &str) -> Client {
    let prefix = if space == "root" { String::new() } else { format!("/spaces/{space}") };
    Client::new(InProcess { service, prefix }, "default")
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

/// The API without a socket, below a path, for somebody who may do everything.
#[derive(Clone)]
struct InProcess {
    service: Service,
    prefix: String,
}

impl tower_service::Service<Request<Body>> for InProcess {
    type Response = Response<orrery_apiserver::Body>;
    type Error = Infallible;
    type Future = <Service as tower_service::Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        tower_service::Service::<Request<Body>>::poll_ready(&mut self.service, context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = format!("{}{path}", self.prefix).parse::<Uri>().expect("a path below another is one");
        request.extensions_mut().insert(User::admin());
        self.service.call(request)
    }
}
