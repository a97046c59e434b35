//! The options of requests, checked as Kubernetes checks them.

use serde_json::Value;

use super::query::Query;
use crate::{
    gotext,
    json::kind,
    selector::{FieldSelector, LabelSelector},
    status::{Cause, Named, Status},
};

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Whether to decide everything and write nothing.
    pub dry_run: bool,
    /// What to do about fields nobody knows.
    pub field_validation: FieldValidation,
    /// Who writes; empty where the request does not say.
    pub field_manager: String,
    /// Whether an apply may change what others own.
    pub force: bool,
}

/// What to do about fields that are unknown or repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them and say so.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// What a deletion does to what the object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents go before the object.
    Foreground,
    /// Dependents go after the object.
    Background,
    /// Dependents stay and lose their owner.
    Orphan,
}

/// Options of delete and deletecollection.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Whether to decide everything and write nothing.
    pub dry_run: bool,
    /// How long the object may take to go.
    pub grace_period_seconds: Option<i64>,
    /// The older way to say what happens to dependents.
    pub orphan_dependents: Option<bool>,
    /// What happens to dependents.
    pub propagation: Option<Propagation>,
    /// Delete only the object with this uid.
    pub uid: Option<String>,
    /// Delete only this version of the object.
    pub resource_version: Option<String>,
}

/// How a revision given with a list is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// At this revision.
    Exact,
    /// At this revision or a newer one.
    NotOlderThan,
}

/// Options of list and watch.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which labels the objects must have.
    pub(crate) labels: LabelSelector,
    /// Which fields the objects must have.
    pub(crate) fields: FieldSelector,
    /// Whether to go on with what happens.
    pub watch: bool,
    /// Whether to be told how far the watch has come.
    pub allow_bookmarks: bool,
    /// The revision, as text.
    pub resource_version: String,
    /// How it is meant.
    pub version_match: Option<VersionMatch>,
    /// After how many seconds a watch ends.
    pub timeout_seconds: Option<i64>,
    /// How many objects at most; zero is no limit.
    pub limit: usize,
    /// Where the page before ended.
    pub continue_token: String,
    /// Whether a watch begins with what is there.
    pub send_initial_events: Option<bool>,
}

impl WriteOptions {
    /// Reads the options of a request; `kind` is what Kubernetes calls them.
    pub fn parse(query: &Query, kind: &str) -> Result<Self, Status> {
        Self::checked(query, kind, Vec::new())
    }

    /// Reads the options of a patch that is no apply.
    pub fn of_patch(query: &Query) -> Result<Self, Status> {
        let forced = query.get("force").map(|_| forbidden("force", "may not be specified for non-apply patch"));
        Self::checked(query, "PatchOptions", forced.into_iter().collect())
    }

    /// Reads the options of an apply, which must say who applies.
    pub fn of_apply(query: &Query) -> Result<Self, Status> {
        let unnamed = query.get("fieldManager").unwrap_or_default().is_empty();
        let message = "Required value: is required for apply patch".to_owned();
        let cause = Cause { reason: "FieldValueRequired", message, field: "fieldManager".into() };
        Self::checked(query, "PatchOptions", unnamed.then_some(cause).into_iter().collect())
    }

    fn checked(query: &Query, kind: &str, mut causes: Vec<Cause>) -> Result<Self, Status> {
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        let field_manager = query.get("fieldManager").unwrap_or_default();
        causes.extend(field_manager_cause(field_manager, "fieldManager"));
        causes.extend(dry_run_causes(&dry_run));
        let field_validation = match query.get("fieldValidation").unwrap_or_default() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = r#"supported values: "", "Ignore", "Strict", "Warn""#;
                causes.push(not_supported("fieldValidation", &gotext::quote(other), supported));
                FieldValidation::Warn
            }
        };
        refuse(kind, causes)?;
        let (field_manager, force) = (field_manager.to_owned(), query.flag("force"));
        Ok(Self { dry_run: !dry_run.is_empty(), field_validation, field_manager, force })
    }
}

