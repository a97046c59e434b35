//! Writing YAML as Go's writer does: keys sorted, long texts folded, quotes only where they are needed.

use serde_json::Value;

use super::read::{Plain, plain};

/// A value as a YAML document.
pub fn write(value: &Value) -> Vec<u8> {
    let mut writer = Writer { out: String::new(), column: 0 };
    match value {
        Value::Object(fields) if !fields.is_empty() => writer.map(value, 0),
        Value::Array(items) if !items.is_empty() => writer.list(value, 0),
        _ => {
            writer.scalar(value, 0);
            writer.newline();
        }
    }
    writer.out.into_bytes()
}

/// From which column on a text is folded at the next space.
const WIDTH: usize = 80;

struct Writer {
    out: String,
    column: usize,
}

impl Writer {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn newline(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn indent(&mut self, indent: usize) {
        self.push(&" ".repeat(indent));
    }

    /// Writes the fields of a map, the first of which stands where we are.
    fn map(&mut self, value: &Value, indent: usize) {
        let fields = value.as_object().into_iter().flatten();
        for (index, (name, value)) in fields.enumerate() {
            if index > 0 {
                self.indent(indent);
            }
            self.text(name, indent, false);
            self.push(":");
            match value {
                Value::Object(fields) if !fields.is_empty() => {
                    self.newline();
                    self.indent(indent + 2);
                    self.map(value, indent + 2);
                }
                Value::Array(items) if !items.is_empty() => {
                    self.newline();
                    self.indent(indent);
                    self.list(value, indent);
                }
                _ => {
                    self.push(" ");
                    self.scalar(value, indent);
                    self.newline();
                }
            }
        }
    }

    /// Writes the items of a list, the first of which stands where we are.
    fn list(&mut self, value: &Value, indent: usize) {
        let items = value.as_array().into_iter().flatten();
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.indent(indent);
            }
            self.push("- ");
            match item {
                Value::Object(fields) if !fields.is_empty() => self.map(item, indent + 2),
                Value::Array(items) if !items.is_empty() => self.list(item, indent + 2),
                _ => {
                    self.scalar(item, indent);
                    self.newline();
                }
            }
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.push("null"),
            Value::Bool(value) => self.push(&value.to_string()),
            Value::Number(number) => self.push(&crate::gotext::plain(&Value::Number(number.clone()))),
            Value::String(text) => self.text(text, indent, true),
            Value::Array(_) => self.push("[]"),
            Value::Object(_) => self.push("{}"),
        }
    }

    fn text(&mut self, text: &str, indent: usize, fold: bool) {
        match style(text) {
            Style::Plain => self.folded(text, indent, fold),
            Style::Single => {
                self.push("'");
                self.folded(&text.replace('\'', "''"), indent, fold);
                self.push("'");
            }
            Style::Double => self.push(&crate::gotext::quote(text)),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// Writes text, breaking the line at the first single space after the width is passed.
    fn folded(&mut self, text: &str, indent: usize, fold: bool) {
        let mut characters = text.chars().peekable();
        let mut last_space = true;
        while let Some(character) = characters.next() {
            let next_space = characters.peek().is_none_or(|next| *next == ' ');
            if fold && character == ' ' && !last_space && !next_space && self.column > WIDTH {
                self.newline();
                self.indent(indent + 2);
            } else {
                self.out.push(character);
                self.column += 1;
            }
            last_space = character == ' ';
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.push("|");
        if text.starts_with([' ', '\n']) {
            self.push("2");
        }
        match text.strip_suffix('\n') {
            None => self.push("-"),
            Some(rest) if rest.ends_with('\n') || rest.is_empty() => self.push("+"),
            Some(_) => {}
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.newline();
            if !line.is_empty() {
                self.indent(indent + 2);
                self.push(line);
            }
        }
    }
}

enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

fn style(text: &str) -> Style {
    if text.chars().any(|character| !crate::gotext::is_print(character) && character != '\n') {
        return Style::Double;
    }
    if text.contains('\n') {
        return if text.trim_end_matches('\n').is_empty() { Style::Double } else { Style::Literal };
    }
    if plain(text) != Plain::Text || is_date(text) {
        return Style::Double;
    }
    if needs_quotes(text) { Style::Single } else { Style::Plain }
}

/// Whether text would be read as something else, or not at all, without quotes.
fn needs_quotes(text: &str) -> bool {
    let mut characters = text.chars();
    let (first, second) = (characters.next().unwrap_or(' '), characters.next());
    let indicator = ",[]{}#&*!|>'\"%@`".contains(first)
        || ("-?:".contains(first) && second.is_none_or(|second| second == ' '))
        || text.starts_with("---")
        || text.starts_with("...");
    indicator
        || text.starts_with(' ')
        || text.ends_with(' ')
        || text.contains(": ")
        || text.contains(" #")
        || text.ends_with(':')
}

/// Whether text looks like a day or a time, which YAML 1.1 has a type for.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits =
        |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    let day =
        digits(0..4) && bytes.get(4) == Some(&b'-') && digits(5..7) && bytes.get(7) == Some(&b'-') && digits(8..10);
    day && (bytes.len() == 10 || matches!(bytes.get(10), Some(b'T' | b't' | b' ')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, yaml: &str) {
        assert_eq!(String::from_utf8(write(value)).unwrap(), yaml);
    }

    #[test]
    fn values_are_written_as_go_writes_them() {
        check(
            &json!({"b": {"x": [], "y": {}}, "a": [{"k": "v", "l": 1}, "s"], "c": null}),
            "a:\n- k: v\n  l: 1\n- s\nb:\n  x: []\n  \"y\": {}\nc: null\n",
        );
        check(
            &json!({"bool": "true", "date": "2024-01-01", "empty": "", "multi": "x\ny\n", "num": "1", "sp": " a", "no": "a: b"}),
            "bool: \"true\"\ndate: \"2024-01-01\"\nempty: \"\"\nmulti: |\n  x\n  y\n\"no\": 'a: b'\nnum: \"1\"\nsp: ' a'\n",
        );
    }

    #[test]
    fn long_texts_are_folded() {
        let text = "a".repeat(85) + " b c";
        check(&json!({ "k": text }), &format!("k: {}\n  b c\n", "a".repeat(85)));
    }
}
