//! Where a page of a list ended: the token that brings the client to the next one.

use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::Serialize;
use serde_json::Value;

use crate::json;

/// The end of a page. Its text is the same as that of Kubernetes' own tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The revision all pages are read at; `None` for the current one.
    pub(crate) revision: Option<u64>,
    /// The part of the last key that comes after what the list has in common.
    pub(crate) start: String,
}

#[derive(Serialize)]
struct Token<'a> {
    v: &'a str,
    rv: i64,
    start: &'a str,
}

const VERSION: &str = "meta.k8s.io/v1";

/// Without padding, and with anything in the bits that no byte needs, as Go reads it.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

impl Page {
    /// The token for the client. A start that ends in a zero byte means: after this key.
    pub(crate) fn encode(&self) -> String {
        let rv = self.revision.and_then(|revision| i64::try_from(revision).ok()).unwrap_or(-1);
        // Serialising a number and strings cannot fail.
        let json = serde_json::to_vec(&Token { v: VERSION, rv, start: &self.start }).unwrap_or_default();
        ENGINE.encode(json)
    }

    /// Reads a token.
    pub(crate) fn decode(text: &str) -> Result<Self, String> {
        let bytes = ENGINE.decode(text).map_err(|_| base64_problem(text))?;
        let token = json::parse(&bytes)?;
        let text = |field| token.get(field).and_then(Value::as_str).unwrap_or_default();
        let version = text("v");
        if version != VERSION {
            return Err(format!("server does not recognize this encoded version {version}"));
        }
        let revision = token.get("rv").and_then(Value::as_i64).unwrap_or(0);
        if revision == 0 {
            return Err(format!("incorrect encoded start resourceVersion (version {VERSION})"));
        }
        let start = text("start");
        if start.is_empty() {
            return Err(format!("encoded start key empty (version {VERSION})"));
        }
        let path = start.strip_prefix('/').unwrap_or(start);
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(start.to_owned());
        }
        Ok(Self { revision: u64::try_from(revision).ok(), start: path.to_owned() })
    }
}

/// What Go says about text that is not base64: at which byte it stops being so.
fn base64_problem(text: &str) -> String {
    let ours = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    // Go counts a last group that is cut short from where the group begins.
    let position = text.bytes().position(|byte| !ours(byte)).unwrap_or(text.len() / 4 * 4);
    format!("illegal base64 data at input byte {position}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back() {
        let page = Page { revision: Some(224), start: "ns/a\0".into() };
        assert_eq!(Page::decode(&page.encode()), Ok(page));
        let now = Page { revision: None, start: "a\0".into() };
        assert_eq!(Page::decode(&now.encode()), Ok(now));
    }

    #[test]
    fn what_is_no_token() {
        for (token, problem) in [
            ("eyJ2IjoidjkifQ==", "illegal base64 data at input byte 14"),
            ("abc", "invalid character 'i' looking for beginning of value"),
            ("eyJ2IjoidjkiLCJydiI6NSwic3RhcnQiOiJhIn0", "server does not recognize this encoded version v9"),
            ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NX0", "encoded start key empty (version meta.k8s.io/v1)"),
            ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi94In0", "../x"),
        ] {
            assert_eq!(Page::decode(token), Err(problem.to_owned()), "{token}");
        }
    }
}
