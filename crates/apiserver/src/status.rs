//! Every failure as the Status clients expect: the one file that knows HTTP codes and Kubernetes' texts for them.

use std::{collections::HashSet, fmt::Display};

use serde::Serialize;
use serde_json::Value;

use crate::{field::FieldError, gotext};

/// A failure, as it is sent to the client. It is one pointer, so that what can fail stays cheap to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status(Box<Failure>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Failure {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Details>,
    /// For an expired list: where the client can go on, at a newer revision.
    continue_token: Option<String>,
    /// Not a Status at all, but plain text.
    plain: bool,
}

/// What a failure is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    #[serde(skip_serializing_if = "is_zero")]
    retry_after_seconds: u32,
}

/// One of the things that are wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// A word for programs, such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The field it is about, if it is about one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// A resource (`configmaps`) or a kind (`ConfigMap`) with its API group, as messages name it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The resource in the plural, or the kind.
    pub what: &'a str,
}

impl Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.group {
            "" => write!(f, "{}", self.what),
            group => write!(f, "{}.{group}", self.what),
        }
    }
}

/// What a request can be told in place of an answer.
pub type Result<T, E = Status> = std::result::Result<T, E>;

impl Status {
    /// The HTTP code.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The word for programs.
    pub fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// Whether the answer is its message alone, as text.
    pub fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// After how many seconds the client may try again.
    pub fn retry_after(&self) -> Option<u32> {
        self.0.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0)
    }

    /// Its body.
    pub fn to_json(&self) -> Vec<u8> {
        let body = Body {
            kind: "Status",
            api_version: "v1",
            metadata: Metadata { continue_token: self.0.continue_token.as_deref() },
            status: "Failure",
            message: &self.0.message,
            reason: self.0.reason,
            details: self.0.details.as_ref(),
            code: self.0.code,
        };
        // Serialising strings and numbers into memory cannot fail.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The same as what went wrong in the server: as events say it.
    #[must_use]
    pub(crate) fn into_internal_error(mut self) -> Self {
        self.0.reason = "InternalError";
        self
    }

    /// The same with something said before.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        self.0.message.insert_str(0, prefix);
        self
    }

    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Failure {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            plain: false,
        }))
    }

    fn plain(mut self) -> Self {
        self.0.plain = true;
        self
    }

    fn details(mut self, details: Details) -> Self {
        self.0.details = Some(details);
        self
    }

    fn about(self, what: Named<'_>, name: &str) -> Self {
        let details =
            Details { name: name.into(), group: what.group.into(), kind: what.what.into(), ..Details::default() };
        self.details(details)
    }

    fn causes(mut self, causes: Vec<Cause>) -> Self {
        self.0.details.get_or_insert_default().causes = causes;
        self
    }
}

