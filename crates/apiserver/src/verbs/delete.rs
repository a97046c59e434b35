//! Deleting objects: at once, after a grace period, or when the last finalizer is gone.

use http::Response;
use orrery_store::{Batch, CommitError, Expect};
use serde_json::{Value, json};

use super::{
    Call, Writer,
    create::outgoing,
    decode::ACCEPTED,
    kind, named, stored,
    write::{ATTEMPTS, busy, set_revision, written_at},
};
use crate::{
    answer,
    body::Body,
    definitions::{self, settled},
    json::parse,
    object::{self, FOREGROUND, Metadata, ORPHAN},
    protobuf::{self, Envelope},
    registry::{DeleteAnswer, Registry, Resource},
    request::{DeleteOptions, PROTOBUF, Propagation, media_type},
    status::Status,
    yaml,
};

/// Deletes the object the path names.
pub(crate) async fn delete(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = options(call, body)?;
    let writer = Writer::unowned(call, options.dry_run)?;
    protect(call, call.name())?;
    warnings.extend(orphaning(call, &options));
    let deletion = writer.delete(call.name(), &options).await?;
    match deletion {
        Deletion::Done { object, uid } => {
            if call.resource.behaviour.delete_answer == DeleteAnswer::Object {
                return call.value_answer(200, &outgoing(call, object));
            }
            let mut details = json!({"name": call.name(), "kind": call.resource.plural, "uid": uid});
            if !call.resource.group.is_empty() {
                details["group"] = call.resource.group.clone().into();
            }
            let status =
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            Ok(answer::bytes(200, serde_json::to_vec(&status).unwrap_or_default(), call.accepted.encoding))
        }
        Deletion::Begun(object) => call.value_answer(200, &outgoing(call, object)),
    }
}

/// The warning of a deletion that leaves pods behind although nobody asked for that.
pub(crate) fn orphaning(call: &Call, options: &DeleteOptions) -> Option<String> {
    let unasked = options.propagation.is_none() && options.orphan_dependents.is_none();
    (call.resource.plural == "jobs" && unasked).then(|| "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning".to_owned())
}

/// The options of a deletion: those of the body, or those of the query if there is none.
pub(crate) fn options(call: &Call, body: &[u8]) -> Result<DeleteOptions, Status> {
    if body.is_empty() {
        return DeleteOptions::from_query(&call.query);
    }
    let version_kind =
        |problem: String| Status::internal(format!("couldn't get version/kind; json parse error: {problem}"));
    let named =
        if call.content_type.is_empty() { Some("application/json".into()) } else { media_type(&call.content_type) };
    let value = match named.as_deref() {
        Some(PROTOBUF) => from_protobuf(body)?,
        Some("application/yaml") => {
            let read = yaml::to_json(body).map_err(Status::internal)?;
            parse(&read.json).map_err(version_kind)?
        }
        Some("application/json") => parse(body).map_err(version_kind)?,
        _ => return Err(Status::unsupported_body(ACCEPTED)),
    };
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" && !kind.is_empty() {
        let version = value.get("apiVersion").and_then(Value::as_str).filter(|version| !version.is_empty());
        let version = version.unwrap_or("meta.k8s.io/v1");
        let (kind, version) = (crate::gotext::quote(kind), crate::gotext::quote(version));
        let message =
            format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:110\"");
        return Err(Status::internal(message));
    }
    DeleteOptions::from_body(&value)
}

/// The options of a deletion in protobuf, as values.
fn from_protobuf(body: &[u8]) -> Result<Value, Status> {
    let envelope = Envelope::open(body).map_err(|error| Status::internal(error.to_string()))?;
    let registry = Registry::kubernetes();
    let schema = protobuf::delete_options().ok_or_else(Status::no_such_resource)?;
    let read = protobuf::decode(registry.schemas(), schema, envelope.raw);
    let mut value = read.map_err(|damage| Status::internal(damage.to_string()))?;
    value["kind"] = envelope.kind.into();
    value["apiVersion"] = envelope.api_version.into();
    Ok(value)
}

/// The namespaces without which a cluster is none.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];
/// The priorities of what a cluster cannot do without.
const SYSTEM_PRIORITIES: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

