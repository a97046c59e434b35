//! Who owns the fields of an object after a write, for every verb: what `apply` decides, brought to requests.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};

use super::{
    Call, native,
    outcome::{Made, Old},
};
use crate::{
    answer,
    apply::{
        self, Applied, ApplyError, FieldSet, Managers, Replicas, Reset, Typed, Types, Versions, Writing, from_scale,
        is_reset, to_scale,
    },
    custom::Structural,
    definitions::Custom,
    gotext,
    object::{Metadata, without_managers},
    registry::{Registry, Resource},
    request::{FIELD_MANAGER_MAX, WriteOptions, field_manager_cause},
    schema::{self, StructRef},
    status::{Cause, Status},
    versions,
};

/// Somebody who writes to objects of a resource.
#[derive(Clone)]
pub(crate) struct Owner<'a> {
    pub(crate) registry: &'a Registry,
    /// The resource in the version of the request.
    pub(crate) resource: &'a Arc<Resource>,
    /// The part that is written; empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) name: String,
    pub(crate) now: String,
}

impl<'a> Owner<'a> {
    /// Whoever sends a request.
    pub(crate) fn of(call: &'a Call, options: &WriteOptions) -> Self {
        let name = match options.field_manager.as_str() {
            "" => user_agent(&call.user_agent),
            name => name.to_owned(),
        };
        let subresource = call.path.subresource.as_deref().unwrap_or_default();
        Self { registry: &call.shared.registry, resource: &call.resource, subresource, name, now: call.shared.now() }
    }

    /// Notes in a new object, as it came in the version it is stored in, that everything in it is its maker's.
    pub(crate) fn create(&self, object: &mut Value) -> Result<(), Vec<Cause>> {
        let managers = self.of_new(object)?;
        set(object, managers);
        Ok(())
    }

    /// Those who own a new object: everything in it is its maker's. The object loses those it names, and what is empty.
    pub(crate) fn of_new(&self, object: &mut Value) -> Result<Managers, Vec<Cause>> {
        let given = Metadata::of(object).take("managedFields");
        let managers = self.given(given.as_ref(), None)?;
        let shown = self.shown(object);
        if !self.fits(&shown) {
            return Ok(Managers::default());
        }
        let managers = self.writing(false, |writing, kind| writing.update(&kind.empty(), &shown, managers, &self.name));
        self.drop_empty(object);
        Ok(managers)
    }

    /// Notes in a changed object, as it came in the version it is stored in, who owns what.
    pub(crate) fn update(&self, old: &Value, object: &mut Value) -> Result<(), Vec<Cause>> {
        let given = Metadata::of(object).take("managedFields");
        let mut managers = self.given(given.as_ref(), Some(old))?;
        // Nobody is tracked in an object whose managers were cleared, until somebody applies.
        if !managers.is_empty() {
            let kind = Kind(self);
            let (before, after) = (kind.shown(old), self.shown(object));
            if !self.fits(&before) || !self.fits(&after) {
                return Ok(());
            }
            managers = self.writing(false, |writing, _| writing.update(&before, &after, managers, &self.name));
        }
        set(object, managers);
        self.drop_empty(object);
        Ok(())
    }

    /// Once it is known who owns what is empty, it can be dropped.
    fn drop_empty(&self, object: &mut Value) {
        let native = native(self.registry, self.resource);
        if native.custom.is_none() {
            schema::sparse(&native.schemas, native.schema, object);
        }
    }

    /// Applies a configuration to an object as it is stored, or to none. The result is complete, in the version of the
    /// request; its managers are kept apart but for a custom resource. Also says whether more has changed than they.
    pub(crate) fn apply(&self, old: Option<Old<'_>>, config: &Value, force: bool) -> Result<(Made, bool), Status> {
        let kind = Kind(self);
        let live = old.map_or_else(|| Cow::Owned(kind.empty()), |old| kind.shown(old.object));
        let managers = match old.and_then(|old| old.managers) {
            Some(text) => Managers::parse(text),
            None => Managers::read(live.pointer("/metadata/managedFields")),
        };
        let managers = managers.ok_or_else(|| Status::internal("failed to decode managed fields"))?;
        let applied = self.writing(true, |writing, _| writing.apply(&live, config, managers, &self.name, force));
        let Applied { mut object, changed, managers } = applied.map_err(|error| refused(&error, &live, config))?;
        if self.resource.custom.is_some() {
            set(&mut object, managers);
            return Ok((object.into(), changed));
        }
        Ok((Made { object, managers: Some(managers.text()) }, changed))
    }

