//! The `type` attribute: which words each dialect has for which message.

use super::Dialect;
use crate::{Cause, Message, Wish};

/// A type of the document.
macro_rules! seed {
    ($name:literal) => {
        concat!("io.open-cluster-management.v1.manifestwork.", $name)
    };
}

/// A type of the Go code.
macro_rules! ocm {
    ($name:literal) => {
        concat!("io.open-cluster-management.works.v1alpha1.manifestbundles.", $name)
    };
}

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
            let text = strip_prefix_ignoring_case(text, seed!(""))?.to_ascii_lowercase();
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
        Dialect::Ocm => Some(match text.strip_prefix(ocm!(""))? {
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
pub(super) fn name(dialect: Dialect, message: &Message) -> &'static str {
    match dialect {
        Dialect::Seed => seed_name(message),
        Dialect::Ocm => ocm_name(message),
    }
}

fn seed_name(message: &Message) -> &'static str {
    match message {
        Message::Spec(spec) => match (&spec.wish, spec.cause) {
            (Wish::Delete(_) | Wish::Unknown(_), _) => seed!("spec.deleted"),
            (Wish::Apply(_), Cause::Created) => seed!("spec.created"),
            (Wish::Apply(_), _) => seed!("spec.updated"),
        },
        Message::Status(status) if status.cause == Cause::Created => seed!("status.created"),
        Message::Status(_) => seed!("status.updated"),
        Message::SpecResync(_) => seed!("specresync.requested"),
        Message::StatusResync(_) => seed!("statusresync.requested"),
        Message::ResyncCompleted(_) => seed!("specresync.completed"),
    }
}

fn ocm_name(message: &Message) -> &'static str {
    match message {
        Message::Spec(spec) => match (&spec.wish, spec.cause) {
            (_, Cause::Resync) => ocm!("spec.resync_response"),
            (Wish::Delete(_) | Wish::Unknown(_), _) => ocm!("spec.delete_request"),
            (Wish::Apply(_), Cause::Created) => ocm!("spec.create_request"),
            (Wish::Apply(_), Cause::Updated) => ocm!("spec.update_request"),
        },
        Message::Status(status) if status.cause == Cause::Resync => ocm!("status.resync_response"),
        Message::Status(_) => ocm!("status.update_request"),
        Message::SpecResync(_) => ocm!("spec.resync_request"),
        Message::StatusResync(_) => ocm!("status.resync_request"),
        Message::ResyncCompleted(_) => ocm!("specresync.completed"),
    }
}