/// Refuses to delete what a cluster cannot do without.
pub(super) fn protect(call: &Call, name: &str) -> Result<(), Status> {
    let why = match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        ("", "namespaces") if PROTECTED.contains(&name) => "this namespace may not be deleted",
        ("scheduling.k8s.io", "priorityclasses") if SYSTEM_PRIORITIES.contains(&name) => {
            "this is a system priority class and cannot be deleted"
        }
        _ => return Ok(()),
    };
    Err(Status::forbidden(call.named(), name, why))
}

/// The last moment that can be written: whoever is given longer goes then.
const LAST_MOMENT: jiff::Timestamp = jiff::Timestamp::constant(253_402_207_200, 0);

/// What became of a deletion.
pub(crate) enum Deletion {
    /// The object is gone.
    Done {
        /// What it was last.
        object: Value,
        /// Its uid.
        uid: String,
    },
    /// The object is marked and goes when nothing holds it any more.
    Begun(Value),
}

/// In which form an object is read to be deleted, and written if something still holds it.
#[derive(Clone, Copy)]
enum Form {
    /// As the resource shows it.
    Shown,
    /// As it is stored.
    Stored,
}

impl Writer<'_> {
    /// Deletes an object, or marks it if something still holds it.
    pub(crate) async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deletion, Status> {
        self.delete_in(Form::Shown, name, options).await
    }

    /// The same for controllers, which do not care what is in the object: it stays in the version it is stored in, so that
    /// nobody is asked to convert it.
    pub(crate) async fn delete_as_stored(&self, name: &str, options: &DeleteOptions) -> Result<Deletion, Status> {
        self.delete_in(Form::Stored, name, options).await
    }

    async fn delete_in(&self, form: Form, name: &str, options: &DeleteOptions) -> Result<Deletion, Status> {
        let key = self.key(name)?;
        // Once it has been marked, it is no longer the version that was meant.
        let mut meant = options.clone();
        for _ in 0..ATTEMPTS {
            let existing = self.shared.store.get(&key).ok_or_else(|| Status::not_found(named(self.shown), name))?;
            let old = match form {
                Form::Shown => settled(self.shared, self.space, || self.read(&existing)).await?,
                Form::Stored => self.as_stored(&existing)?,
            };
            check_preconditions(self.resource, &old, &meant)?;
            let uid = object::text(&old, "uid").to_owned();
            let mut new = old.clone();
            let removable = self.mark(&mut new, options);
            let changed = new != old;
            let expect = Expect::At(existing.modified());
            if self.dry_run || (!removable && !changed) {
                return Ok(if removable { Deletion::Done { object: new, uid } } else { Deletion::Begun(new) });
            }
            // Whoever watches pods is told that one is going before it is gone.
            let removed = removable && !(self.is_pod() && changed);
            let batch = if removed {
                self.allocation().hold(Batch::new().delete(key.clone(), expect), None, Some(&old))?
            } else {
                let content = match form {
                    Form::Shown => {
                        let content;
                        (new, content) = settled(self.shared, self.space, || self.content(new.clone())).await?;
                        content
                    }
                    Form::Stored => object::encode_again(&new, &stored(&existing)?),
                };
                Batch::new().put(key.clone(), expect, content)
            };
            match self.shared.store.commit(batch).await {
                Ok(_) if removed => return Ok(Deletion::Done { object: new, uid }),
                Ok(_) if removable => {
                    meant.resource_version = None;
                    continue;
                }
                Ok(committed) => {
                    set_revision(&mut new, written_at(&committed));
                    return Ok(Deletion::Begun(new));
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            if meant.resource_version.is_some() {
                break;
            }
        }
        Err(busy())
    }

    /// Marks an object for deletion, and says whether it can go at once.
    fn mark(&self, object: &mut Value, options: &DeleteOptions) -> bool {
        let deleting = object::is_deleting(object);
        let held_before = object::finalizers(object).next().is_some();
        if is_namespace(self.resource) && deleting && !nothing_fills(object) {
            return false;
        }
        set_propagation(self.resource, object, options);
        if is_namespace(self.resource) {
            return self.mark_namespace(object);
        }
        if definitions::is_definition(self.resource) {
            definitions::mark_deleted(object, &self.shared.now());
            return nothing_holds(self.resource, object);
        }
        let grace = if self.is_pod() { pod_grace(object, options) } else { 0 };
        let waits = object::finalizers(object).next().is_some() || grace > 0;
        if !waits && !self.is_pod() && !held_before {
            return true;
        }
        let shorter = object
            .pointer("/metadata/deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_none_or(|old| grace < old);
        if !deleting || (shorter && self.is_pod()) {
            let at = (self.shared.config.clock)().as_second().saturating_add(grace);
            let mut metadata = Metadata::of(object);
            if !deleting {
                metadata.count_generation();
            }
            metadata.set("deletionTimestamp", jiff::Timestamp::from_second(at).unwrap_or(LAST_MOMENT).to_string());
            metadata.set("deletionGracePeriodSeconds", grace);
        }
        !waits
    }

    fn is_pod(&self) -> bool {
        self.resource.group.is_empty() && self.resource.plural == "pods"
    }

    /// A namespace goes when what is in it is gone.
    fn mark_namespace(&self, object: &mut Value) -> bool {
        if !object::is_deleting(object) {
            Metadata::of(object).set("deletionTimestamp", self.shared.now());
            object["status"]["phase"] = "Terminating".into();
        }
        nothing_holds(self.resource, object)
    }
}

/// Refuses to delete another object, or another version of it, than was meant.
pub(crate) fn check_preconditions(shown: &Resource, old: &Value, options: &DeleteOptions) -> Result<(), Status> {
    let (name, uid, version) = (object::name(old), object::text(old, "uid"), object::text(old, "resourceVersion"));
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        if is_checked_early(shown) {
            let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
            return Err(Status::conflict(named(shown), name, &why));
        }
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(kind(shown), name, &why));
    }
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        if is_checked_early(shown) {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: {version}"
            );
            return Err(Status::conflict(named(shown), name, &why));
        }
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(Status::conflict(kind(shown), name, &why));
    }
    Ok(())
}