/// Requests that cannot be understood.
impl Status {
    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 400 as HTTP servers give it before any API is reached.
    pub fn malformed() -> Self {
        Self::new(400, "", "400 Bad Request").plain()
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 with the whole sentence after the object's name.
    pub fn forbidden(resource: Named<'_>, name: &str, why: &str) -> Self {
        let message = match name {
            "" => format!("{resource} is forbidden: {why}"),
            _ => format!("{resource} {} is forbidden: {why}", gotext::quote(name)),
        };
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// 403 for an address outside the resources.
    pub fn forbidden_path(why: &str) -> Self {
        Self::new(403, "Forbidden", format!("forbidden: {why}")).details(Details::default())
    }

    /// 403 because the namespace is going away.
    pub fn namespace_terminating(resource: Named<'_>, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let message = format!("namespace {namespace} is being terminated");
        let cause = Cause { reason: "NamespaceTerminating", message, field: "metadata.namespace".into() };
        Self::forbidden(resource, name, &why).causes(vec![cause])
    }

    /// 404 for an address that nothing is served at.
    pub fn no_such_page() -> Self {
        Self::new(404, "", "404 page not found\n").plain()
    }

    /// 404 for a resource that a known group does not have.
    pub fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message).details(Details::default())
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).details(Details::default())
    }

    /// 405 for a resource that is served, but not this verb of it.
    pub fn verb_not_supported(resource: Named<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::new(405, "MethodNotAllowed", message).about(resource, "")
    }

    /// 406 when no type the client accepts is one we have.
    pub fn no_acceptable_type(available: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        Self::new(406, "NotAcceptable", message).details(Details::default())
    }

    /// 406 when the client accepts one of our types with parameters we do not know.
    pub fn no_acceptable_form(available: &str) -> Self {
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {available}"))
    }

    /// 406 when the form asked for does not fit what it would hold.
    pub fn form_does_not_fit(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 413.
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// 415 for a body we cannot read.
    pub fn unsupported_body(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 415 for a patch of a type that is not one.
    pub fn unsupported_patch() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").details(Details::default())
    }

    /// 422 with what is wrong with an object.
    pub fn invalid(kind: Named<'_>, name: &str, causes: Vec<Cause>) -> Self {
        let (mut told, mut known) = (Vec::new(), HashSet::new());
        for cause in &causes {
            let text = format!("{}: {}", cause.field, cause.message);
            if known.insert(text.clone()) {
                told.push(text);
            }
        }
        let all = match told.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", told.join(", ")),
        };
        let message = format!("{kind} {} is invalid: {all}", gotext::quote(name));
        Self::new(422, "Invalid", message).about(kind, name).causes(causes)
    }

    /// Tells empty maps and lists from absent ones, as they were sent: objects that are judged have neither.
    #[must_use]
    pub(crate) fn in_terms_of(mut self, sent: impl FnOnce() -> Option<Value>) -> Self {
        const ABSENT: &str = " value: null";
        let failure = &mut *self.0;
        let causes = failure.details.as_mut().map(|details| details.causes.as_mut_slice()).unwrap_or_default();
        if !causes.iter().any(|cause| cause.message.contains(ABSENT)) {
            return self;
        }
        let Some(sent) = sent() else { return self };
        for cause in causes.iter_mut().filter(|cause| cause.message.contains(ABSENT)) {
            let mut pointer = format!("/{}", cause.field.replace(']', "").replace(['.', '['], "/"));
            if cause.message.ends_with("`rules` must be specified") {
                // One part of it is shown for the whole.
                pointer.push_str("/rules");
            }
            let shown = match sent.pointer(&pointer) {
                Some(Value::Object(members)) if members.is_empty() => "{}",
                Some(Value::Array(items)) if items.is_empty() => "[]",
                _ => continue,
            };
            let told = cause.message.replacen(ABSENT, &format!(" value: {shown}"), 1);
            let (before, after) = (format!("{}: {}", cause.field, cause.message), format!("{}: {told}", cause.field));
            failure.message = failure.message.replace(&before, &after);
            cause.message = told;
        }
        self
    }

    /// 413 for a patch with too many operations.
    pub fn too_large_patch(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {}", message.into()))
    }

    /// 422 for a patch that does not go together with its object.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "", message).details(Details::default())
    }

    /// 422 for a patch that cannot be applied.
    pub fn patch_rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message).details(Details::default())
    }
}

/// Requests that do not fit what is there.
impl Status {
    /// 404.
    pub fn not_found(resource: Named<'_>, name: &str) -> Self {
        let message = format!("{resource} {} not found", gotext::quote(name));
        Self::new(404, "NotFound", message).about(resource, name)
    }

    /// 409 on create.
    pub fn already_exists(resource: Named<'_>, name: &str) -> Self {
        let message = format!("{resource} {} already exists", gotext::quote(name));
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// 409 because of what stands in the way.
    pub fn conflict(resource: Named<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", gotext::quote(name));
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 409 because others own what an apply would change.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        let mut status = Self::new(409, "Conflict", message);
        status.0.details = Some(Details { causes, ..Details::default() });
        status
    }

    /// 409 because somebody else was faster.
    pub fn modified(resource: Named<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 410 for a revision that is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 410 for a page whose revision is no longer kept, with a token that goes on at the current one.
    pub fn page_expired(continue_token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                       new list without the continue parameter, or use the continue token in this response to retrieve \
                       the remainder of the results. Continuing with the provided token results in an inconsistent \
                       list - objects that were created, modified, or deleted between the time the first chunk was \
                       returned and now may show up in the list.";
        let mut status = Self::expired(message);
        status.0.continue_token = Some(continue_token);
        status
    }

    /// 429.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds, ..Details::default() };
        Self::new(429, "TooManyRequests", message).details(details)
    }

    /// 429 because a pod is needed where it is.
    pub fn budget_exhausted(why: String, retry_after_seconds: u32) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
        Self::too_many_requests(message, retry_after_seconds).causes(vec![cause])
    }

