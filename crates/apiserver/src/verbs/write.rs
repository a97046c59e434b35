//! What create, update, patch and delete have in common: an object becomes another, or none, in one step.

use std::sync::Arc;

use orrery_store::{Batch, CommitError, Committed, Content, Expect, Key, Object, Revision};
use serde_json::Value;

use super::{
    admission::Place,
    allocation::Allocation,
    get::revision,
    kind, named, native,
    outcome::{Change, Made, Old, Outcome},
    ownership::Owner,
    stored,
};
use crate::{
    answer,
    apply::Managers,
    custom::numbers,
    definitions::{Custom, settled},
    field::FieldError,
    kinds,
    object::{self, Metadata, SPACE_ANNOTATION, Written},
    registry::{Resource, Subresource},
    request::{ROOT, WriteOptions},
    schema,
    server::Shared,
    spaces,
    status::{Cause, Status},
};

/// Where and how something is written.
pub(crate) struct Writer<'a> {
    pub(crate) shared: &'a Shared,
    /// The resource as it is stored.
    pub(crate) resource: &'a Arc<Resource>,
    /// The resource as messages name it.
    pub(crate) shown: &'a Resource,
    pub(crate) subresource: Option<&'a Subresource>,
    pub(crate) space: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) dry_run: bool,
    /// Whether the change is a patch: a uid in it is not a condition but a change like any other.
    pub(crate) patching: bool,
    /// Who will own what is written; none if the object itself says it already.
    pub(crate) owner: Option<Owner<'a>>,
}

/// A change that was decided on.
pub(super) struct Decided {
    pub(super) old: Value,
    /// The new object, complete.
    pub(super) new: Made,
    /// What is stored for it, if that is known.
    pub(super) content: Option<Content>,
    /// Whether nothing changes.
    pub(super) same: bool,
}

/// The mark of what was not written by a schema as it stands.
const UNMARKED: u64 = 0;

/// How often a write is tried again when somebody else was faster.
pub(super) const ATTEMPTS: usize = 16;

impl<'a> Writer<'a> {
    pub(crate) fn new(call: &'a super::Call, options: &WriteOptions) -> Result<Self, Status> {
        Ok(Self { owner: Some(Owner::of(call, options)), ..Self::unowned(call, options.dry_run)? })
    }

    /// For writes that leave all fields to those who own them.
    pub(crate) fn unowned(call: &'a super::Call, dry_run: bool) -> Result<Self, Status> {
        Ok(Self {
            shared: &call.shared,
            resource: native(&call.shared.registry, &call.resource),
            shown: &call.resource,
            subresource: call.subresource(),
            space: call.one_space()?,
            namespace: call.namespace(),
            dry_run,
            patching: false,
            owner: None,
        })
    }

    /// The same, to write a part of the object.
    pub(crate) fn for_part(self, part: Option<&'a Subresource>) -> Self {
        let subresource = part.map_or("", |part| part.name.as_str());
        Self { subresource: part, owner: self.owner.map(|owner| Owner { subresource, ..owner }), ..self }
    }

    pub(crate) fn key(&self, name: &str) -> Result<Key, Status> {
        let (group, resource) = super::stored_as(self.resource)?;
        Key::new(group, resource, self.space, self.namespace, name)
            .map_err(|_| Status::not_found(named(self.shown), name))
    }