    /// The managers to begin with: those the writer has sent, if they are any, or else those that were there.
    fn given(&self, list: Option<&Value>, old: Option<&Value>) -> Result<Managers, Vec<Cause>> {
        let known = || Managers::read(old.and_then(|old| old.pointer("/metadata/managedFields"))).unwrap_or_default();
        if !self.subresource.is_empty() {
            return Ok(known());
        }
        // Of the metadata of a custom resource what is empty is not read at all.
        let unread = self.resource.custom.is_some() && list.is_some_and(|list| *list == json!([]));
        if is_reset(list) && !unread {
            return Ok(Managers::default());
        }
        match Managers::read(list).filter(|managers| !managers.is_empty()) {
            None => Ok(known()),
            Some(managers) => check(&managers).map(|()| managers),
        }
    }

    /// Whether an object is what the types of its kind say. Of a custom resource that is not, nobody is known to own anything.
    fn fits(&self, object: &Value) -> bool {
        if self.resource.custom.is_none() {
            return true;
        }
        apply::check(typed(self.resource), &without_managers(object), true).is_ok()
    }

    /// An object as it is sent in, complete and in the version of the request.
    fn shown(&self, object: &Value) -> Value {
        let native = native(self.registry, self.resource);
        let mut object = object.clone();
        if !Arc::ptr_eq(native, self.resource) {
            versions::convert(native, self.resource, &mut object);
        }
        answer::complete(self.resource, &mut object);
        object
    }

    fn writing<T>(&self, applies: bool, act: impl FnOnce(&Writing<'_>, &Kind<'_>) -> T) -> T {
        let kind = Kind(self);
        let writing = Writing {
            typed: typed(self.resource),
            api_version: &self.resource.api_version(),
            subresource: self.subresource,
            reset: &reset(self.resource, self.subresource, applies),
            versions: &kind,
            now: &self.now,
        };
        act(&writing, &kind)
    }
}

/// Why the real server cannot turn a merged scale of a custom resource into an object.
pub(crate) const NO_CUSTOM_SCALE: &str = "request to convert CR to an invalid group/version: autoscaling/v1";

/// Who owns the number of replicas after a scale was written. `scale` is the new scale; its old one and its type are known.
pub(crate) struct ScaleOwner<'a> {
    pub(crate) owner: &'a Owner<'a>,
    pub(crate) schema: StructRef,
    pub(crate) api_version: &'a str,
}

impl ScaleOwner<'_> {
    /// The managers of the object after an update of its scale.
    pub(crate) fn update(&self, object: &Value, old: &Value, new: &Value) -> Value {
        self.change(object, |writing, managers| {
            if managers.is_empty() { managers } else { writing.update(old, new, managers, &self.owner.name) }
        })
    }

    /// The scale after an apply, if it has changed, and the managers of the object.
    pub(crate) fn apply(
        &self,
        object: &Value,
        old: &Value,
        config: &Value,
        force: bool,
    ) -> Result<(Option<Value>, Value), Status> {
        let mut outcome = Ok(None);
        let managers = self.change(object, |writing, managers| {
            if managers.is_empty() && self.owner.resource.custom.is_some() {
                // The real server takes the scale of a custom resource for one, and there is no such version of it.
                outcome = Err(Status::internal(format!(
                    "failed to create manager for existing fields: failed to convert live object (/; {}, Kind=Scale) to proper version: {NO_CUSTOM_SCALE}",
                    self.api_version
                )));
                return managers;
            }
            match writing.apply(old, config, managers.clone(), &self.owner.name, force) {
                Ok(applied) => {
                    outcome = Ok(applied.changed.then_some(applied.object));
                    applied.managers
                }
                Err(error) => {
                    outcome = Err(refused(&error, old, config));
                    managers
                }
            }
        });
        outcome.map(|scale| (scale, managers))
    }

    fn change(&self, object: &Value, change: impl FnOnce(&Writing<'_>, Managers) -> Managers) -> Value {
        let version = self.owner.resource.api_version();
        let replicas = match &self.owner.resource.custom {
            Some(custom) => {
                let family = &custom.family;
                let versions = family.versions.iter().enumerate();
                Replicas::of(versions.map(|(at, version)| (family.api_version(at), version.replicas.as_deref())))
            }
            None => Replicas::usual(&version),
        };
        let known = Managers::read(object.pointer("/metadata/managedFields")).unwrap_or_default();
        let types = self.owner.resource.schemas.merging();
        let writing = Writing {
            typed: Typed { types, ty: Types::structure(self.schema) },
            api_version: self.api_version,
            subresource: "scale",
            reset: &Reset::none(),
            versions: &OneVersion,
            now: &self.owner.now,
        };
        let scale = change(&writing, to_scale(&known, &replicas));
        from_scale(&known, &scale, &replicas, &version).write().unwrap_or_default()
    }
}

