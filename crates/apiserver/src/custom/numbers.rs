//! How numbers of custom resources are written.

use serde_json::{Number, Value};

/// From here on numbers are written with an exponent.
const LARGE: f64 = 1e21;

/// Writes numbers as Kubernetes writes them: those that are whole without a fraction, whatever they were written like.
pub(crate) fn write_plainly(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_plainly),
        Value::Object(fields) => fields.values_mut().for_each(write_plainly),
        _ => {}
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is compared is whole and small enough")]
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < LARGE)?;
    match float as i128 {
        0 => Some(0.into()),
        whole => i64::try_from(whole).ok().map(Number::from).or_else(|| u64::try_from(whole).ok().map(Number::from)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        let mut value = json!({"a": [1.0, 1e3, 1.5, -0.0], "b": 1e30, "c": 5});
        write_plainly(&mut value);
        assert_eq!(value.to_string(), r#"{"a":[1,1000,1.5,0],"b":1e+30,"c":5}"#);
    }
}
