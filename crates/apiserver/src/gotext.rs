//! Text as Go prints it: Kubernetes' messages quote what users sent with `%q`.

use std::fmt::Write;

use serde_json::{Number, Value};

/// A string as Go's `strconv.Quote` writes it.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            _ if is_print(character) => quoted.push(character),
            _ => escape(&mut quoted, character),
        }
    }
    quoted.push('"');
    quoted
}

/// A list of strings as Go's `%q` writes it.
pub(crate) fn quote_list<T: AsRef<str>>(texts: &[T]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

fn escape(quoted: &mut String, character: char) {
    let code = u32::from(character);
    // Writing to a string cannot fail.
    let _ = match code {
        0..0x20 | 0x7f => write!(quoted, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
        _ => write!(quoted, "\\U{code:08x}"),
    };
}

/// Whether Go counts a character as printable: letters, marks, numbers, punctuation, symbols and the plain space.
pub(crate) fn is_print(character: char) -> bool {
    match character {
        ' '..='~' => true,
        '\0'..='\u{a0}' | '\u{ad}' => false,
        // Space separators, line separators, format characters, surrogates, private use and non-characters.
        '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{1680}' => {
            false
        }
        '\u{180e}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{3000}' => false,
        '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}' => false,
        '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => false,
        '\u{e0000}'..='\u{e0fff}' => matches!(character, '\u{e0100}'..='\u{e01ef}'),
        '\u{f0000}'..='\u{10ffff}' => false,
        _ => true,
    }
}

/// A value as Go's `%v` writes it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => self::number(number),
        Value::Bool(value) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}:{}", plain(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
    }
}

/// A value as Go's `%s` writes it: what is no text is shown with its type.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(as_text).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}:{}", as_text(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
        scalar => format!("%!s({}={})", type_name(scalar), plain(scalar)),
    }
}

/// A value as Go's `%#v` writes it: as source text.
pub(crate) fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}:{}", quote(name), source(value)));
            format!("map[string]interface {{}}{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        other => plain(other),
    }
}

/// What Go calls the type of a value that was read without knowing its type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A number as Go writes it: with an exponent when it is very large or very small.
fn number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e6).contains(&size) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{float}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_go_does() {
        let value = json!({"b": [1, "x", null, true], "a": {"c": 1.5}});
        assert_eq!(plain(&value), "map[a:map[c:1.5] b:[1 x <nil> true]]");
        assert_eq!(
            source(&value),
            r#"map[string]interface {}{"a":map[string]interface {}{"c":1.5}, "b":[]interface {}{1, "x", interface {}(nil), true}}"#
        );
        for (number, text) in [
            (json!(1e21), "1e+21"),
            (json!(1.5e-7), "1.5e-07"),
            (json!(1e6), "1e+06"),
            (json!(123456.5), "123456.5"),
            (json!(0.0), "0"),
        ] {
            assert_eq!(plain(&number), text);
        }
    }

    #[test]
    fn strings_are_quoted_as_go_does() {
        for (text, quoted) in [
            ("a\"b\\", r#""a\"b\\""#),
            ("a\tb\0", r#""a\tb\x00""#),
            ("é\u{a0}\u{200b}\u{7f}", "\"é\\u00a0\\u200b\\x7f\""),
            ("\u{f0000}", "\"\\U000f0000\""),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }
}