/// A kind without other versions.
struct OneVersion;

impl Versions for OneVersion {
    fn typed(&self, _: &str) -> Option<Typed<'_>> {
        None
    }

    fn convert(&self, object: &Value, _: &str, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }

    fn empty(&self) -> Value {
        json!({"metadata": {}, "spec": {}, "status": {"replicas": 0}})
    }
}

/// The versions of the kind somebody writes to.
struct Kind<'a>(&'a Owner<'a>);

impl Kind<'_> {
    fn resource(&self, api_version: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let own = self.0.resource;
        self.0.registry.kind(group, version, &own.kind).filter(|found| super::stored_as(found) == super::stored_as(own))
    }

    /// A stored object in the version of the request.
    fn shown<'b>(&self, object: &'b Value) -> Cow<'b, Value> {
        let native = native(self.0.registry, self.0.resource);
        if Arc::ptr_eq(native, self.0.resource) {
            return Cow::Borrowed(object);
        }
        let managers = object.pointer("/metadata/managedFields").cloned();
        let mut shown = self.convert_built_in(object, &native.api_version(), &self.0.resource.api_version());
        if let Some(managers) = managers {
            Metadata::of(&mut shown).set("managedFields", managers);
        }
        Cow::Owned(shown)
    }
}

impl Kind<'_> {
    fn custom_version(&self, custom: &Custom, api_version: &str) -> Option<usize> {
        let (group, version) = api_version.split_once('/')?;
        custom.family.find(version).filter(|_| group == custom.family.group)
    }

    fn convert_built_in(&self, object: &Value, from: &str, to: &str) -> Value {
        let mut object = object.clone();
        if let (Some(from), Some(to)) = (self.resource(from), self.resource(to))
            && !Arc::ptr_eq(from, to)
        {
            schema::sparse(&from.schemas, from.schema, &mut object);
            versions::convert(from, to, &mut object);
            answer::complete(to, &mut object);
        }
        object
    }
}

impl Versions for Kind<'_> {
    /// What is the same kind under the name of another group does not count.
    fn typed(&self, api_version: &str) -> Option<Typed<'_>> {
        if let Some(custom) = &self.0.resource.custom {
            let version = &custom.family.versions[self.custom_version(custom, api_version)?];
            return Some(typed_by(&version.schema));
        }
        let same_group = |resource: &&Arc<Resource>| resource.group == self.0.resource.group;
        self.resource(api_version).filter(same_group).map(|resource| typed(resource))
    }

    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, String> {
        let Some(custom) = &self.0.resource.custom else { return Ok(self.convert_built_in(object, from, to)) };
        match self.custom_version(custom, from).zip(self.custom_version(custom, to)) {
            Some((from, to)) => {
                custom.family.turn(object.clone(), from, to).map_err(|status| status.message().to_owned())
            }
            None => Ok(object.clone()),
        }
    }

    /// Each version of a custom resource knows of itself alone what is left alone.
    fn reset_everywhere(&self) -> bool {
        self.0.resource.custom.is_none()
    }

    /// Of a custom resource all versions must be known in which somebody has written.
    fn refusal(&self, api_version: &str) -> Option<String> {
        let custom = self.0.resource.custom.is_some();
        custom.then(|| format!("request to convert CR to an invalid group/version: {api_version}"))
    }

    fn empty(&self) -> Value {
        let mut empty = json!({"metadata": {}});
        answer::complete(self.0.resource, &mut empty);
        empty
    }
}

fn typed_by(schema: &Structural) -> Typed<'_> {
    let (types, ty) = schema.merging();
    Typed { types, ty }
}

fn typed(resource: &Resource) -> Typed<'_> {
    if let Some(custom) = &resource.custom {
        return typed_by(custom.schema());
    }
    Typed { types: resource.schemas.merging(), ty: Types::structure(resource.schema) }
}

fn set(object: &mut Value, managers: Managers) {
    let mut metadata = Metadata::of(object);
    match managers.write() {
        Some(list) => metadata.set("managedFields", list),
        None => metadata.remove("managedFields"),
    }
}