    /// 504 for a request that took too long, which may yet be carried out.
    pub fn timeout() -> Self {
        Self::new(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
            .details(Details::default())
    }

    /// 504 for a revision that has not happened yet.
    pub fn revision_too_large(requested: u64, current: u64) -> Self {
        let message = "Too large resource version".to_owned();
        let cause = Cause { reason: "ResourceVersionTooLarge", message: message.clone(), field: String::new() };
        let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
        Self::new(504, "Timeout", format!("Timeout: {message}: {requested}, current: {current}")).details(details)
    }
}

/// Failures of our own.
impl Status {
    /// 500 with a bare message: where Kubernetes lets an inner error out as it is.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 500 that says so.
    pub fn internal_error(message: impl Display) -> Self {
        let cause = Cause { reason: "", message: message.to_string(), field: String::new() };
        Self::new(500, "InternalError", format!("Internal error occurred: {message}")).causes(vec![cause])
    }

    /// 500 as text for a request that wants to be taken as one of somebody's, but of nobody.
    pub fn nobody_to_impersonate(uri: &str, claims: &str) -> Self {
        let uri = gotext::quote(uri);
        let message = format!("Internal Server Error: {uri}: requested [{claims}] without impersonating a user\n");
        Self::new(500, "", message).plain()
    }

    /// 501 for what is not served here (yet).
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(501, "NotImplemented", message)
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 507 when the disk is full.
    pub fn no_room(message: impl Into<String>) -> Self {
        Self::new(507, "InsufficientStorage", message)
    }
}

impl From<FieldError> for Cause {
    fn from(error: FieldError) -> Self {
        Self { reason: error.kind.reason(), message: error.body, field: error.field }
    }
}

impl From<orrery_store::CommitError> for Status {
    /// What is left after the caller dealt with conflicts.
    fn from(error: orrery_store::CommitError) -> Self {
        use orrery_store::CommitError;
        match error {
            CommitError::NoRoom(_) => Self::no_room(error.to_string()),
            CommitError::Unavailable(_) | CommitError::Stopped(_) | CommitError::Unknown(_) => {
                Self::unavailable(error.to_string())
            }
            // The same words as etcd's for what can never be stored.
            CommitError::Refused(why) => Self::internal(format!("etcdserver: request is too large: {why}")),
            CommitError::Conflict { .. } => Self::internal_error(error),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: Metadata<'a>,
    status: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    code: u16,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    continue_token: Option<&'a str>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: &Status, expected: &str) {
        assert_eq!(String::from_utf8(status.to_json()).unwrap(), expected);
    }

    #[test]
    fn a_status_is_what_clients_expect() {
        let leases = Named { group: "coordination.k8s.io", what: "leases" };
        check(
            &Status::not_found(leases, "a"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"leases.coordination.k8s.io \"a\" not found","reason":"NotFound","details":{"name":"a","group":"coordination.k8s.io","kind":"leases"},"code":404}"#,
        );
        check(
            &Status::internal("why"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"why","code":500}"#,
        );
    }

    #[test]
    fn what_is_wrong_twice_is_said_once_and_listed_twice() {
        let cause = Cause { reason: "FieldValueRequired", message: "Required value".into(), field: "spec".into() };
        let kind = Named { group: "", what: "Pod" };
        let status = Status::invalid(kind, "a", vec![cause.clone(), cause]);
        assert_eq!(status.message(), r#"Pod "a" is invalid: spec: Required value"#);
        assert_eq!(status.0.details.map(|details| details.causes.len()), Some(2));
    }
}
