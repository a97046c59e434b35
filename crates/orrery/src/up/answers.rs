//! Answers on their way out: logged, limited in time, and ended when the program ends.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use orrery_apiserver::{About, Body, Service, identity::User};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower_service::Service as _;

use crate::metrics::Requests;

/// From when on an answer counts as slow.
const SLOW: Duration = Duration::from_secs(1);

/// The API as the listener sees it.
#[derive(Clone)]
pub(super) struct Answers {
    pub(super) api: Service,
    pub(super) requests: Arc<Requests>,
    pub(super) stop: CancellationToken,
}

impl Answers {
    /// Answers a request and says so in the log.
    pub(super) async fn answer(mut self, request: Request<Incoming>) -> Response<Answer> {
        let started = Instant::now();
        let said = Said::new(&request);
        let answered = match self.api.call(request).await {
            Ok(answered) => answered,
            Err(never) => match never {},
        };
        let (code, took) = (answered.status().as_u16(), started.elapsed());
        self.requests.count(&said.method, answered.extensions().get::<About>(), code, took);
        said.log(code, took);
        answered.map(|body| Answer::new(body, &self.stop))
    }
}

/// What the log says of a request. Queries and bodies stay out of it: they can hold what is nobody's business.
struct Said {
    method: http::Method,
    path: String,
    user: Option<String>,
}

impl Said {
    fn new(request: &Request<Incoming>) -> Self {
        let user = request.extensions().get::<User>().map(|user| user.name.clone());
        Self { method: request.method().clone(), path: request.uri().path().to_owned(), user }
    }

    fn log(&self, status: u16, took: Duration) {
        let Self { method, path, user } = self;
        let user = user.as_deref().unwrap_or("system:anonymous");
        let milliseconds = took.as_millis();
        if status >= 500 {
            tracing::warn!(%method, path, user, status, milliseconds, "request failed");
        } else if took >= SLOW {
            tracing::info!(%method, path, user, status, milliseconds, "slow request");
        } else {
            tracing::debug!(%method, path, user, status, milliseconds, "request");
        }
    }
}

/// The body of an answer, which ends when there is nothing to send and the program stops.
///
/// Only a watch ever has nothing to send, so that other answers arrive whole.
pub(super) struct Answer {
    body: Body,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Answer {
    fn new(body: Body, stop: &CancellationToken) -> Self {
        let endless = body.size_hint().exact().is_none();
        Self { body, stop: endless.then(|| Box::pin(stop.clone().cancelled_owned())) }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        match &mut self.stop {
            Some(stop) => stop.as_mut().poll(context).map(|()| None),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
