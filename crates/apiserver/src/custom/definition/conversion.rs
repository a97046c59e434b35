//! How objects are converted between versions.

use std::collections::HashSet;

use serde_json::Value;

use super::{Errors, forbidden, has, invalid, part, required, text, texts};
use crate::{
    field::{FieldError, Path},
    format, kinds,
};

/// What of conversion reviews this server understands.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// Judges the conversion of a definition.
pub(super) fn validate(conversion: &Value, known_review: bool, errors: &mut Errors) {
    if conversion.is_null() {
        return;
    }
    match text(conversion, "strategy") {
        "" => errors.push(required("spec.conversion.strategy", "")),
        "None" | "Webhook" => {}
        other => {
            let path = Path::ROOT.child("spec.conversion.strategy");
            errors.push(FieldError::not_supported_text(&path, other, &["None", "Webhook"]));
        }
    }
    let webhook = part(conversion, "webhook");
    let client = part(webhook, "clientConfig");
    let client_path = "spec.conversion.webhookClientConfig";
    let reviews = texts(webhook, "conversionReviewVersions");
    if text(conversion, "strategy") != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if !client.is_null() {
            errors.push(forbidden(client_path, detail));
        }
        if !reviews.is_empty() {
            errors.push(forbidden("spec.conversion.conversionReviewVersions", detail));
        }
        return;
    }
    if has(webhook, "clientConfig") {
        errors.extend(kinds::validate_webhook_client(client, &Path::ROOT.child(client_path)));
    } else {
        errors.push(required(client_path, "required when strategy is set to Webhook"));
    }
    review_versions(&reviews, known_review, errors);
}

fn review_versions(versions: &[&str], known: bool, errors: &mut Errors) {
    let path = "spec.conversion.conversionReviewVersions";
    if versions.is_empty() {
        return errors.push(required(path, ""));
    }
    let mut seen = HashSet::new();
    for (at, version) in versions.iter().enumerate() {
        let here = format!("{path}[{at}]");
        if !seen.insert(version) {
            errors.push(invalid(&here, *version, "duplicate version"));
            continue;
        }
        errors.extend(format::dns_1035_label(version).iter().map(|fault| invalid(&here, *version, fault)));
    }
    if known && !is_understood(versions) {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(invalid(path, versions.to_vec(), &detail));
    }
}

/// Whether one of the versions of reviews is understood.
pub(super) fn is_understood(versions: &[&str]) -> bool {
    versions.iter().any(|version| REVIEWS.contains(version))
}
