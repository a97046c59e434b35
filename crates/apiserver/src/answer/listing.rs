//! A long list in any encoding, written item by item: nobody else is served while a thousand items are written at once.

use http::Response;
use serde_json::{Value, json};

use super::{bytes, encode, respond};
use crate::{body::Body, request::Encoding};

/// A list that is being written.
pub(crate) struct Listing {
    encoding: Encoding,
    /// What has items: everything but those.
    around: Value,
    /// The name of the field that has them.
    field: &'static str,
    text: Text,
    out: Vec<u8>,
    begun: bool,
}

/// How an encoding writes a list in the field of an object: what stands before the first item, between two, and after the last.
struct Text {
    open: String,
    between: &'static str,
    close: &'static str,
    /// What stands around the field when the object has no other.
    object: (&'static str, &'static str),
}

impl Text {
    fn of(encoding: Encoding, field: &str) -> Self {
        match encoding {
            // Protobuf is made of JSON.
            Encoding::Json { pretty: false } | Encoding::Protobuf => {
                Self { open: format!("\"{field}\":["), between: ",", close: "]", object: ("{", "}") }
            }
            Encoding::Json { pretty: true } => {
                Self { open: format!("\n  \"{field}\": [\n"), between: ",\n", close: "\n  ]", object: ("{", "\n}\n") }
            }
            Encoding::Yaml => Self { open: format!("{field}:\n"), between: "", close: "", object: ("", "") },
        }
    }
}

impl Listing {
    /// A list of which everything but the items is given.
    pub(crate) fn new(mut around: Value, field: &'static str, encoding: Encoding) -> Self {
        if let Value::Object(fields) = &mut around {
            fields.remove(field);
        }
        Self { encoding, around, field, text: Text::of(encoding, field), out: Vec::new(), begun: false }
    }

    /// Adds an item.
    pub(crate) fn push(&mut self, item: Value) {
        self.begin_item();
        match self.encoding {
            Encoding::Json { pretty: false } | Encoding::Protobuf => {
                // Writing values to memory cannot fail.
                let _ = serde_json::to_writer(&mut self.out, &item);
            }
            _ => {
                let alone = self.written(&json!({ self.field: [item] }));
                let Text { open, close, object: (before, after), .. } = &self.text;
                let item = alone.get(before.len() + open.len()..alone.len() - close.len() - after.len());
                self.out.extend_from_slice(item.unwrap_or_default());
            }
        }
    }

    /// Adds an item that is JSON.
    pub(crate) fn push_json(&mut self, item: &[u8]) {
        match self.encoding {
            Encoding::Json { pretty: false } | Encoding::Protobuf => {
                self.begin_item();
                self.out.extend_from_slice(item);
            }
            _ => self.push(serde_json::from_slice(item).unwrap_or_default()),
        }
    }

    /// The list as an answer.
    pub(crate) fn finish(mut self) -> Response<Body> {
        if !self.begun {
            self.around[self.field] = json!([]);
            return bytes(200, serde_json::to_vec(&self.around).unwrap_or_default(), self.encoding);
        }
        let (_, end) = self.halves();
        self.out.extend_from_slice(&end);
        match self.encoding {
            Encoding::Protobuf => bytes(200, self.out, self.encoding),
            written => respond(200, written.content_type(), Body::whole(self.out)),
        }
    }

    fn begin_item(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            self.out.extend_from_slice(self.text.between.as_bytes());
        } else {
            self.out = self.halves().0;
        }
    }

    /// What stands before the items, and what stands after them.
    fn halves(&self) -> (Vec<u8>, Vec<u8>) {
        let Text { open, close, object: (_, after), .. } = &self.text;
        let null = match self.encoding {
            // The order of fields is nothing to programs.
            Encoding::Json { pretty: false } | Encoding::Protobuf => {
                let mut begin = self.written(&self.around);
                begin.truncate(begin.len() - after.len());
                begin.extend_from_slice(format!(",{open}").as_bytes());
                return (begin, [*close, *after].concat().into_bytes());
            }
            Encoding::Json { pretty: true } => "    null",
            Encoding::Yaml => "- null\n",
        };
        let mut whole = self.around.clone();
        whole[self.field] = json!([null]);
        let whole = self.written(&whole);
        // Only a field of the outermost object stands at the beginning of a line like this.
        let items = format!("{open}{null}{close}");
        let mut places = whole.windows(items.len()).enumerate().filter(|(_, text)| *text == items.as_bytes());
        let begins_line = |place: usize| place == 0 || whole[place] == b'\n' || whole[place - 1] == b'\n';
        let place = places.find_map(|(place, _)| begins_line(place).then_some(place)).unwrap_or_default();
        (whole[..place + open.len()].to_vec(), whole[place + items.len() - close.len()..].to_vec())
    }

    fn written(&self, value: &Value) -> Vec<u8> {
        let json = serde_json::to_vec(value).unwrap_or_default();
        match self.encoding {
            Encoding::Protobuf => json,
            encoding => encode(json, encoding).0.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    /// Whatever the encoding, a list that is written item by item is the list that is written at once.
    #[tokio::test]
    async fn item_by_item_is_the_same_as_at_once() {
        let around = json!({
            "kind": "Table", "apiVersion": "v1", "metadata": {"resourceVersion": "1", "note": "\"rows\":[null] rows:\n- null\n"},
            "columnDefinitions": [{"description": "rows:\n- null\n", "rows": [null]}, {"rows": [null]}], "zone": {"rows": [null]}, "rows": null,
        });
        let items = [
            json!({"a": [1, {"b": "x\ny\n"}], "c": {}}),
            json!("text"),
            json!([]),
            json!({}),
            json!(null),
            json!([[1]]),
        ];
        for encoding in
            [Encoding::Json { pretty: false }, Encoding::Json { pretty: true }, Encoding::Yaml, Encoding::Protobuf]
        {
            for count in 0..=items.len() {
                let mut listing = Listing::new(around.clone(), "rows", encoding);
                let mut from_json = Listing::new(around.clone(), "rows", encoding);
                for item in &items[..count] {
                    listing.push(item.clone());
                    from_json.push_json(item.to_string().as_bytes());
                }
                let mut whole = around.clone();
                whole["rows"] = items[..count].to_vec().into();
                let expected = bytes(200, whole.to_string().into_bytes(), encoding);
                let (kind, text) = read(expected).await;
                for made in [listing, from_json] {
                    let (its_kind, its_text) = read(made.finish()).await;
                    assert_eq!(its_kind, kind);
                    if matches!(encoding, Encoding::Json { pretty: true } | Encoding::Yaml) {
                        assert_eq!(its_text, text, "{encoding:?} {count}");
                    } else {
                        let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                        assert_eq!(parsed(&its_text), parsed(&text), "{encoding:?} {count}");
                    }
                }
            }
        }
    }

    async fn read(response: Response<Body>) -> (http::HeaderValue, String) {
        let kind = response.headers()[http::header::CONTENT_TYPE].clone();
        let Ok(body) = response.into_body().collect().await;
        (kind, String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }
}
