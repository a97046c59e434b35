//! Go's formatted printing for the values that a template can make.

mod buffer;
mod float;
mod format;
mod integer;
mod spec;
mod text;

use crate::value::{Data, Value};
pub(crate) use buffer::{Buffer, TooLong};
pub(crate) use format::{printf, steps};
use spec::Spec;

/// The values one after the other, with a blank between two when neither is a string.
pub(crate) fn print(values: &[Value<'_>], limit: usize) -> Result<Vec<u8>, TooLong> {
    let mut printer = Printer::new(limit);
    let mut after_string = true;
    for value in values {
        if printer.out.overflowed() {
            break;
        }
        let is_string = matches!(value, Value::Str(_));
        if !is_string && !after_string {
            printer.out.push(b' ');
        }
        printer.value(value, 'v');
        after_string = is_string;
    }
    printer.out.finish()
}

/// The values with blanks between them and a newline behind them.
pub(crate) fn println(values: &[Value<'_>], limit: usize) -> Result<Vec<u8>, TooLong> {
    let mut printer = Printer::new(limit);
    for (i, value) in values.iter().enumerate() {
        if printer.out.overflowed() {
            break;
        }
        if i > 0 {
            printer.out.push(b' ');
        }
        printer.value(value, 'v');
    }
    printer.out.push(b'\n');
    printer.out.finish()
}

/// Writes values by the verb and flags of the moment.
struct Printer {
    out: Buffer,
    spec: Spec,
}

impl Printer {
    fn new(limit: usize) -> Self {
        Self { out: Buffer::new(limit), spec: Spec::default() }
    }

    fn value(&mut self, value: &Value<'_>, verb: char) {
        match value {
            Value::Nil if matches!(verb, 'T' | 'v') => self.pad(b"<nil>"),
            _ if verb == 'T' => self.string(value.type_name().as_bytes(), 's', value),
            Value::Nil => self.bad_verb(verb, value),
            Value::Bool(true) if matches!(verb, 't' | 'v') => self.pad(b"true"),
            Value::Bool(false) if matches!(verb, 't' | 'v') => self.pad(b"false"),
            Value::Bool(_) => self.bad_verb(verb, value),
            Value::Int(number) => self.integer(number.unsigned_abs(), *number < 0, verb, value),
            Value::Byte(number) => self.integer(u64::from(*number), false, verb, value),
            Value::Float(number) => self.float(*number, verb, value),
            Value::Complex(real, imaginary) => self.complex(*real, *imaginary, verb, value),
            Value::Str(text) => self.string(text, verb, value),
            Value::Map(_) if verb == 'p' => self.pad(b"0x0"),
            Value::Map(_) if verb == 'w' => self.bad_verb(verb, value),
            Value::Map(data) => self.map(data, verb),
        }
    }

    fn map(&mut self, data: &Data, verb: char) {
        let (open, separator, close) =
            if self.spec.go_syntax { ("map[string]string{", ", ", b'}') } else { ("map[", " ", b']') };
        self.out.push_str(open);
        for (i, (key, element)) in data.iter().enumerate() {
            if self.out.overflowed() {
                return;
            }
            if i > 0 {
                self.out.push_str(separator);
            }
            self.value(&Value::borrowed(key.as_bytes()), verb);
            self.out.push(b':');
            self.value(&Value::borrowed(element), verb);
        }
        self.out.push(close);
    }

    /// A verb that does not fit the value: both are shown, the value with the flags of the verb.
    fn bad_verb(&mut self, verb: char, value: &Value<'_>) {
        self.out.push_str("%!");
        self.out.push_char(verb);
        self.out.push(b'(');
        self.typed(value);
        self.out.push(b')');
    }

    /// A value behind the name of its type.
    fn typed(&mut self, value: &Value<'_>) {
        self.out.push_str(value.type_name());
        if !matches!(value, Value::Nil) {
            self.out.push(b'=');
            self.value(value, 'v');
        }
    }
}
