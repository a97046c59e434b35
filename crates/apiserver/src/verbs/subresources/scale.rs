//! How many of something there should be, in the same form for every kind that can be scaled.

use http::Response;
use serde_json::{Map, Value, json};

use super::super::{
    Call, Writer,
    apply::Configuration,
    decode::{self, Wanted},
    ownership::{NO_CUSTOM_SCALE, Owner, ScaleOwner, described},
    patch::Patch,
};
use crate::{
    answer::{self, Include},
    body::Body,
    object::{self, Metadata},
    registry::Resource,
    request::{Shape, WriteOptions},
    schema,
    status::{Cause, Named, Status},
};

const KIND: Named<'static> = Named { group: "autoscaling", what: "Scale" };

/// Answers with the scale of an object.
pub(super) async fn get(call: &Call) -> Result<Response<Body>, Status> {
    let object = call.read(&*call.existing()?).await?;
    if let Some(scale) = call.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref())
        && at(&object, &scale.spec_replicas).is_none_or(Value::is_null)
    {
        let path = crate::gotext::quote(&scale.spec_replicas);
        return Err(Status::internal_error(format!("the spec replicas field {path} does not exist")));
    }
    respond(call, &object)
}

/// Sets the scale of an object.
pub(super) async fn update(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let wanted = wanted(call)?;
    let scale = decode::body(call, &wanted, body, options.field_validation, warnings)?;
    super::super::update::check_names(call, &scale)?;
    check(call, &scale)?;
    let owner = Owner::of(call, &options);
    write(call, options.dry_run, warnings, |object, _| {
        let managers = scale_owner(&owner, &wanted).update(
            object,
            &complete(call, &scale_of(call, object), &wanted),
            &complete(call, &scale, &wanted),
        );
        Ok((scale.clone(), managers))
    })
    .await
}

/// Applies a configuration to the scale of an object.
pub(crate) async fn apply(
    call: &Call,
    mut config: Configuration,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Response<Body>, Status> {
    let wanted = wanted(call)?;
    let owner = Owner::of(call, options);
    let scale_type = resource_of(call, &wanted);
    config.check(&scale_type.api_version(), &scale_type.kind)?;
    config.check_text(options.field_validation, warnings)?;
    write(call, options.dry_run, warnings, |object, _| {
        let old = complete(call, &scale_of(call, object), &wanted);
        let (scale, managers) = scale_owner(&owner, &wanted).apply(object, &old, &config.value, options.force)?;
        if scale.is_some() && call.resource.custom.is_some() {
            let described = described(&config.value);
            let problem = format!("failed to convert new object ({described}) to proper version: {NO_CUSTOM_SCALE}");
            return Err(Status::internal(problem));
        }
        let mut scale = scale.unwrap_or(old);
        schema::restore(&call.resource.schemas, wanted.schema, &mut scale).map_err(Status::internal)?;
        super::super::update::check_names(call, &scale)?;
        check(call, &scale)?;
        Ok((scale, managers))
    })
    .await
}

fn scale_owner<'a>(owner: &'a Owner<'a>, wanted: &Wanted<'_>) -> ScaleOwner<'a> {
    ScaleOwner { owner, schema: wanted.schema, api_version: "autoscaling/v1" }
}

/// A scale with all fields that are always there.
fn complete(call: &Call, scale: &Value, wanted: &Wanted<'_>) -> Value {
    let mut scale = scale.clone();
    schema::complete(&call.resource.schemas, wanted.schema, &mut scale);
    scale
}

/// Changes the scale of an object.
pub(super) async fn patch(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::of_patch(&call.query)?;
    let patch = Patch::parse(&call.content_type, body, options.field_validation);
    let wanted = wanted(call)?;
    let scale_type = resource_of(call, &wanted);
    let owner = Owner::of(call, &options);
    write(call, options.dry_run, warnings, |object, noted| {
        let patch = patch.as_ref().map_err(Status::clone)?;
        let scale = patch.apply(&call.shared.registry, &scale_type, &scale_of(call, object), noted)?;
        check(call, &scale)?;
        let managers = scale_owner(&owner, &wanted).update(
            object,
            &complete(call, &scale_of(call, object), &wanted),
            &complete(call, &scale, &wanted),
        );
        Ok((scale, managers))
    })
    .await
}

fn wanted(call: &Call) -> Result<Wanted<'_>, Status> {
    let part = call.subresource().ok_or_else(Status::no_such_resource)?;
    let schema = part.schema.ok_or_else(Status::no_such_resource)?;
    Ok(Wanted {
        group: &part.kind_group,
        version: &part.kind_version,
        kind: &part.kind,
        schema,
        custom: None,
        internal: "autoscaling.Scale".to_owned(),
    })
}

/// The type of scales, as a patch needs it.
fn resource_of(call: &Call, wanted: &Wanted<'_>) -> Resource {
    let base = &*call.resource;
    Resource {
        group: wanted.group.to_owned(),
        version: wanted.version.to_owned(),
        kind: wanted.kind.to_owned(),
        plural: base.plural.clone(),
        singular: base.singular.clone(),
        namespaced: base.namespaced,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        subresources: Vec::new(),
        storage: base.storage.clone(),
        schema: wanted.schema,
        schemas: base.schemas.clone(),
        columns: Vec::new(),
        custom: None,
        behaviour: base.behaviour.clone(),
    }
}