    /// Stores a new object, given in its sparse form.
    pub(crate) async fn create(&self, made: impl Into<Made>, warnings: &mut Vec<String>) -> Result<Outcome, Status> {
        let Made { mut object, mut managers } = made.into();
        let version = object::text(&object, "resourceVersion");
        if version.parse::<u64>().is_ok_and(|number| number > 0) && !self.dry_run {
            return Err(Status::internal("resourceVersion should not be set on objects to be created"));
        }
        let now = self.shared.now();
        let mut metadata = Metadata::of(&mut object);
        // What is only tried out is answered with the version it came with.
        if metadata.text("resourceVersion") != "0" && !self.dry_run {
            metadata.remove("resourceVersion");
        }
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            metadata.remove(field);
        }
        metadata.remove_annotation(SPACE_ANNOTATION);
        if self.resource.namespaced {
            metadata.set("namespace", self.namespace);
        } else {
            metadata.remove("namespace");
        }
        let own_name = metadata.text("name").to_owned();
        let refuse = |causes| Status::invalid(kind(self.shown), &own_name, causes);
        match &self.owner {
            Some(owner) if self.resource.custom.is_some() => {
                object = settled(self.shared, self.space, || {
                    let mut object = object.clone();
                    owner.create(&mut object).map_err(refuse).map(|()| object)
                })
                .await?;
            }
            Some(owner) => managers = Some(owner.of_new(&mut object).map_err(refuse)?.text()),
            None => {}
        }
        self.place().fill(&mut object)?;
        let mut metadata = Metadata::of(&mut object);
        metadata.set("uid", crate::random::uid()?);
        metadata.set("creationTimestamp", now);
        let generated = metadata.text("name").is_empty() && !metadata.text("generateName").is_empty();
        // Limits need no name.
        if metadata.text("name").is_empty() && !generated && self.resource.kind == "LimitRange" {
            metadata.set("name", crate::random::uid()?);
        }
        if !generated {
            return self.create_named(Made { object, managers }, warnings).await;
        }
        for attempt in 0.. {
            let mut metadata = Metadata::of(&mut object);
            // What is an address cannot go on with random letters.
            let name = match self.resource.kind.as_str() {
                "IPAddress" => metadata.text("generateName").to_owned(),
                _ => crate::random::name(metadata.text("generateName"))?,
            };
            metadata.set("name", name);
            let made = Made { object: object.clone(), managers: managers.clone() };
            match self.create_named(made, warnings).await {
                Err(status) if status.reason() == "AlreadyExists" && attempt < NAME_ATTEMPTS => {}
                result => return result,
            }
        }
        Err(Status::internal("no name was free"))
    }

    async fn create_named(&self, made: Made, warnings: &mut Vec<String>) -> Result<Outcome, Status> {
        let Made { mut object, managers } = made;
        let asked = self.allocation().asked(&object);
        kinds::prepare_create(self.resource, &mut object);
        let name = object::name(&object).to_owned();
        self.refuse(&name, kinds::validate_addresses(self.resource, &object, None, self.dry_run))?;
        match &self.resource.custom {
            Some(custom) => {
                kinds::check_type(self.resource, &object)?;
                let verdict = kinds::judge_custom(self.resource, custom, None, &object, None);
                self.refuse(&name, verdict.errors)?;
                warnings.extend(verdict.warnings);
            }
            None => {
                let mut errors = self.place().unadministered(&object);
                errors.extend(kinds::validate_create(self.resource, self.shown, &object));
                self.refuse(&name, errors)?;
            }
        }
        self.place().judge(&object, None)?;
        warnings.extend(kinds::warnings(self.resource, &object, None));
        if spaces::is_space(self.resource) {
            spaces::hold(&mut object);
        }
        answer::complete(self.resource, &mut object);
        let key = self.key(&name)?;
        for _ in 0..ATTEMPTS {
            if let Some(existing) = self.shared.store.get(&key) {
                return Err(self.exists(&existing, &name));
            }
            // What a custom resource is shows when it is stored.
            let custom = match &self.resource.custom {
                Some(_) => {
                    let content;
                    (object, content) = settled(self.shared, self.space, || self.content(object.clone())).await?;
                    Some(content)
                }
                None => None,
            };
            if self.dry_run {
                self.allocation().try_out(&asked, &mut object, None);
                return Ok(Outcome::Value(Made { object, managers }.whole()));
            }
            self.allocation().settle(&asked, &mut object, None)?;
            let content = custom.unwrap_or_else(|| object::encode_owned(&object, managers.as_deref()));
            let mut batch = Batch::new().put(key.clone(), Expect::Absent, content);
            batch = self.allocation().hold(batch, Some(&object), None)?;
            if let Some((key, revision)) = self.surroundings(&name)? {
                batch = batch.check(key, Expect::At(revision));
            }
            match self.shared.store.commit(batch).await {
                Ok(committed) => return Ok(self.outcome(&key, Made { object, managers }, written_at(&committed))),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy())
    }

    fn exists(&self, existing: &Object, name: &str) -> Status {
        let deleting = stored(existing).is_ok_and(|stored| object::is_deleting(&stored.parse("", "")));
        let status = Status::already_exists(named(self.shown), name);
        if deleting { status.prefixed("object is being deleted: ") } else { status }
    }

    /// What must stay as it is until an object is in it: its namespace, or its space. Nothing new may come into one that is
    /// going away.
    fn surroundings(&self, name: &str) -> Result<Option<(Key, Revision)>, Status> {
        if self.resource.namespaced {
            let namespace = self.shared.namespace(self.space, self.namespace);
            let namespace = namespace.ok_or_else(|| Status::not_found(NAMESPACES, self.namespace))?;
            if stored(&namespace)?.is_deleting() {
                return Err(Status::namespace_terminating(named(self.shown), name, self.namespace));
            }
            return Ok(Some((namespace.key().clone(), namespace.modified())));
        }
        if self.space == ROOT {
            return Ok(None);
        }
        spaces::revision(self.shared, self.space).map(Some).ok_or_else(Status::no_such_page)
    }

    /// Changes an object. `change` makes the new object, in its sparse form, of the old one in its complete form, and may be
    /// asked again when somebody else was faster. It is not asked when the object does not exist.
    pub(crate) async fn update(
        &self,
        name: &str,
        warnings: &mut Vec<String>,
        mut change: impl FnMut(&Value, &mut Vec<String>) -> Result<Value, Status>,
    ) -> Result<Change, Status> {
        self.replace_with(name, warnings, false, |old, noted| change(old.object, noted).map(Made::from)).await
    }

    /// The same for who says who owns what. But for custom resources the managers are kept apart.
    pub(crate) async fn update_owned(
        &self,
        name: &str,
        warnings: &mut Vec<String>,
        change: impl FnMut(Old<'_>, &mut Vec<String>) -> Result<Made, Status>,
    ) -> Result<Change, Status> {
        self.replace_with(name, warnings, self.resource.custom.is_none(), change).await
    }

    async fn replace_with(
        &self,
        name: &str,
        warnings: &mut Vec<String>,
        apart: bool,
        mut change: impl FnMut(Old<'_>, &mut Vec<String>) -> Result<Made, Status>,
    ) -> Result<Change, Status> {
        let key = self.key(name)?;
        for _ in 0..ATTEMPTS {
            let existing = self.shared.store.get(&key).ok_or_else(|| Status::not_found(named(self.shown), name))?;
            let mut noted = Vec::new();
            let change = self.attempt(name, &existing, apart, &mut change, &mut noted).await;
            if matches!(change, Ok(None)) {
                continue;
            }
            // What is refused is warned of too.
            warnings.append(&mut noted);
            return change.and_then(|change| change.ok_or_else(busy));
        }
        Err(busy())
    }

    /// Changes an object as it is now; `None` if somebody else was faster.
    async fn attempt(
        &self,
        name: &str,
        existing: &Arc<Object>,
        apart: bool,
        change: &mut impl FnMut(Old<'_>, &mut Vec<String>) -> Result<Made, Status>,
        noted: &mut Vec<String>,
    ) -> Result<Option<Change>, Status> {
        let decided = settled(self.shared, self.space, || {
            noted.clear();
            let (mut object, managers) = if apart { self.read_apart(existing)? } else { (self.read(existing)?, None) };
            let old = Old { object: &object, managers };
            let Made { object: mut new, managers: owned } = change(old, noted)?;
            if spaces::is_space(self.resource) && spaces::is_held(old.object) {
                // Only the end of the space takes that away.
                spaces::hold(&mut new);
            }
            if let Some(owner) = &self.owner {
                // Four checks of the real server find it in turn, and each lists it.
                let refuse = |causes: Vec<Cause>| {
                    Status::invalid(kind(self.shown), name, std::iter::repeat_n(causes, 4).flatten().collect())
                };
                owner.update(old.object, &mut new).map_err(refuse)?;
            }
            self.check_version(&new, existing, name)?;
            if apart {
                // The complete object is not needed any more: what is the same shows in what is stored.
                schema::sparse(&self.resource.schemas, self.resource.schema, &mut object);
                let new = Made { object: self.prepare(new, &object, name, noted)?, managers: owned };
                return self.decided_by_content(new, object, existing);
            }
            let new = self.prepare(new, &self.sparse(old.object), name, noted)?;
            self.decided(new, object, existing)
        });
        self.replace(existing, decided.await?).await
    }

    /// A change, with what is stored for it if that takes a conversion.
    fn decided(&self, new: Value, old: Value, existing: &Object) -> Result<Decided, Status> {
        let Some(custom) = &self.resource.custom else {
            return Ok(Decided { same: object::same_but_for_times(&old, &new), old, new: new.into(), content: None });
        };
        let (new, content) = self.content(new)?;
        let same = object::same_but_for_times(&old, &new) && is_kept(custom, existing, &content)?;
        Ok(Decided { same, old, new: new.into(), content: Some(content) })
    }

    /// Changes an object whatever its version: for controllers, which decide on what they read. `change` gets the object in
    /// its sparse form.
    pub(crate) async fn edit(&self, name: &str, change: impl Fn(&mut Value)) -> Result<Change, Status> {
        let key = self.key(name)?;
        for _ in 0..ATTEMPTS {
            let existing = self.shared.store.get(&key).ok_or_else(|| Status::not_found(named(self.shown), name))?;
            let decided = settled(self.shared, self.space, || {
                let old = self.read(&existing)?;
                let mut new = old.clone();
                schema::sparse(&self.resource.schemas, self.resource.schema, &mut new);
                change(&mut new);
                schema::sparse(&self.resource.schemas, self.resource.schema, &mut new);
                if let Some(owner) = &self.owner {
                    // The managers are those that were there.
                    let _ = owner.update(&old, &mut new);
                }
                let new = self.prepare(new, &self.sparse(&old), name, &mut Vec::new())?;
                self.decided(new, old, &existing)
            });
            if let Some(change) = self.replace(&existing, decided.await?).await? {
                return Ok(change);
            }
        }
        Err(busy())
    }

    /// Refuses a change of another version of the object than the client saw.
    fn check_version(&self, new: &Value, existing: &Object, name: &str) -> Result<(), Status> {
        let plain = |problem: String| {
            problem.split_once(": strconv").map_or(problem.clone(), |(_, rest)| format!("strconv{rest}"))
        };
        let given =
            revision(object::text(new, "resourceVersion")).map_err(|problem| Status::internal(plain(problem)))?;
        let given = given.filter(|revision| *revision != Revision::ZERO);
        let uid = object::text(new, "uid");
        let current = stored(existing)?.uid();
        if !uid.is_empty() && uid != current && !self.patching {
            let key = crate::versions::storage_key(self.resource, self.namespace, name, self.dry_run);
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {current}"
            );
            return Err(Status::conflict(named(self.shown), name, &why));
        }
        match given {
            None if !self.resource.behaviour.unconditional_update => {
                let message = "Invalid value: 0: must be specified for an update".to_owned();
                let cause = Cause { reason: "FieldValueInvalid", message, field: "metadata.resourceVersion".into() };
                Err(Status::invalid(named(self.shown), name, vec![cause]))
            }
            Some(given) if given != existing.modified() => Err(Status::modified(named(self.shown), name)),
            _ => Ok(()),
        }
    }

    pub(super) fn allocation(&self) -> Allocation<'_> {
        Allocation { shared: self.shared, space: self.space, resource: self.resource }
    }

    /// A change of a built-in kind whose managers are kept apart.
    fn decided_by_content(&self, new: Made, old: Value, existing: &Object) -> Result<Decided, Status> {
        let content = object::encode_owned(&new.object, new.managers.as_deref());
        let own_the_same = |one: &[u8], other: &[u8]| {
            Managers::parse(one).zip(Managers::parse(other)).is_some_and(|(one, other)| one.own_the_same(&other))
        };
        let same = stored(existing)?.is_same(&content, own_the_same);
        Ok(Decided { same, old, new, content: Some(content) })
    }

    /// An object in its sparse form, without its managers.
    fn sparse(&self, object: &Value) -> Value {
        let mut sparse = object::without_managers(object);
        schema::sparse(&self.resource.schemas, self.resource.schema, &mut sparse);
        sparse
    }

    /// The new object in its complete form, with everything the client has no say in taken from the old one, which is sparse
    /// and without managers.
    fn prepare(&self, mut new: Value, old: &Value, name: &str, warnings: &mut Vec<String>) -> Result<Value, Status> {
        let mut metadata = Metadata::of(&mut new);
        for field in ["name", "namespace", "creationTimestamp", "generation"] {
            metadata.copy(field, old);
        }
        if metadata.text("uid").is_empty() {
            metadata.copy("uid", old);
        }
        metadata.remove("resourceVersion");
        if !self.dry_run {
            // It is not stored; what is only tried out is answered as it came.
            metadata.remove("selfLink");
        }
        metadata.remove_annotation(SPACE_ANNOTATION);
        if object::is_deleting(old) {
            metadata.copy("deletionTimestamp", old);
        }
        if metadata.get("deletionGracePeriodSeconds").is_none() {
            metadata.copy("deletionGracePeriodSeconds", old);
        }
        let asked = self.allocation().asked(&new);
        kinds::prepare_update(self.resource, self.subresource, &mut new, old, &self.shared.now());
        if self.subresource.is_none() {
            self.refuse(name, kinds::validate_addresses(self.resource, &new, Some(old), self.dry_run))?;
        }
        match &self.resource.custom {
            Some(custom) => {
                kinds::check_type(self.resource, &new)?;
                let verdict = kinds::judge_custom(self.resource, custom, self.subresource, &new, Some(old));
                // What is only warned of is told even if something else is refused.
                warnings.extend(verdict.warnings);
                self.refuse(name, verdict.errors)?;
            }
            None => {
                let part = self.subresource;
                self.refuse(name, kinds::validate_update(self.resource, self.shown, part, &new, old))?;
            }
        }
        if self.subresource.is_none() {
            self.place().judge(&new, Some(old))?;
        }
        if self.dry_run {
            self.allocation().try_out(&asked, &mut new, Some(old));
        } else {
            self.allocation().settle(&asked, &mut new, Some(old))?;
        }
        if self.subresource.is_none() {
            warnings.extend(kinds::warnings(self.resource, &new, Some(old)));
        }
        answer::complete(self.resource, &mut new);
        Ok(new)
    }

    /// Puts a new object in the place of an old one; `None` if somebody else was faster.
    pub(super) async fn replace(&self, existing: &Arc<Object>, decided: Decided) -> Result<Option<Change>, Status> {
        let Decided { old, new, content, same } = decided;
        // What is only tried out is answered with fields that are never stored.
        if !self.dry_run && same {
            let custom = self.resource.custom.is_some();
            let outcome = if custom { Outcome::Value(old) } else { Outcome::Stored(existing.clone()) };
            return Ok(Some(Change::None(outcome)));
        }
        let content = content.unwrap_or_else(|| object::encode_owned(&new.object, new.managers.as_deref()));
        let key = existing.key().clone();
        let expect = Expect::At(existing.modified());
        let gone = object::is_deleting(&new.object) && crate::verbs::delete::nothing_holds(self.resource, &new.object);
        let batch = Batch::new();
        let batch = if gone { batch.delete(key, expect) } else { batch.put(key, expect, content) };
        let batch = self.allocation().hold(batch, (!gone).then_some(&new.object), Some(&old))?;
        let as_it_was = |new: Made| Outcome::Value(at_revision(new.whole(), existing.modified()));
        if self.dry_run {
            return Ok(Some(if gone { Change::Deleted(as_it_was(new)) } else { Change::Updated(as_it_was(new)) }));
        }
        match self.shared.store.commit(batch).await {
            Ok(_) if gone => Ok(Some(Change::Deleted(as_it_was(new)))),
            Ok(committed) => Ok(Some(Change::Updated(self.outcome(existing.key(), new, written_at(&committed))))),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// An object that was just written. Only if somebody else has written it since is it not found as it was.
    fn outcome(&self, key: &Key, made: Made, revision: Revision) -> Outcome {
        let custom = self.resource.custom.is_some();
        let stored = self.shared.store.get(key).filter(|stored| stored.modified() == revision && !custom);
        stored.map_or_else(|| Outcome::Value(at_revision(made.whole(), revision)), Outcome::Stored)
    }

    /// An existing object of a built-in kind, complete, in the version that is written, and the text of its managers.
    fn read_apart<'o>(&self, existing: &'o Object) -> Result<(Value, Option<&'o [u8]>), Status> {
        let (object, managers) = stored(existing)?.parse_apart(&self.resource.kind, &self.resource.api_version());
        Ok((object, Some(managers)))
    }

    /// An existing object, complete, in the version that is written.
    pub(super) fn read(&self, existing: &Object) -> Result<Value, Status> {
        super::read(&self.shared.registry, self.resource, existing)
    }

    /// An object, and what is stored for it. Custom resources may be stored in another version: what that does not know is
    /// gone from the object too.
    pub(super) fn content(&self, mut object: Value) -> Result<(Value, Content), Status> {
        let Some(custom) = &self.resource.custom else {
            let content = object::encode(&object);
            return Ok((object, content));
        };
        let family = &custom.family;
        let written = |mark| Written { version: &family.stored().name, mark };
        numbers::write_plainly(&mut object);
        if custom.is_stored() {
            // It is shown as it would be read: with defaults also where a part cannot be written here.
            custom.schema().default(&mut object);
            let content = object::encode_as(&object, written(family.stored().mark));
            return Ok((object, content));
        }
        let stored = family.convert(object, custom.version, family.storage)?;
        // What was written in another version has the defaults of that: those of its own are filled in when it is read.
        let mut whole = stored.clone();
        family.stored().schema.default(&mut whole);
        let mark = if whole == stored { family.stored().mark } else { UNMARKED };
        let content = object::encode_as(&stored, written(mark));
        Ok((family.read(stored, family.storage, custom.version)?, content))
    }

    fn place(&self) -> Place<'_> {
        Place { shared: self.shared, space: self.space, resource: self.resource }
    }

    /// Refuses an object with something wrong with it.
    pub(crate) fn refuse(&self, name: &str, errors: Vec<FieldError>) -> Result<(), Status> {
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(kind(self.resource), name, errors.into_iter().map(Cause::from).collect()))
    }
}

