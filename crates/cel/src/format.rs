//! `'%s is %d'.format([name, age])`: texts with places for values.

use crate::{EvalError, library::convert, types::Type, value::Value, work::Work};

/// What is wrong with a text and its arguments.
#[derive(Debug)]
pub(crate) struct FormatError {
    pub(crate) message: String,
    /// The argument that does not fit.
    pub(crate) argument: Option<usize>,
}

/// A place for a value.
struct Clause {
    mark: char,
    precision: Option<usize>,
}

/// Goes through a text: plain parts and places in order.
fn walk(
    text: &str,
    count: usize,
    mut plain: impl FnMut(&str),
    mut place: impl FnMut(usize, Clause) -> Result<(), FormatError>,
) -> Result<usize, FormatError> {
    let wrong = |message: String| FormatError { message, argument: None };
    let mut rest = text;
    let mut used = 0;
    while let Some(at) = rest.find('%') {
        plain(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            plain("%");
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err(wrong("unexpected end of string".to_owned()));
        }
        if used >= count {
            return Err(wrong(format!("index {used} out of range")));
        }
        let parse_error = |reason: String| wrong(format!("could not parse formatting clause: {reason}"));
        let mut precision = None;
        if let Some(after) = rest.strip_prefix('.') {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            if digits == after.len() {
                let reason = "error while parsing precision: could not find end of precision specifier";
                return Err(parse_error(reason.to_owned()));
            }
            let number = after[..digits].parse().map_err(|_| {
                let digits = &after[..digits];
                parse_error(format!(
                    "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
                     {digits:?}: invalid syntax"
                ))
            })?;
            precision = Some(number);
            rest = &after[digits..];
        }
        let Some(mark) = rest.chars().next() else { return Err(wrong("unexpected end of string".to_owned())) };
        if !"sdfebxXo".contains(mark) {
            return Err(parse_error(format!("unrecognized formatting clause \"{mark}\"")));
        }
        place(used, Clause { mark, precision })?;
        used += 1;
        rest = &rest[mark.len_utf8()..];
    }
    plain(rest);
    Ok(used)
}

/// Why a value of a type cannot stand at a place.
fn refusal(mark: char, name: &str) -> String {
    let what = match mark {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        _ => "only integers, byte buffers, and strings can be formatted as hex",
    };
    format!("error during formatting: {what}, was given {name}")
}

/// Checks a text against the types of its arguments.
pub(crate) fn check(text: &str, args: &[Type]) -> Result<(), FormatError> {
    let fits = |mark: char, of: &Type| match mark {
        _ if of.is_dyn() => true,
        's' => !matches!(of, Type::Optional(_) | Type::Opaque(_) | Type::Struct(_)),
        'd' | 'o' => matches!(of, Type::Int | Type::Uint),
        'f' | 'e' => matches!(of, Type::Double | Type::String),
        'b' => matches!(of, Type::Int | Type::Uint | Type::Bool),
        _ => matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
    };
    let used = walk(
        text,
        args.len(),
        |_| {},
        |at, clause| match fits(clause.mark, &args[at]) {
            true => Ok(()),
            false => Err(FormatError { message: refusal(clause.mark, &args[at].to_string()), argument: Some(at) }),
        },
    )?;
    if used < args.len() {
        let given = args.len();
        let message = format!("too many arguments supplied to string.format (expected {used}, got {given})");
        return Err(FormatError { message, argument: None });
    }
    Ok(())
}

