//! The `type` attribute: which words each dialect has for which message.

use super::Dialect;
use crate::{Cause, Message, Wish};

const SEED_PREFIX: &str = "io.open-cluster-management.v1.manifestwork.";
const OCM_PREFIX: &str = "io.open-cluster-management.works.v1alpha1.manifestbundles.";

/// What the type of an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Spec(Cause),
    Status(Cause),
    SpecResync,
    StatusResync,
    ResyncCompleted,
}

/// Reads a type; `None` when it is unknown.
pub(super) fn parse(dialect: Dialect, text: &str) -> Option<Kind> {
    match dialect {
        Dialect::Seed => {
            // The document's own example ends in a stray quotation mark.
            let text = text.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
            let text = strip_prefix_ignoring_case(text, SEED_PREFIX)?.to_ascii_lowercase();
            Some(match text.as_str() {
                "spec.created" => Kind::Spec(Cause::Created),
                "spec.updated" | "spec.deleted" => Kind::Spec(Cause::Updated),
                "status.created" => Kind::Status(Cause::Created),
                "status.updated" | "status.deleted" => Kind::Status(Cause::Updated),
                "specresync.requested" => Kind::SpecResync,
                "statusresync.requested" => Kind::StatusResync,
                "specresync.completed" => Kind::ResyncCompleted,
                _ => return None,
            })
        }
        Dialect::Ocm => Some(match text.strip_prefix(OCM_PREFIX)? {
            "spec.create_request" => Kind::Spec(Cause::Created),
            "spec.update_request" | "spec.delete_request" => Kind::Spec(Cause::Updated),
            "spec.resync_response" => Kind::Spec(Cause::Resync),
            "status.create_request" | "status.update_request" | "status.delete_request" => Kind::Status(Cause::Updated),
            "status.resync_response" => Kind::Status(Cause::Resync),
            "spec.resync_request" => Kind::SpecResync,
            "status.resync_request" => Kind::StatusResync,
            "specresync.completed" => Kind::ResyncCompleted,
            _ => return None,
        }),
    }
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// The type a message is sent with.
pub(super) fn name(dialect: Dialect, message: &Message) -> String {
    let (prefix, name) = match dialect {
        Dialect::Seed => (SEED_PREFIX, seed_name(message)),
        Dialect::Ocm => (OCM_PREFIX, ocm_name(message)),
    };
    [prefix, name].concat()
}

fn seed_name(message: &Message) -> &'static str {
    match message {
        Message::Spec(spec) => match (&spec.wish, spec.cause) {
            (Wish::Delete(_) | Wish::Unknown(_), _) => "spec.deleted",
            (Wish::Apply(_), Cause::Created) => "spec.created",
            (Wish::Apply(_), _) => "spec.updated",
        },
        Message::Status(status) if status.cause == Cause::Created => "status.created",
        Message::Status(_) => "status.updated",
        Message::SpecResync(_) => "specresync.requested",
        Message::StatusResync(_) => "statusresync.requested",
        Message::ResyncCompleted(_) => "specresync.completed",
    }
}

fn ocm_name(message: &Message) -> &'static str {
    match message {
        Message::Spec(spec) => match (&spec.wish, spec.cause) {
            (_, Cause::Resync) => "spec.resync_response",
            (Wish::Delete(_) | Wish::Unknown(_), _) => "spec.delete_request",
            (Wish::Apply(_), Cause::Created) => "spec.create_request",
            (Wish::Apply(_), Cause::Updated) => "spec.update_request",
        },
        Message::Status(status) if status.cause == Cause::Resync => "status.resync_response",
        Message::Status(_) => "status.update_request",
        Message::SpecResync(_) => "spec.resync_request",
        Message::StatusResync(_) => "status.resync_request",
        Message::ResyncCompleted(_) => "specresync.completed",
    }
}