/// Whether what would be stored for a custom resource is what is stored. One that looks the same in the version it is
/// written in may still lose what that does not know, or be given what came since.
fn is_kept(custom: &Custom, existing: &Object, content: &Content) -> Result<bool, Status> {
    let family = &custom.family;
    let before = stored(existing)?;
    if custom.is_stored() && before.is_marked(custom.version().mark) {
        return Ok(true);
    }
    let after = Object::detached(existing.key().clone(), existing.modified(), Some(content.clone()));
    let after = stored(&after)?.parse("", "");
    Ok(before.version() == family.stored().name && object::same_but_for_times(&before.parse("", ""), &after))
}

/// Namespaces as messages name them.
pub(crate) const NAMESPACES: crate::status::Named<'static> = crate::status::Named { group: "", what: "namespaces" };

/// How many generated names are tried before giving up.
const NAME_ATTEMPTS: usize = 8;

pub(crate) fn busy() -> Status {
    Status::too_many_requests("the object is changed by many at once, please try again", 1)
}

/// When the first operation of a batch was done: the one on the object itself.
pub(crate) fn written_at(committed: &Committed) -> Revision {
    committed.revisions.first().copied().flatten().unwrap_or(committed.revision)
}

fn at_revision(mut object: Value, revision: Revision) -> Value {
    set_revision(&mut object, revision);
    object
}

pub(crate) fn set_revision(object: &mut Value, revision: Revision) {
    Metadata::of(object).set("resourceVersion", revision.to_string());
}
