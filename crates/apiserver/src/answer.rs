//! From objects to bytes in the form the client asked for.

mod listing;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use orrery_store::Revision;
use serde_json::{Value, json};

use crate::{
    body::Body,
    object::{Metadata, Opening},
    protobuf,
    registry::Resource,
    request::{Accepted, Encoding, Form, Shape},
    schema,
    status::Status,
    yaml,
};

pub(crate) use listing::Listing;

/// An answer of bytes that are JSON, in the encoding asked for.
pub(crate) fn bytes(code: u16, json: Vec<u8>, encoding: Encoding) -> Response<Body> {
    let (body, encoding) = encode(json, encoding);
    respond(code, encoding.content_type(), Body::whole(body))
}

/// An answer with a body that is sent as it is.
pub(crate) fn respond(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A failure as an answer.
pub(crate) fn failure(status: &Status, encoding: Encoding) -> Response<Body> {
    let mut response = if status.is_plain() {
        respond(status.code(), "text/plain; charset=utf-8", Body::whole(status.message().to_owned()))
    } else {
        bytes(status.code(), status.to_json(), encoding)
    };
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// The bytes, and what they are: JSON where the kind has no form in protobuf.
fn encode(json: Vec<u8>, encoding: Encoding) -> (Bytes, Encoding) {
    let bytes = match encoding {
        Encoding::Json { pretty: false } => json.into(),
        Encoding::Json { pretty: true } => {
            let value: Value = serde_json::from_slice(&json).unwrap_or_default();
            let mut text = serde_json::to_vec_pretty(&value).unwrap_or_default();
            text.push(b'\n');
            text.into()
        }
        Encoding::Yaml => {
            let value: Value = serde_json::from_slice(&json).unwrap_or_default();
            yaml::write(&value).into()
        }
        Encoding::Protobuf => match protobuf::encode(&json) {
            Some(bytes) => bytes.into(),
            None => return (json.into(), Encoding::Json { pretty: false }),
        },
    };
    (bytes, encoding)
}

/// A value that is an object of a resource as an answer.
pub(crate) fn object(
    code: u16,
    resource: &Resource,
    object: &Value,
    accepted: Accepted,
    view: &TableView,
) -> Result<Response<Body>, Status> {
    let shaped = match accepted.form.shape {
        Shape::Whole => None,
        Shape::Metadata => Some(partial(resource, object, accepted.form)),
        Shape::Table => Some(table(
            resource,
            std::slice::from_ref(object),
            &json!({"resourceVersion": object["metadata"]["resourceVersion"]}),
            accepted.form,
            view,
        )?),
        Shape::MetadataList => return Err(not_a_list(resource)),
    };
    let json = serde_json::to_vec(shaped.as_ref().unwrap_or(object)).unwrap_or_default();
    Ok(bytes(code, json, accepted.encoding))
}

/// An object's metadata as an object of its own.
pub(crate) fn partial(resource: &Resource, object: &Value, form: Form) -> Value {
    let mut partial =
        json!({"kind": "PartialObjectMetadata", "apiVersion": form.api_version(), "metadata": object["metadata"]});
    if !is_whole_metadata(resource) {
        Metadata::of(&mut partial).remove_annotation(TEMPLATE_GENERATION);
    }
    partial
}

/// An annotation that stands for a field, and so belongs to the whole object.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Whether the metadata of a stored object is all metadata.
pub(crate) fn is_whole_metadata(resource: &Resource) -> bool {
    resource.kind != "DaemonSet" || resource.custom.is_some()
}

/// How the beginning of an object's metadata as an object of its own is spelt.
pub(crate) fn partial_opening(form: Form) -> Opening {
    Opening::named("PartialObjectMetadata", form.api_version())
}

/// Refuses to give one object in the form of a list.
pub(crate) fn not_a_list(resource: &Resource) -> Status {
    let kind = go_type(resource);
    Status::form_does_not_fit(format!(
        "you requested PartialObjectMetadataList, but the requested object is not a list (*{kind})"
    ))
}

/// Refuses to give a list in the form of one object.
pub(crate) fn is_a_list(resource: &Resource) -> Status {
    let kind = go_type(resource);
    Status::form_does_not_fit(format!(
        "you requested PartialObjectMetadata, but the requested object is a list (*{kind}List)"
    ))
}

/// The name of a kind's internal type, as messages show it: the first part of its group and its kind.
pub(crate) fn go_type(resource: &Resource) -> String {
    if resource.custom.is_some() {
        return "unstructured.Unstructured".to_owned();
    }
    let package = match resource.group.as_str() {
        "" | "events.k8s.io" => "core",
        "rbac.authorization.k8s.io" => "rbac",
        "admissionregistration.k8s.io" => "admissionregistration",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("{package}.{}", resource.kind)
}

/// What a table holds besides its cells.
#[derive(Clone, Debug)]
pub(crate) struct TableView {
    pub(crate) include: Include,
    pub(crate) now: jiff::Timestamp,
    /// Whether to describe the columns; a watch does so once.
    pub(crate) columns: bool,
}

/// Which part of its object a row of a table carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Metadata,
    Object,
    None,
}

impl Include {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Status> {
        match text.unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                crate::gotext::quote(other)
            ))),
        }
    }
}

