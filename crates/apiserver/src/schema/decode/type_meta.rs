//! What a text says it is.

use super::{DecodeError, Decoder, word};

impl Decoder<'_> {
    /// The `apiVersion` and `kind` of the object at hand, empty where it does not name them.
    pub(super) fn type_meta(mut self) -> Result<(String, String), DecodeError> {
        let (mut version, mut kind) = (String::new(), String::new());
        match self.peek() {
            b'{' => {}
            b'n' => return Ok((version, kind)),
            other => {
                return Err(DecodeError(format!(
                    "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                     Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                    word(other)
                )));
            }
        }
        let mut failed = None;
        self.at += 1;
        while let Some(key) = self.next_key() {
            let target = match key.as_str() {
                "apiVersion" => &mut version,
                "kind" => &mut kind,
                _ => {
                    self.skip();
                    continue;
                }
            };
            match self.peek() {
                b'"' => *target = self.string(),
                b'n' => {
                    self.skip();
                }
                other => {
                    failed.get_or_insert_with(|| {
                        format!("json: cannot unmarshal {} into Go struct field .{key} of type string", word(other))
                    });
                    self.skip();
                }
            }
        }
        failed.map_or(Ok((version, kind)), |message| Err(DecodeError(message)))
    }
}
