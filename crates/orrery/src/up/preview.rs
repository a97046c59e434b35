//! BindingPreviews: a user's question is brought to whoever decides placement, and the answer back.

use std::sync::{Arc, Mutex, PoisonError};

use orrery_api::{
    control,
    preview::{BindingPreviewSpec, PreviewRow},
};
use orrery_apiserver::{
    Answers, Asked, What,
    status::{Named, Status},
};
use orrery_hub::{controller::Question, preview::BadQuestion};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// How many questions may be on their way.
const ON_THEIR_WAY: usize = 64;
/// When to ask again, in seconds.
const LATER: u32 = 1;

/// Where questions are asked. It is open while placement is decided in this program.
#[derive(Clone, Default)]
pub struct Desk(Arc<Mutex<Option<mpsc::Sender<Question>>>>);

impl Desk {
    /// Opens it to whoever decides placement now.
    pub fn open(&self) -> mpsc::Receiver<Question> {
        let (sender, questions) = mpsc::channel(ON_THEIR_WAY);
        self.set(Some(sender));
        questions
    }

    /// Closes it until somebody else decides.
    pub fn close(&self) {
        self.set(None);
    }

    /// Answers BindingPreviews.
    pub fn answers(&self) -> Answers {
        let desk = self.clone();
        Arc::new(move |asked| {
            let desk = desk.clone();
            Box::pin(async move { desk.answer(&asked).await })
        })
    }

    fn set(&self, sender: Option<mpsc::Sender<Question>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sender;
    }

    fn sender(&self) -> Result<mpsc::Sender<Question>, Status> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sender.ok_or_else(|| {
            Status::unavailable(
                "placement is not decided by this hub at the moment: ask again, or ask the hub that leads",
            )
        })
    }

    async fn answer(&self, asked: &Asked) -> Result<Value, Status> {
        let spec = asked.object().get("spec").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let mut spec = BindingPreviewSpec::deserialize(spec).map_err(|error| Status::bad_request(error.to_string()))?;
        for (at, given) in spec.given.iter_mut().enumerate() {
            let tried = asked.tried(given).await;
            *given = tried.map_err(|status| status.prefixed(&format!("spec.given[{at}]: ")))?;
        }
        let (answer, answered) = oneshot::channel();
        let question = Question { space: asked.space().to_owned(), asked: spec, answer };
        let busy = || Status::too_many_requests("too many previews are asked for at once", LATER);
        self.sender()?.try_send(question).map_err(|_| busy())?;
        let mut status = answered.await.map_err(|_| busy())?.map_err(refused)?;
        withhold(&mut status.rows, asked);
        serde_json::to_value(status).map_err(Status::internal_error)
    }
}

fn refused(bad: BadQuestion) -> Status {
    match bad {
        BadQuestion::NoPolicy(name) => {
            Status::not_found(Named { group: control::GROUP, what: "bindingpolicies" }, &name)
        }
        BadQuestion::MovedOn { continues } => Status::page_expired(continues),
        bad @ (BadQuestion::Given { .. } | BadQuestion::Continue(_)) => Status::bad_request(bad.to_string()),
    }
}

/// Leaves out what is in objects that whoever asks may not read. That they are sent, their Bindings tell too.
fn withhold(rows: &mut [PreviewRow], asked: &Asked) {
    for of_one in rows.chunk_by_mut(|one, other| one.object == other.object) {
        let Some(object) = of_one.first().map(|row| &row.object) else { continue };
        let (group, resource) = (object.group.as_str(), object.resource.as_str());
        let what = What { group, resource, namespace: &object.namespace, name: &object.name };
        if asked.may("get", what) {
            continue;
        }
        for row in of_one {
            (row.manifest, row.sent, row.withheld) = (None, None, true);
            row.errors.clear();
        }
    }
}