/// Objects as a table.
pub(crate) fn table(
    resource: &Resource,
    objects: &[Value],
    metadata: &Value,
    form: Form,
    view: &TableView,
) -> Result<Value, Status> {
    let rows: Vec<Value> = objects.iter().map(|object| row(resource, object, form, view)).collect();
    // Kinds without columns of their own have no rows at all where others have an empty list.
    let plain = resource.columns.iter().map(|column| column.name.as_str()).eq(["Name", "Created At"]);
    let rows = if rows.is_empty() && plain { Value::Null } else { rows.into() };
    let columns = if view.columns { columns(resource) } else { Value::Null };
    Ok(json!({
        "kind": "Table",
        "apiVersion": form.api_version(),
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }))
}

fn columns(resource: &Resource) -> Value {
    if let Some(custom) = &resource.custom {
        return custom.columns.definitions().to_vec().into();
    }
    let columns = resource.columns.iter().map(|column| {
        let mut column = serde_json::to_value(column).unwrap_or_default();
        let name = column["name"].as_str().unwrap_or_default();
        column["description"] = match (resource.kind.as_str(), name) {
            // Kubernetes describes every column but this.
            ("RuntimeClass", "Handler") => String::new(),
            (kind, name) => format!("{name} of a {kind} object"),
        }
        .into();
        column
    });
    columns.collect()
}

/// The row of a table that shows an object.
pub(crate) fn row(resource: &Resource, object: &Value, form: Form, view: &TableView) -> Value {
    let cells = crate::table::cells(resource, object, view.now.as_second());
    let shown = match view.include {
        Include::None => Value::Null,
        Include::Object => object.clone(),
        Include::Metadata => partial(resource, object, form),
    };
    let mut row = json!({"cells": cells, "object": shown});
    if let Some(conditions) = crate::table::row_conditions(resource, object) {
        row["conditions"] = conditions;
    }
    row
}

/// The metadata of a list.
pub(crate) fn list_metadata(revision: Revision, continue_token: Option<&str>, remaining: Option<usize>) -> Value {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(token) = continue_token {
        metadata["continue"] = token.into();
    }
    if let Some(remaining) = remaining.filter(|count| *count > 0) {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

/// An object of a resource in its complete form, as it is stored and sent.
pub(crate) fn complete(resource: &Resource, object: &mut Value) {
    schema::complete(&resource.schemas, resource.schema, object);
    object["kind"] = resource.kind.clone().into();
    object["apiVersion"] = resource.api_version().into();
}
