//! The API without a socket for clients of kube-rs.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use http::{Request, Response, Uri};
use kube::{Client, client::Body};
use orrery_apiserver::{Service, identity::User};

/// A client of a space that may do everything, without a socket. `*` is all spaces, `root` the management space.
pub fn kube_in_process(service: Service, space: &str) -> Client {
    let prefix = if space == "root" { String::new() } else { format!("/spaces/{space}") };
    Client::new(InProcess { service, prefix }, "default")
}

/// The API below a path, for somebody who may do everything.
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
