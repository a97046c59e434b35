//! Reads of an object by pointer, and the ways in which tables write times, labels and selectors.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// An object, or a part of one, at a time.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    object: &'a Value,
    now: i64,
}

impl<'a> View<'a> {
    pub(super) fn new(object: &'a Value, now: i64) -> Self {
        Self { object, now }
    }

    /// The part at a pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer).filter(|value| !value.is_null())
    }

    /// The text at a pointer, empty where there is none.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text at a pointer, or another where there is none.
    pub(super) fn text_or(&self, pointer: &str, other: &'a str) -> &'a str {
        let text = self.text(pointer);
        if text.is_empty() { other } else { text }
    }

    /// The number at a pointer, 0 where there is none.
    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    /// The truth at a pointer, or another where there is none.
    pub(super) fn truth_or(&self, pointer: &str, other: bool) -> bool {
        self.at(pointer).and_then(Value::as_bool).unwrap_or(other)
    }

    /// The items of a list.
    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The items of a list, each as a view.
    pub(super) fn views(
        &self,
        pointer: &str,
    ) -> impl DoubleEndedIterator<Item = View<'a>> + ExactSizeIterator + use<'a> {
        let now = self.now;
        self.list(pointer).iter().map(move |object| View { object, now })
    }

    /// The texts of a list.
    pub(super) fn texts(&self, pointer: &str) -> Vec<&'a str> {
        self.list(pointer).iter().filter_map(Value::as_str).collect()
    }

    /// A value that is a number or text, as text.
    pub(super) fn plain(&self, pointer: &str) -> Option<String> {
        self.at(pointer).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// The name of the object.
    pub(super) fn name(&self) -> Value {
        self.text("/metadata/name").into()
    }

    /// The age of the object.
    pub(super) fn age(&self) -> Value {
        self.since("/metadata/creationTimestamp").into()
    }

    /// How long ago the time at a pointer was.
    pub(super) fn since(&self, pointer: &str) -> String {
        match self.seconds(pointer) {
            Some(then) => human(self.now - then),
            None => "<unknown>".to_owned(),
        }
    }

    /// The seconds since the time at a pointer.
    pub(super) fn elapsed(&self, pointer: &str) -> i64 {
        self.seconds(pointer).map_or(0, |then| self.now - then)
    }

    /// How long the time from one pointer to another, or to now, was.
    pub(super) fn between(&self, from: &str, to: &str) -> String {
        match self.seconds(from) {
            Some(start) => human(self.seconds(to).unwrap_or(self.now) - start),
            None => String::new(),
        }
    }

    /// The time at a pointer, in seconds since 1970.
    pub(super) fn seconds(&self, pointer: &str) -> Option<i64> {
        crate::schema::unix_seconds(self.text(pointer))
    }

    /// Names and images of the containers of a pod or template.
    pub(super) fn containers(&self, pointer: &str) -> [Value; 2] {
        let joined = |field: &str| {
            let all: Vec<&str> = self.views(pointer).map(|container| container.text(field)).collect();
            all.join(",")
        };
        [joined("/name").into(), joined("/image").into()]
    }

    /// Labels as `k=v,k=v`.
    pub(super) fn labels(&self, pointer: &str) -> String {
        let labels = self.at(pointer).and_then(Value::as_object).map(pairs).unwrap_or_default();
        if labels.is_empty() { "<none>".to_owned() } else { labels.join(",") }
    }

    /// A label selector in the form of queries.
    pub(super) fn selector(&self, pointer: &str) -> String {
        let mut parts: Vec<(String, String)> = Vec::new();
        let within = |below: &str| format!("{pointer}{below}");
        if let Some(labels) = self.at(&within("/matchLabels")).and_then(Value::as_object) {
            parts.extend(labels.keys().cloned().zip(pairs(labels)));
        }
        for expression in self.views(&within("/matchExpressions")) {
            let key = expression.text("/key");
            let values: BTreeSet<&str> = expression.texts("/values").into_iter().collect();
            let values = values.into_iter().collect::<Vec<_>>().join(",");
            let text = match expression.text("/operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            };
            parts.push((key.to_owned(), text));
        }
        parts.sort_by(|left, right| left.0.cmp(&right.0));
        parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
    }

    /// A label selector, with a word for one that is empty.
    pub(super) fn selector_or_none(&self, pointer: &str) -> String {
        let selector = self.selector(pointer);
        if selector.is_empty() { "<none>".to_owned() } else { selector }
    }

    /// The status of a condition.
    pub(super) fn condition(&self, pointer: &str, kind: &str) -> Option<View<'a>> {
        self.views(pointer).find(|condition| condition.text("/type") == kind)
    }
}

fn pairs(labels: &Map<String, Value>) -> Vec<String> {
    labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect()
}

/// A duration in at most two units, coarser as it grows.
pub(super) fn human(seconds: i64) -> String {
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// The first three of a list, and how many more there are.
pub(super) fn first_three(all: &[String]) -> String {
    if all.is_empty() {
        return "<unset>".to_owned();
    }
    let shown = all[..all.len().min(3)].join(",");
    if all.len() > 3 { format!("{shown} + {} more...", all.len() - 3) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_grow_coarser() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (47 * 3600, "47h"),
            (49 * 3600, "2d1h"),
            (9 * 86_400, "9d"),
            (731 * 86_400, "2y1d"),
            (9 * 365 * 86_400, "9y"),
        ] {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn selectors_are_written_as_queries() {
        let object = serde_json::json!({ "s": {
            "matchLabels": { "b": "1" },
            "matchExpressions": [{ "key": "a", "operator": "In", "values": ["y", "x"] }, { "key": "c", "operator": "DoesNotExist" }],
        } });
        assert_eq!(View::new(&object, 0).selector("/s"), "a in (x,y),b=1,!c");
    }
}