/// Refuses options that have something wrong with them.
fn refuse(kind: &str, causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(Named { group: "meta.k8s.io", what: kind }, "", causes))
}

fn not_supported(field: &str, value: &str, supported: &str) -> Cause {
    let message = format!("Unsupported value: {value}: {supported}");
    Cause { reason: "FieldValueNotSupported", message, field: field.into() }
}

fn forbidden(field: &str, why: &str) -> Cause {
    Cause { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
}

fn dry_run_causes(values: &[&str]) -> Vec<Cause> {
    if values.iter().all(|value| *value == "All") {
        return Vec::new();
    }
    let list = serde_json::to_string(values).unwrap_or_default();
    vec![not_supported("dryRun", &list, r#"supported values: "All""#)]
}

/// Longest name of a field manager, in bytes.
pub(crate) const FIELD_MANAGER_MAX: usize = 128;

/// What is wrong with the name of a field manager.
pub(crate) fn field_manager_cause(name: &str, field: &str) -> Option<Cause> {
    let field = field.to_owned();
    if name.len() > FIELD_MANAGER_MAX {
        let message = format!("Too long: may not be more than {FIELD_MANAGER_MAX} bytes");
        return Some(Cause { reason: "FieldValueTooLong", message, field });
    }
    let (position, character) = name.char_indices().find(|(_, character)| !gotext::is_print(*character))?;
    let code = u32::from(character);
    let quoted = gotext::quote(name);
    let message = format!("Invalid value: {quoted}: invalid character U+{code:04X} (at position {position})");
    Some(Cause { reason: "FieldValueInvalid", message, field })
}

impl DeleteOptions {
    /// Reads the options of a deletion from its query, which counts only when there is no body.
    pub fn from_query(query: &Query) -> Result<Self, Status> {
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        let mut causes = dry_run_causes(&dry_run);
        let orphan_dependents = query.optional_flag("orphanDependents");
        let propagation = propagation(query.get("propagationPolicy"), orphan_dependents, &mut causes);
        let grace_period_seconds = query.integer("gracePeriodSeconds")?;
        refuse("DeleteOptions", causes)?;
        let given = |name| query.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            grace_period_seconds,
            orphan_dependents,
            propagation,
            uid: given("uid"),
            resource_version: given("resourceVersion"),
        })
    }

    /// Reads the options of a deletion from its body.
    pub fn from_body(body: &Value) -> Result<Self, Status> {
        let typed = |problem: &str, field: &str, wanted: &str| {
            Status::internal(format!(
                "json: cannot unmarshal {problem} into Go struct field DeleteOptions.{field} of type {wanted}"
            ))
        };
        let dry_run = match body.get("dryRun") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => {
                let texts = items.iter().map(|item| match item {
                    Value::String(text) => Ok(text.as_str()),
                    other => Err(typed(kind(other), "dryRun", "string")),
                });
                texts.collect::<Result<_, _>>()?
            }
            Some(other) => return Err(typed(kind(other), "dryRun", "[]string")),
        };
        let grace_period_seconds = match body.get("gracePeriodSeconds") {
            None | Some(Value::Null) => None,
            Some(Value::Number(number)) => {
                let problem = || typed(&format!("number {number}"), "gracePeriodSeconds", "int64");
                Some(number.as_i64().ok_or_else(problem)?)
            }
            Some(other) => return Err(typed(kind(other), "gracePeriodSeconds", "int64")),
        };
        let orphan_dependents = match body.get("orphanDependents") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(value)) => Some(*value),
            Some(other) => return Err(typed(kind(other), "orphanDependents", "bool")),
        };
        let text = |parent: &Value, field: &str, path: &str| match parent.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => {
                let wanted = if field == "propagationPolicy" { "v1.DeletionPropagation" } else { "string" };
                Err(typed(kind(other), path, wanted))
            }
        };
        let policy = text(body, "propagationPolicy", "propagationPolicy")?;
        let mut causes = dry_run_causes(&dry_run);
        let propagation = propagation(policy.as_deref(), orphan_dependents, &mut causes);
        let preconditions = body.get("preconditions").unwrap_or(&Value::Null);
        let uid = text(preconditions, "uid", "preconditions.uid")?;
        let resource_version = text(preconditions, "resourceVersion", "preconditions.resourceVersion")?;
        refuse("DeleteOptions", causes)?;
        let dry_run = !dry_run.is_empty();
        Ok(Self { dry_run, grace_period_seconds, orphan_dependents, propagation, uid, resource_version })
    }
}