async fn write(
    call: &Call,
    dry_run: bool,
    warnings: &mut Vec<String>,
    scale: impl Fn(&Value, &mut Vec<String>) -> Result<(Value, Value), Status>,
) -> Result<Response<Body>, Status> {
    let writer = Writer { subresource: None, ..Writer::unowned(call, dry_run)? };
    let change = writer.update(call.name(), warnings, |old, noted| {
        let (scale, managers) = scale(old, noted)?;
        let mut new = old.clone();
        schema::sparse(&call.resource.schemas, call.resource.schema, &mut new);
        // Zero is said, or it would be taken for unset.
        let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
        put(&mut new, spec_replicas(call), replicas);
        let mut metadata = Metadata::of(&mut new);
        if !object::text(&scale, "resourceVersion").is_empty() || call.resource.behaviour.unconditional_update {
            metadata.copy("resourceVersion", &scale);
        }
        metadata.copy("uid", &scale);
        metadata.remove("managedFields");
        if managers.is_array() {
            metadata.set("managedFields", managers);
        }
        Ok(new)
    });
    respond(call, &change.await?.outcome().value(call)?)
}

/// Where the number of replicas is set.
fn spec_replicas(call: &Call) -> &str {
    let scale = call.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    scale.map_or(".spec.replicas", |scale| &scale.spec_replicas)
}

/// What is at a path of names, each after a dot.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |value, name| value.get(name))
}

/// Sets what is at a path of names; what leads there is made.
fn put(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for name in path.trim_start_matches('.').split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = value;
}

/// Refuses a number of replicas that cannot be. That of a custom resource is judged as a part of it.
fn check(call: &Call, scale: &Value) -> Result<(), Status> {
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
    if replicas >= 0 || call.resource.custom.is_some() {
        return Ok(());
    }
    let message = format!("Invalid value: {replicas}: must be greater than or equal to 0");
    let cause = Cause { reason: "FieldValueInvalid", message, field: "spec.replicas".into() };
    Err(Status::invalid(KIND, call.name(), vec![cause]))
}

fn respond(call: &Call, object: &Value) -> Result<Response<Body>, Status> {
    let scale = scale_of(call, object);
    let form = call.accepted.form;
    let shaped = match form.shape {
        Shape::Table => table(call, &scale)?,
        Shape::Metadata => answer::partial(&call.resource, &scale, form),
        _ => scale,
    };
    Ok(answer::bytes(200, serde_json::to_vec(&shaped).unwrap_or_default(), call.accepted.encoding))
}

/// A scale as a table of one row.
fn table(call: &Call, scale: &Value) -> Result<Value, Status> {
    let view = call.table_view()?;
    let form = call.accepted.form;
    let column = |name: &str, kind: &str, format: &str| json!({"name": name, "type": kind, "format": format, "priority": 0, "description": format!("{name} of a Scale object")});
    // Custom resources tell what a name and what a time is.
    let (name, age) = if call.resource.custom.is_some() { ("name", "date") } else { ("", "string") };
    let cells = crate::table::scale_cells(scale, view.now.as_second());
    let shown = match view.include {
        Include::None => Value::Null,
        Include::Object => scale.clone(),
        Include::Metadata => answer::partial(&call.resource, scale, form),
    };
    Ok(json!({
        "kind": "Table",
        "apiVersion": form.api_version(),
        "metadata": {"resourceVersion": scale["metadata"]["resourceVersion"]},
        "columnDefinitions": [
            column("Name", "string", name), column("Desired", "integer", ""), column("Available", "integer", ""), column("Age", age, ""),
        ],
        "rows": [{"cells": cells, "object": shown}],
    }))
}

/// The scale of an object.
fn scale_of(call: &Call, object: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let text = object::text(object, field);
        if !text.is_empty() {
            metadata.insert(field.to_owned(), text.into());
        }
    }
    let scale = call.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    let observed = scale.map_or(".status.replicas", |scale| &scale.status_replicas);
    let count = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut spec = Map::new();
    if count(spec_replicas(call)) != 0 {
        spec.insert("replicas".to_owned(), count(spec_replicas(call)).into());
    }
    let mut status = Map::from_iter([("replicas".to_owned(), count(observed).into())]);
    let selector = match scale {
        Some(scale) => {
            let path = scale.label_selector.as_deref();
            path.and_then(|path| at(object, path)).and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        None => selector_text(object.pointer("/spec/selector").unwrap_or(&Value::Null)),
    };
    if !selector.is_empty() {
        status.insert("selector".to_owned(), selector.into());
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// A selector as text: labels in the order of their keys.
fn selector_text(selector: &Value) -> String {
    let structured = selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    let labels = if structured { selector.get("matchLabels") } else { Some(selector) };
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        terms.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let text = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), text));
    }
    terms.sort_by(|one, other| one.0.cmp(&other.0));
    terms.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_written_in_the_order_of_their_keys() {
        for (selector, text) in [
            (json!({"b": "2", "a": "1"}), "a=1,b=2"),
            (
                json!({"matchLabels": {"b": "2"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}),
                "a in (x,y),b=2",
            ),
            (json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}), "!a"),
            (Value::Null, ""),
        ] {
            assert_eq!(selector_text(&selector), text);
        }
    }
}