/// What is wrong with the managers somebody has sent.
fn check(managers: &Managers) -> Result<(), Vec<Cause>> {
    let list = managers.clone().write().unwrap_or_default();
    let names = list.as_array().into_iter().flatten().map(|entry| entry["manager"].as_str().unwrap_or_default());
    let causes = names
        .enumerate()
        .filter_map(|(at, name)| field_manager_cause(name, &format!("metadata.managedFields[{at}].manager")));
    let causes: Vec<Cause> = causes.collect();
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

/// Why an apply is refused.
fn refused(error: &ApplyError, live: &Value, config: &Value) -> Status {
    match error {
        ApplyError::Misfit(problem) => {
            Status::internal(format!("failed to create typed patch object ({}): {problem}", described(config)))
        }
        ApplyError::LiveMisfit(problem) => {
            Status::internal(format!("failed to create typed live object ({}): {problem}", described(live)))
        }
        ApplyError::UnownedMisfit(problem) => Status::internal(format!(
            "failed to create manager for existing fields: failed to convert new object ({}) to smd typed: {problem}",
            described(live)
        )),
        ApplyError::Lost(problem) => Status::internal(problem.clone()),
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.each().into_iter().map(|conflict| Cause {
                reason: "FieldManagerConflict",
                message: conflict.message,
                field: conflict.field,
            });
            Status::apply_conflict(conflicts.message(), causes.collect())
        }
    }
}

/// A configuration as messages name it: `namespace/name; group/version, Kind=kind`.
pub(crate) fn described(config: &Value) -> String {
    let text = |field: &str| crate::object::text(config, field).to_owned();
    format!("{}/{}; {}", text("namespace"), text("name"), gvk(config))
}

/// What a configuration says it is, as Go prints it.
pub(crate) fn gvk(config: &Value) -> String {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    if version.matches('/').count() > 1 {
        return "/, Kind=".to_owned();
    }
    let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
    format!("{version}, Kind={}", text("kind"))
}

/// The name of a client that does not give one: what its user agent begins with, as far as it can be a name.
fn user_agent(agent: &str) -> String {
    let mut name = String::new();
    for character in agent.split('/').next().unwrap_or_default().chars().filter(|it| gotext::is_print(*it)) {
        if name.len() + character.len_utf8() > FIELD_MANAGER_MAX {
            break;
        }
        name.push(character);
    }
    name
}

/// What a write to an object, or to a part of it, does not change whatever it says.
fn reset(resource: &Resource, subresource: &str, applies: bool) -> Reset {
    let kind = if resource.custom.is_some() { "" } else { resource.kind.as_str() };
    let fields: &[&[&str]] = match (subresource, kind) {
        // The real server looks for this kind under a wrong name, and so resets nothing.
        (_, "ServiceCIDR") => &[],
        ("", "CertificateSigningRequest") => &[&["spec"], &["status"]],
        ("status", "CertificateSigningRequest") => &[&["spec"], &["status", "conditions"]],
        ("approval", _) => &[&["spec"], &["status", "certificate"]],
        ("", _) if resource.subresource("status").is_some() => &[&["status"]],
        ("finalize", _) => &[&["status"]],
        (
            "status",
            "APIService"
            | "CustomResourceDefinition"
            | "FlowSchema"
            | "PriorityLevelConfiguration"
            | "ValidatingAdmissionPolicy"
            | "VolumeAttachment",
        ) => &[&["spec"], &["metadata"]],
        ("status", "Deployment") => &[&["spec"], &["metadata", "labels"]],
        ("status", "Pod") => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        ("status", _) => &[&["spec"]],
        // The real server lets only those who apply own no more than these parts are about.
        ("ephemeralcontainers", _) if applies => return Reset::AllBut(&[&["spec", "ephemeralContainers"]]),
        ("resize", _) if applies => {
            return Reset::AllBut(&[
                &["spec", "containers", "*", "resources"],
                &["spec", "containers", "*", "resizePolicy"],
                &["spec", "initContainers", "*", "resources"],
                &["spec", "initContainers", "*", "resizePolicy"],
            ]);
        }
        _ => &[],
    };
    Reset::Fields(FieldSet::of(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_without_a_name_are_called_by_their_user_agent() {
        for (agent, name) in [
            ("kubectl/v1.34 (linux)", "kubectl"),
            ("Some-Agent (x) y", "Some-Agent (x) y"),
            ("/x", ""),
            ("a\tb\u{200b}c/1", "abc"),
            ("é".repeat(100).as_str(), "é".repeat(64).as_str()),
        ] {
            assert_eq!(user_agent(agent), name);
        }
    }
}
