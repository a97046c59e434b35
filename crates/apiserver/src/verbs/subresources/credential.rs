//! Certificates for the clients of a space: the key stays with whoever asks, the authority's with whoever signs.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Response;
use serde_json::{Value, json};

use super::super::{
    Call,
    decode::{self, Wanted},
};
use crate::{
    answer,
    body::Body,
    identity::Issuer,
    object::Metadata,
    request::WriteOptions,
    signer::{Credential, SigningRequest},
    spaces,
    status::{Cause, Named, Status},
};

/// Who is named when the request names nobody: somebody who may do everything in the space.
const ADMIN: (&str, &str) = ("space-admin", "system:masters");
/// For how many seconds a certificate is good: at most, which is also what is meant when the request does not say.
const LONGEST: i64 = 365 * 86_400;
/// And at least.
const SHORTEST: i64 = 600;

/// Signs a certificate for a client of a space. Nothing is stored.
pub(super) fn create(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let part = call.subresource().ok_or_else(Status::no_such_resource)?;
    let wanted = Wanted {
        group: &part.kind_group,
        version: &part.kind_version,
        kind: &part.kind,
        schema: part.schema.ok_or_else(Status::no_such_resource)?,
        custom: None,
        internal: "core.CredentialRequest".to_owned(),
    };
    let mut object = decode::body(call, &wanted, body, options.field_validation, warnings)?;
    let request = signing_request(call, &object["spec"])?;
    let signer = call.shared.config.signer.as_ref();
    let signer = signer.ok_or_else(|| Status::not_implemented("this server signs no certificates"))?;
    let mut metadata = Metadata::of(&mut object);
    metadata.set("name", call.name());
    metadata.set("creationTimestamp", call.shared.now());
    if !options.dry_run {
        let signed = signer.sign(&request).map_err(|problem| invalid(call, "spec.request", problem))?;
        object["status"] = status(call.name(), &signed);
    }
    Ok(answer::bytes(201, serde_json::to_vec(&object).unwrap_or_default(), call.accepted.encoding))
}

/// What is to be signed, for a space that is there to stay.
fn signing_request(call: &Call, spec: &Value) -> Result<SigningRequest, Status> {
    let uid = spaces::revision(&call.shared, call.name()).and_then(|_| spaces::uid(&call.shared, call.name()));
    let uid = uid.ok_or_else(|| Status::not_found(call.named(), call.name()))?;
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(LONGEST);
    if !(SHORTEST..=LONGEST).contains(&seconds) {
        return Err(invalid(call, "spec.expirationSeconds", format!("must be between {SHORTEST} and {LONGEST}")));
    }
    let request = STANDARD.decode(spec["request"].as_str().unwrap_or_default()).unwrap_or_default();
    let groups = spec["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let groups: Vec<String> = groups.map(str::to_owned).collect();
    let (username, groups) = match spec["username"].as_str() {
        None | Some("") if groups.is_empty() => (ADMIN.0.to_owned(), vec![ADMIN.1.to_owned()]),
        None | Some("") => return Err(invalid(call, "spec.username", "must be given with groups".to_owned())),
        Some(username) => (username.to_owned(), groups),
    };
    Ok(SigningRequest {
        request: String::from_utf8_lossy(&request).into_owned(),
        username,
        groups,
        place: Issuer::Space { name: call.name().to_owned(), uid },
        seconds,
    })
}

fn status(space: &str, signed: &Credential) -> Value {
    let mut status = json!({
        "certificate": STANDARD.encode(&signed.certificate),
        "expirationTimestamp": signed.expires.to_string(),
        "certificateAuthority": STANDARD.encode(&signed.authority),
        "server": format!("{}/spaces/{space}", signed.server),
    });
    if !signed.in_cluster_server.is_empty() {
        status["inClusterServer"] = json!(format!("{}/spaces/{space}", signed.in_cluster_server));
    }
    status
}

fn invalid(call: &Call, field: &str, problem: String) -> Status {
    let cause =
        Cause { reason: "FieldValueInvalid", message: format!("Invalid value: {problem}"), field: field.to_owned() };
    Status::invalid(Named { group: &call.resource.group, what: "CredentialRequest" }, call.name(), vec![cause])
}