/// Puts values into a text.
pub(crate) fn run(text: &str, args: &[Value<'_>], work: &Work) -> Result<String, EvalError> {
    let out = std::cell::RefCell::new(String::new());
    let mut ended = None;
    let used = walk(
        text,
        args.len(),
        |part| out.borrow_mut().push_str(part),
        |at, clause| {
            let value = &args[at];
            let failed = |message| Err(FormatError { message, argument: None });
            match write(value, &clause, work) {
                Ok(Some(text)) => {
                    out.borrow_mut().push_str(&text);
                    Ok(())
                }
                Ok(None) => failed(refusal(clause.mark, &value.type_name())),
                Err(error) => failed(ended.insert(error).to_string()),
            }
        },
    );
    match (used, ended) {
        (_, Some(error)) => Err(error),
        (Ok(_), None) => Ok(out.into_inner()),
        (Err(error), None) => Err(EvalError::new(error.message)),
    }
}

/// A value at its place; nothing if it cannot stand there.
fn write(value: &Value<'_>, clause: &Clause, work: &Work) -> Result<Option<String>, EvalError> {
    let precision = clause.precision.unwrap_or(6);
    match value {
        value if clause.mark == 's' => return show(value, false, work),
        Value::String(text) => work.make(text.as_ref().len())?,
        Value::Bytes(bytes) => work.make(bytes.len())?,
        Value::Double(_) => work.make(precision)?,
        _ => {}
    }
    Ok(plain(value, clause.mark, precision))
}

fn plain(value: &Value<'_>, mark: char, precision: usize) -> Option<String> {
    match (mark, value) {
        ('d', Value::Int(value)) => Some(value.to_string()),
        ('d', Value::Uint(value)) => Some(value.to_string()),
        ('f', value) => Some(
            special(as_double(value)?)
                .unwrap_or_else(|| grouped(&fixed(as_double(value).unwrap_or_default(), precision))),
        ),
        ('e', value) => Some(
            special(as_double(value)?).unwrap_or_else(|| scientific(as_double(value).unwrap_or_default(), precision)),
        ),
        ('b', Value::Int(value)) => Some(signed(*value, |magnitude| format!("{magnitude:b}"))),
        ('b', Value::Uint(value)) => Some(format!("{value:b}")),
        ('b', Value::Bool(value)) => Some(u8::from(*value).to_string()),
        ('o', Value::Int(value)) => Some(signed(*value, |magnitude| format!("{magnitude:o}"))),
        ('o', Value::Uint(value)) => Some(format!("{value:o}")),
        (mark @ ('x' | 'X'), value) => {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let text = match value {
                Value::Int(value) => signed(*value, |magnitude| format!("{magnitude:x}")),
                Value::Uint(value) => format!("{value:x}"),
                Value::String(text) => hex(text.as_ref().as_bytes()),
                Value::Bytes(bytes) => hex(bytes),
                _ => return None,
            };
            Some(if mark == 'X' { text.to_uppercase() } else { text })
        }
        _ => None,
    }
}

fn signed(value: i64, write: fn(u64) -> String) -> String {
    format!("{}{}", if value < 0 { "-" } else { "" }, write(value.unsigned_abs()))
}

fn as_double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match text.as_ref() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    value.is_infinite().then(|| if value > 0.0 { "\u{221e}" } else { "-\u{221e}" }.to_owned())
}

/// No double has more digits than these after the point; the formatter takes no larger precision than its sixteen bits.
const MAX_DIGITS: usize = 1100;

fn fixed(value: f64, precision: usize) -> String {
    let digits = precision.min(MAX_DIGITS);
    format!("{value:.digits$}") + &"0".repeat(precision - digits)
}

/// Thousands are set apart, as the reference implementation does for English.
fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |number| ("-", number));
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
    format!("{sign}{out}{fraction}")
}

/// A number with a power of ten, as English typesets it.
fn scientific(value: f64, precision: usize) -> String {
    let digits = precision.min(MAX_DIGITS);
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(precision - digits);
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("-", digits));
    let raised: String = format!("{sign}{digits:0>2}")
        .chars()
        .map(|c| match c {
            '-' => '\u{207b}',
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
        })
        .collect();
    format!("{mantissa}{zeros}\u{202f}\u{d7}\u{202f}10{raised}")
}

/// A value for people; inside of lists and maps as an expression would write it.
fn show(value: &Value<'_>, nested: bool, work: &Work) -> Result<Option<String>, EvalError> {
    work.spend(2)?;
    match value {
        Value::List(list) => {
            let mut out = String::from("[");
            for (number, value) in list.iter().enumerate() {
                let Ok(value) = value else { return Ok(None) };
                let Some(part) = show(&value, true, work)? else { return Ok(None) };
                work.make(part.len())?;
                out.push_str(if number > 0 { ", " } else { "" });
                out.push_str(&part);
            }
            out.push(']');
            Ok(Some(out))
        }
        Value::Map(map) => {
            let mut parts = Vec::with_capacity(map.len());
            for key in map.keys() {
                let Some(value) = map.get(&key).ok().flatten() else { return Ok(None) };
                let (Some(key), Some(value)) = (show(&key, true, work)?, show(&value, true, work)?) else {
                    return Ok(None);
                };
                work.make(key.len() + value.len())?;
                parts.push(format!("{key}:{value}"));
            }
            parts.sort();
            Ok(Some(format!("{{{}}}", parts.join(", "))))
        }
        single => {
            match single {
                Value::String(text) => work.make(text.as_ref().len())?,
                Value::Bytes(bytes) => work.make(bytes.len())?,
                _ => {}
            }
            Ok(show_single(single, nested))
        }
    }
}

fn show_single(value: &Value<'_>, nested: bool) -> Option<String> {
    Some(match value {
        Value::Null => "null".to_owned(),
        Value::Type(name) => name.to_string(),
        Value::String(text) if nested => quote(text.as_ref()),
        Value::Bytes(bytes) if nested => format!("b{}", quote(&String::from_utf8_lossy(bytes))),
        Value::Timestamp(_) if nested => format!("timestamp({})", quote(&convert::to_text(value)?.ok()?)),
        Value::Duration(_) if nested => format!("duration({})", quote(&convert::to_text(value)?.ok()?)),
        Value::Double(number) if nested && number.is_finite() => format!("{number:.6}"),
        Value::Double(number) if nested => quote(&convert::double_text(*number)),
        Value::Ip(_) | Value::Cidr(_) => return None,
        other => convert::to_text(other)?.ok()?,
    })
}

/// A text in double quotes with escapes.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