fn propagation(policy: Option<&str>, orphan: Option<bool>, causes: &mut Vec<Cause>) -> Option<Propagation> {
    let policy = policy?;
    if orphan.is_some() {
        let message = format!(
            "Invalid value: {}: orphanDependents and deletionPropagation cannot be both set",
            gotext::quote(policy)
        );
        causes.push(Cause { reason: "FieldValueInvalid", message, field: "propagationPolicy".into() });
    }
    match policy {
        "Foreground" => Some(Propagation::Foreground),
        "Background" => Some(Propagation::Background),
        "Orphan" => Some(Propagation::Orphan),
        _ => {
            let supported = r#"supported values: "Foreground", "Background", "Orphan", "nil""#;
            causes.push(not_supported("propagationPolicy", &gotext::quote(policy), supported));
            None
        }
    }
}

impl ListOptions {
    /// Reads the options of a list or watch.
    pub fn parse(query: &Query, watch_path: bool) -> Result<Self, Status> {
        let text = |name| query.get(name).unwrap_or_default().to_owned();
        let timeout_seconds = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or(0);
        let selected = |name| query.get(name).unwrap_or_default();
        let options = Self {
            labels: LabelSelector::parse(selected("labelSelector")).map_err(Status::bad_request)?,
            fields: FieldSelector::parse(selected("fieldSelector")).map_err(Status::bad_request)?,
            watch: watch_path || query.flag("watch"),
            allow_bookmarks: query.flag("allowWatchBookmarks"),
            resource_version: text("resourceVersion"),
            version_match: None,
            timeout_seconds,
            // A negative limit is none.
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: text("continue"),
            send_initial_events: query.optional_flag("sendInitialEvents"),
        };
        let version_match = query.get("resourceVersionMatch").unwrap_or_default();
        let causes =
            if options.watch { options.watch_causes(version_match) } else { options.list_causes(version_match) };
        refuse("ListOptions", causes)?;
        let version_match = match version_match {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        Ok(Self { version_match, ..options })
    }

    fn list_causes(&self, version_match: &str) -> Vec<Cause> {
        let mut causes = Vec::new();
        if !version_match.is_empty() {
            let mut forbid = |why: &str| causes.push(forbidden("resourceVersionMatch", why));
            if self.resource_version.is_empty() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(version_match, "Exact" | "NotOlderThan") {
                let supported = r#"supported values: "Exact", "NotOlderThan", """#;
                causes.push(not_supported("resourceVersionMatch", &gotext::quote(version_match), supported));
            } else if version_match == "Exact" && self.resource_version == "0" {
                let why = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
                causes.push(forbidden("resourceVersionMatch", why));
            }
        }
        if self.send_initial_events.is_some() {
            causes.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        causes
    }

    fn watch_causes(&self, version_match: &str) -> Vec<Cause> {
        let mut causes = Vec::new();
        let field = "resourceVersionMatch";
        if self.send_initial_events.is_some() && version_match != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(forbidden(field, why));
        }
        if self.send_initial_events.is_none() && !version_match.is_empty() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(forbidden(field, why));
        }
        if !version_match.is_empty() && version_match != "NotOlderThan" {
            let supported = r#"supported values: "NotOlderThan""#;
            causes.push(not_supported(field, &gotext::quote(version_match), supported));
        }
        // A watch that begins with what is there is one that asks for any version.
        let from_the_start = self.send_initial_events.is_none() && matches!(self.resource_version.as_str(), "" | "0");
        if !self.continue_token.is_empty() && (!version_match.is_empty() || from_the_start) {
            causes.push(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
        }
        causes
    }
}