/// Whether nothing keeps an object that is being deleted.
pub(crate) fn nothing_holds(resource: &Resource, object: &Value) -> bool {
    let held = object::finalizers(object).next().is_some();
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    let filled = is_namespace(resource) && !nothing_fills(object);
    !held && !filled && (grace == 0 || resource.kind != "Pod" || resource.custom.is_some())
}

/// Whether nobody has to empty a namespace before it goes.
fn nothing_fills(namespace: &Value) -> bool {
    namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// Whether a deletion of the kind is only begun, so that its conditions are those of an update.
fn is_checked_early(resource: &Resource) -> bool {
    is_namespace(resource) || definitions::is_definition(resource)
}

fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.kind == "Namespace"
}

/// How long a pod may take to go: nothing runs anywhere unless it was bound to a node.
fn pod_grace(pod: &Value, options: &DeleteOptions) -> i64 {
    let bound = pod.pointer("/spec/nodeName").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    if !bound || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    // A negative grace period is the shortest there is.
    match options.grace_period_seconds.unwrap_or(own) {
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// Notes as finalizers what is to become of the objects that this one owns.
fn set_propagation(resource: &Resource, object: &mut Value, options: &DeleteOptions) {
    let present = |name: &str, object: &Value| object::finalizers(object).any(|other| other == name);
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
        _ if resource.behaviour.owns_nothing => (false, false),
        (Some(orphan), _) => (orphan, false),
        (None, Some(policy)) => (policy == Propagation::Orphan, policy == Propagation::Foreground),
        (None, None) => {
            let orphan =
                present(ORPHAN, object) || (resource.behaviour.orphans_by_default && !present(FOREGROUND, object));
            (orphan, present(FOREGROUND, object))
        }
    };
    if present(ORPHAN, object) == orphan && present(FOREGROUND, object) == foreground {
        return;
    }
    let kept = object::finalizers(object).filter(|name| !matches!(*name, ORPHAN | FOREGROUND));
    let mut finalizers: Vec<String> = kept.map(str::to_owned).collect();
    if orphan {
        finalizers.push(ORPHAN.to_owned());
    }
    if foreground {
        finalizers.push(FOREGROUND.to_owned());
    }
    let mut metadata = Metadata::of(object);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.set("finalizers", finalizers);
    }
}
