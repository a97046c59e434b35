//! A compiled schema of one version of a custom resource.

mod cache;
mod correlation;
mod defaults;
pub(super) mod embedded;
pub(super) mod formats;
mod lists;
mod merging;
pub(super) mod node;
mod prune;
mod scale;
pub(super) mod values;

use std::sync::Arc;

use orrery_cel::rules::{self, Rules};
use serde_json::Value;

use crate::{
    apply::{TypeRef, Types},
    aside::aside,
    field::{FieldError, FieldErrorKind, Path},
};
use node::Node;
use values::Formats;

pub(super) use prune::prune;

/// What the schema of a version says of its objects.
#[derive(Debug)]
pub(crate) struct Structural {
    node: Node,
    rules: Rules,
    types: Types,
    root: TypeRef,
}

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// It is no JSON.
    #[error("the schema is not JSON")]
    Unreadable(#[from] serde_json::Error),
    /// It would take too much to use it.
    #[error("{0}")]
    Unusable(String),
}

/// Where the scale subresource finds its numbers, for checks of what is there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scale {
    /// `specReplicasPath`.
    pub(crate) spec_replicas: String,
    /// `statusReplicasPath`.
    pub(crate) status_replicas: String,
    /// `labelSelectorPath`.
    pub(crate) label_selector: Option<String>,
}

/// What a schema says of an object.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// What is wrong, in the order it is told.
    pub(crate) errors: Vec<FieldError>,
    /// Rules that fail where nothing was changed; they are only told.
    pub(crate) warnings: Vec<String>,
}

impl Structural {
    /// Compiles `openAPIV3Schema`.
    pub(crate) fn compile(schema: &Value) -> Result<Arc<Self>, Refused> {
        let node = Node::read(schema)?;
        let (types, root) = merging::types(&node);
        Ok(Arc::new(Self { rules: Rules::compile(schema), node, types, root }))
    }

    /// Drops what the schema does not name, and gives the paths of it, such as `spec.foo`, in the order messages have them.
    /// apiVersion, kind and metadata of the object are left alone.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        prune(object, &self.node, true)
    }

    /// Brings the metadata of embedded objects into form, and gives the paths of what is unknown in it. This comes after pruning; an error
    /// means that the object cannot be read.
    pub(crate) fn coerce(&self, object: &mut Value) -> Result<Vec<String>, FieldError> {
        embedded::coerce(object, &self.node, false, &Path::ROOT)
    }

    /// Fills in defaults, and drops nulls where the schema does not allow them.
    pub(crate) fn default(&self, object: &mut Value) {
        defaults::fill(object, &self.node);
    }

    /// Fills in defaults. Nulls stay: what was merged is judged with them.
    pub(crate) fn default_merged(&self, object: &mut Value) {
        defaults::fill_in(object, &self.node);
    }

    /// Judges a whole object, new or changed. `before` is what was found wrong with its metadata, which is told first and can
    /// keep rules from being run.
    pub(crate) fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        scale: Option<&Scale>,
        before: Vec<FieldError>,
    ) -> Verdict {
        let mut errors = before;
        errors.extend(values::validate(new, old, &self.node, "", Formats::Known));
        if let Some(scale) = scale {
            scale::spec(new, scale, &mut errors);
            scale::status(new, scale, &mut errors);
        }
        embedded::validate(new, &self.node, false, &Path::ROOT, &mut errors);
        self.lists_and_rules(new, old, errors)
    }

    /// Judges an object whose status was written.
    pub(crate) fn validate_status(
        &self,
        new: &Value,
        old: &Value,
        scale: Option<&Scale>,
        before: Vec<FieldError>,
    ) -> Verdict {
        let mut errors = before;
        if let (Some(status), Some(node)) = (new.get("status"), self.node.properties.get("status")) {
            // What was not there and is null is not changed.
            let old = old.get("status").unwrap_or(&Value::Null);
            errors.extend(values::validate(status, Some(old), node, "status", Formats::Known));
        }
        if let Some(scale) = scale {
            scale::status(new, scale, &mut errors);
        }
        self.lists_and_rules(new, Some(old), errors)
    }

    fn lists_and_rules(&self, new: &Value, old: Option<&Value>, mut errors: Vec<FieldError>) -> Verdict {
        let repeated = |object: &Value| lists::validate(object, &self.node);
        let found = repeated(new);
        // Who had something twice may keep having it.
        if old.is_none_or(|old| found.is_empty() || repeated(old).is_empty()) {
            errors.extend(found);
        }
        if self.rules.is_empty() {
            return Verdict { errors, warnings: Vec::new() };
        }
        if errors.iter().any(|error| keeps_from_rules(error.kind)) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            let body = format!("Invalid value: null: {detail}");
            errors.push(FieldError { field: "<nil>".to_owned(), kind: FieldErrorKind::Invalid, body });
            return Verdict { errors, warnings: Vec::new() };
        }
        let quick = self.rules.validate_quickly(new, old);
        let verdict = quick.unwrap_or_else(|| aside(|| self.rules.validate(new, old)));
        errors.extend(verdict.failures.iter().map(|failure| told(failure, "")));
        let warnings = verdict.warnings.iter().map(|failure| told(failure, "").to_string()).collect();
        Verdict { errors, warnings }
    }

    /// How objects are merged by server-side apply: the types, and the one of whole objects.
    pub(crate) fn merging(&self) -> (&Types, TypeRef) {
        (&self.types, self.root)
    }
}

/// Whether rules could stumble over what is wrong.
fn keeps_from_rules(kind: FieldErrorKind) -> bool {
    use FieldErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

/// A failed rule as an error of a field. `prefix` is the path of the value the rules were for.
pub(super) fn told(failure: &rules::Failure, prefix: &str) -> FieldError {
    let rules::Failure { field, type_name, message, .. } = failure;
    let field = match (prefix.is_empty(), field.is_empty()) {
        (true, true) => "<nil>".to_owned(),
        (true, false) => field.clone(),
        (false, true) => prefix.to_owned(),
        (false, false) if field.starts_with('[') => format!("{prefix}{field}"),
        (false, false) => format!("{prefix}.{field}"),
    };
    let (kind, body) = match failure.reason {
        rules::Reason::Invalid => (FieldErrorKind::Invalid, format!("Invalid value: \"{type_name}\": {message}")),
        rules::Reason::Forbidden => (FieldErrorKind::Forbidden, format!("Forbidden: {message}")),
        rules::Reason::Required => (FieldErrorKind::Required, format!("Required value: {message}")),
        rules::Reason::Duplicate => (FieldErrorKind::Duplicate, format!("Duplicate value: \"{type_name}\"")),
    };
    FieldError { field, kind, body }
}
