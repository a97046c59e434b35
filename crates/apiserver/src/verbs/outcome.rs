//! What a write makes of an object, and how that is answered.

use std::sync::Arc;

use http::Response;
use orrery_store::Object;
use serde_json::Value;

use super::{Call, create::outgoing, is_as_stored, native, read, stored};
use crate::{body::Body, object::Metadata, request::Shape, status::Status};

/// An object as it is before a write, complete.
#[derive(Clone, Copy)]
pub(crate) struct Old<'a> {
    pub(crate) object: &'a Value,
    /// The text of its managers where they are kept apart; otherwise they stand in the object.
    pub(crate) managers: Option<&'a [u8]>,
}

/// An object as a write makes it.
pub(crate) struct Made {
    pub(crate) object: Value,
    /// The text of its managers where they are kept apart; otherwise they stand in the object.
    ///
    /// They often take more room than the rest, and nothing that happens to an object on its way into the store looks at them.
    pub(crate) managers: Option<Vec<u8>>,
}

impl Made {
    /// The object, with its managers in it.
    pub(crate) fn whole(self) -> Value {
        let Self { mut object, managers } = self;
        if let Some(list) = managers.and_then(|text| serde_json::from_slice::<Value>(&text).ok()) {
            Metadata::of(&mut object).set("managedFields", list);
        }
        object
    }
}

impl From<Value> for Made {
    fn from(object: Value) -> Self {
        Self { object, managers: None }
    }
}

/// What became of an object.
pub(crate) enum Change {
    /// It is as it was.
    None(Outcome),
    /// It has changed.
    Updated(Outcome),
    /// It is gone; this is what it was last.
    Deleted(Outcome),
}

/// An object after a write, in the version that was written.
pub(crate) enum Outcome {
    /// It is in the store like this.
    Stored(Arc<Object>),
    /// It was only tried out, is gone, or is stored in another form.
    Value(Value),
}

impl Change {
    /// The object, whatever became of it.
    pub(crate) fn outcome(self) -> Outcome {
        let (Self::None(outcome) | Self::Updated(outcome) | Self::Deleted(outcome)) = self;
        outcome
    }
}

impl Outcome {
    /// The object as a value.
    pub(crate) fn value(self, call: &Call) -> Result<Value, Status> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Stored(object) => read(&call.shared.registry, native(&call.shared.registry, &call.resource), &object),
        }
    }

    /// The object as an answer. What is stored as it is shown is copied.
    pub(crate) async fn answer(self, call: &Call, code: u16) -> Result<Response<Body>, Status> {
        if let Self::Stored(object) = &self
            && call.accepted.form.shape == Shape::Whole
            && is_as_stored(&call.resource, &stored(object)?)
        {
            call.table_view()?;
            return call.stored_answer(code, object).await;
        }
        call.value_answer(code, &outgoing(call, self.value(call)?))
    }
}
