//! Where an answer ended: the text that brings whoever asks to the next one.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use orrery_api::preview::{BindingPreviewSpec, PreviewRow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::BadQuestion;
use crate::placement::ObjectId;

/// The form of the text.
const VERSION: u32 = 1;

/// The last row of an answer, of which question it is, and as of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    v: u32,
    question: String,
    /// What the answer was made of; empty to go on with whatever there is.
    mark: String,
    pub(super) policy: String,
    object: [String; 4],
    pub(super) cluster: String,
}

impl Place {
    /// Reads the place a question asks to go on at.
    pub(super) fn of(asked: &BindingPreviewSpec) -> Result<Option<Self>, BadQuestion> {
        if asked.continues.is_empty() {
            return Ok(None);
        }
        let bad = |why: &str| BadQuestion::Continue(why.to_owned());
        let bytes = URL_SAFE_NO_PAD.decode(&asked.continues).map_err(|_| bad("it is not base64"))?;
        let place: Self = serde_json::from_slice(&bytes).map_err(|_| bad("it does not come from an answer"))?;
        if place.v != VERSION {
            return Err(bad("it comes from another version of the server"));
        }
        if place.question != question(asked) {
            return Err(bad("it comes from the answer to another question"));
        }
        Ok(Some(place))
    }

    /// The place after a row.
    pub(super) fn after(row: &PreviewRow, question: &str, mark: &str) -> Self {
        let object = &row.object;
        Self {
            v: VERSION,
            question: question.to_owned(),
            mark: mark.to_owned(),
            policy: row.policy.clone(),
            object: [&object.group, &object.resource, &object.namespace, &object.name].map(Clone::clone),
            cluster: row.cluster.clone(),
        }
    }

    /// Refuses to go on where an answer was made of something else than there is now.
    pub(super) fn check(&self, mark: &str) -> Result<(), BadQuestion> {
        if self.mark.is_empty() || self.mark == mark {
            return Ok(());
        }
        Err(BadQuestion::MovedOn { continues: Self { mark: String::new(), ..self.clone() }.to_text() })
    }

    pub(super) fn object(&self) -> ObjectId {
        let [group, resource, namespace, name] = &self.object;
        ObjectId::new(group, resource, namespace, name)
    }

    pub(super) fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).expect("texts can be written"))
    }
}

/// What tells a question from others, on whichever page.
pub(super) fn question(asked: &BindingPreviewSpec) -> String {
    let same = BindingPreviewSpec { limit: None, continues: String::new(), ..asked.clone() };
    let text = serde_json::to_vec(&same).expect("a question can be written");
    Sha256::digest(text).iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
