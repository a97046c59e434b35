//! The status hash: SHA-256 of a status written the way Go's encoder writes it, keys sorted.

use std::fmt;

use jiff::Timestamp;
use orrery_api::work::{Condition, FieldValue, ManifestCondition, ManifestResourceMeta, ManifestWorkStatus};
use sha2::{Digest, Sha256};

/// What two ends compare to find out whether they know the same status.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatusHash([u8; 32]);

impl StatusHash {
    /// Hashes a status.
    pub fn of(status: &ManifestWorkStatus) -> Self {
        let mut json = String::with_capacity(1024);
        write_status(&mut json, status);
        Self(Sha256::digest(json.as_bytes()).into())
    }

    /// What a source that has no status yet sends: it equals the hash of no status.
    pub fn of_nothing() -> Self {
        Self(Sha256::digest(b"").into())
    }

    /// Reads the 64 hexadecimal digits of a hash.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut hash = [0; 32];
        if digits.len() != 2 * hash.len() {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for StatusHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for StatusHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn write_status(out: &mut String, status: &ManifestWorkStatus) {
    out.push('{');
    if !status.conditions.is_empty() {
        out.push_str("\"conditions\":");
        write_list(out, &status.conditions, write_condition);
        out.push(',');
    }
    out.push_str("\"resourceStatus\":{");
    if !status.resource_status.manifests.is_empty() {
        out.push_str("\"manifests\":");
        write_list(out, &status.resource_status.manifests, write_manifest);
    }
    out.push_str("}}");
}

fn write_list<T>(out: &mut String, items: &[T], write: fn(&mut String, &T)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

fn write_manifest(out: &mut String, manifest: &ManifestCondition) {
    out.push_str("{\"conditions\":");
    match &manifest.conditions {
        Some(conditions) => write_list(out, conditions, write_condition),
        None => out.push_str("null"),
    }
    out.push_str(",\"resourceMeta\":");
    write_resource(out, &manifest.resource_meta);
    out.push_str(",\"statusFeedback\":{");
    if !manifest.status_feedback.values.is_empty() {
        out.push_str("\"values\":");
        write_list(out, &manifest.status_feedback.values, |out, value| {
            out.push_str("{\"fieldValue\":");
            write_value(out, &value.field_value);
            write_text_field(out, ",\"name\":", &value.name);
            out.push('}');
        });
    }
    out.push_str("}}");
}

fn write_condition(out: &mut String, condition: &Condition) {
    out.push_str("{\"lastTransitionTime\":");
    match &condition.last_transition_time {
        Some(time) => write_text(out, &whole_seconds(time)),
        None => out.push_str("null"),
    }
    write_text_field(out, ",\"message\":", &condition.message);
    if condition.observed_generation != 0 {
        out.push_str(",\"observedGeneration\":");
        out.push_str(&condition.observed_generation.to_string());
    }
    write_text_field(out, ",\"reason\":", &condition.reason);
    write_text_field(out, ",\"status\":", &condition.status);
    write_text_field(out, ",\"type\":", &condition.r#type);
    out.push('}');
}

/// Go reads any RFC 3339 time and writes it back in UTC without fractions.
fn whole_seconds(time: &str) -> String {
    let plain = time.len() == "2026-11-16T01:00:00Z".len() && time.ends_with('Z');
    match time.parse::<Timestamp>().ok().filter(|_| !plain) {
        Some(time) => Timestamp::from_second(time.as_second()).unwrap_or(time).to_string(),
        None => time.to_owned(),
    }
}

fn write_resource(out: &mut String, resource: &ManifestResourceMeta) {
    write_text_field(out, "{\"group\":", &resource.group);
    write_text_field(out, ",\"kind\":", &resource.kind);
    write_text_field(out, ",\"name\":", &resource.name);
    write_text_field(out, ",\"namespace\":", &resource.namespace);
    out.push_str(",\"ordinal\":");
    out.push_str(&resource.ordinal.to_string());
    write_text_field(out, ",\"resource\":", &resource.resource);
    write_text_field(out, ",\"version\":", &resource.version);
    out.push('}');
}

fn write_value(out: &mut String, value: &FieldValue) {
    out.push('{');
    if let Some(boolean) = value.boolean {
        out.push_str(if boolean { "\"boolean\":true," } else { "\"boolean\":false," });
    }
    if let Some(integer) = value.integer {
        out.push_str("\"integer\":");
        out.push_str(&integer.to_string());
        out.push(',');
    }
    if let Some(json) = &value.json_raw {
        write_text_field(out, "\"jsonRaw\":", json);
        out.push(',');
    }
    if let Some(string) = &value.string {
        write_text_field(out, "\"string\":", string);
        out.push(',');
    }
    write_text_field(out, "\"type\":", &value.r#type);
    out.push('}');
}

fn write_text_field(out: &mut String, key: &str, text: &str) {
    out.push_str(key);
    write_text(out, text);
}

/// Go escapes what HTML and JavaScript would trip over, besides what JSON demands.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\0'..='\x1f' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(status: &str) -> String {
        let mut json = String::new();
        write_status(&mut json, &serde_json::from_str(status).unwrap());
        json
    }

    #[test]
    fn an_empty_status_still_names_its_resources() {
        assert_eq!(canonical("{}"), r#"{"resourceStatus":{}}"#);
        assert_eq!(canonical(r#"{"conditions":null,"resourceStatus":{"manifests":null}}"#), r#"{"resourceStatus":{}}"#);
    }

    #[test]
    fn text_is_escaped_as_go_does() {
        let status = r#"{"conditions":[{"type":"<&>","message":"\u2028\u0001\b\f\"\\é\u007f"}]}"#;
        let want = concat!(
            r#"{"conditions":[{"lastTransitionTime":null,"message":"\u2028\u0001\b\f\"\\é"#,
            "\u{7f}",
            r#"","reason":"","status":"","type":"\u003c\u0026\u003e"}],"resourceStatus":{}}"#
        );
        assert_eq!(canonical(status), want);
    }

    #[test]
    fn times_are_written_in_whole_seconds_utc() {
        assert_eq!(whole_seconds("2026-11-16T03:00:00.999+02:00"), "2026-11-16T01:00:00Z");
        assert_eq!(whole_seconds("2026-11-16T01:00:00Z"), "2026-11-16T01:00:00Z");
        assert_eq!(whole_seconds("yesterday"), "yesterday");
    }

    #[test]
    fn hex_reads_back() {
        let hash = StatusHash::of_nothing();
        assert_eq!(hash.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(StatusHash::from_hex(&hash.to_string()), Some(hash));
        assert_eq!(StatusHash::from_hex("e3"), None);
        assert_eq!(StatusHash::from_hex(&"é".repeat(32)), None);
    }
}
