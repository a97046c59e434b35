//! One status out of those that several clusters report of an object.

use serde_json::{Map, Value, json};

/// What becomes of the status of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    /// Nobody asked for anything: it is left alone.
    Untouched,
    /// It becomes this. Nothing at all when there is not yet anything to say, or nothing can be said.
    Status(Value),
}

/// What the policies that send an object ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The state of the one cluster that has it.
    pub singleton: bool,
    /// One state out of those of all clusters.
    pub aggregated: bool,
}

/// What an object's status becomes. `states` has an entry for each cluster that should have the object, in order.
///
/// With several clusters aggregation wins; with one, either wish is the wish for its state.
pub fn returned(kind: &str, wanted: Wanted, states: &[Option<&Value>]) -> Returned {
    match (wanted, states) {
        (Wanted { singleton: false, aggregated: false }, _) => Returned::Untouched,
        (_, [one]) => Returned::Status(one.cloned().unwrap_or_else(|| json!({}))),
        (Wanted { aggregated: true, .. }, [_, _, ..]) => Returned::Status(aggregate(kind, states)),
        _ => Returned::Status(json!({})),
    }
}

/// Counts whose absence means zero, by what several of them become.
struct Counts {
    least: &'static [&'static str],
    most: &'static [&'static str],
}

fn counts(kind: &str) -> Option<Counts> {
    let (least, most): (&[_], &[_]) = match kind {
        "Deployment" => (
            &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
            &["unavailableReplicas"],
        ),
        "ReplicaSet" => {
            (&["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"], &[])
        }
        "StatefulSet" => (
            &[
                "replicas",
                "currentReplicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
            ],
            &[],
        ),
        "DaemonSet" => (
            &[
                "currentNumberScheduled",
                "desiredNumberScheduled",
                "updatedNumberScheduled",
                "numberReady",
                "numberAvailable",
                "observedGeneration",
            ],
            &["numberMisscheduled", "numberUnavailable"],
        ),
        "Job" => (&["active", "succeeded", "failed"], &[]),
        _ => return None,
    };
    Some(Counts { least, most })
}

fn aggregate(kind: &str, states: &[Option<&Value>]) -> Value {
    let mut status = match counts(kind) {
        Some(counts) => counted(&counts, states),
        None if states.iter().all(Option::is_some) => {
            let known: Vec<&Value> = states.iter().flatten().copied().collect();
            match common(&known) {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            }
        }
        None => Map::new(),
    };
    status.remove("conditions");
    let conditions = conditions(states);
    if !conditions.is_empty() {
        status.insert("conditions".into(), Value::Array(conditions));
    }
    Value::Object(status)
}

/// A cluster that reported nothing yet has none of what is counted.
fn counted(counts: &Counts, states: &[Option<&Value>]) -> Map<String, Value> {
    let mut status = Map::new();
    let mut insert = |names: &[&str], choose: fn(i64, i64) -> i64| {
        for &name in names {
            let values = states.iter().map(|state| state.and_then(|state| state.get(name)).and_then(Value::as_i64));
            if values.clone().any(|value| value.is_some())
                && let Some(value) = values.map(Option::unwrap_or_default).reduce(choose)
            {
                status.insert(name.into(), value.into());
            }
        }
    };
    insert(counts.least, i64::min);
    insert(counts.most, i64::max);
    status
}

/// What several values have in common: the least number, `true` only if all are, the fields that all have. Nothing when their
/// shapes differ, or texts do.
fn common(values: &[&Value]) -> Option<Value> {
    let (first, rest) = values.split_first()?;
    match first {
        Value::Number(_) => {
            let whole: Option<Vec<i64>> = values.iter().map(|value| value.as_i64()).collect();
            match whole {
                Some(whole) => whole.into_iter().min().map(Value::from),
                None => {
                    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.as_f64()).collect();
                    numbers?.into_iter().reduce(f64::min).map(Value::from)
                }
            }
        }
        Value::Bool(_) => {
            let flags: Option<Vec<bool>> = values.iter().map(|value| value.as_bool()).collect();
            Some(flags?.into_iter().all(|flag| flag).into())
        }
        Value::Object(fields) => {
            let others: Vec<&Map<String, Value>> = rest.iter().map(|value| value.as_object()).collect::<Option<_>>()?;
            let field = |(name, value): (&String, &Value)| {
                let mut all = vec![value];
                for other in &others {
                    all.push(other.get(name)?);
                }
                Some((name.clone(), common(&all)?))
            };
            Some(Value::Object(fields.iter().filter_map(field).collect()))
        }
        Value::Array(items) => {
            let others: Vec<&Vec<Value>> = rest.iter().map(|value| value.as_array()).collect::<Option<_>>()?;
            if others.iter().any(|other| other.len() != items.len()) {
                return None;
            }
            let item = |(at, value): (usize, &Value)| {
                let all: Vec<&Value> = std::iter::once(value).chain(others.iter().map(|other| &other[at])).collect();
                common(&all)
            };
            items.iter().enumerate().map(item).collect::<Option<Vec<_>>>().map(Value::Array)
        }
        Value::String(_) | Value::Null => rest.iter().all(|value| value == first).then(|| (*first).clone()),
    }
}

/// The conditions of all clusters, one for each type, in the order in which types are met.
fn conditions(states: &[Option<&Value>]) -> Vec<Value> {
    let all_reported = states.iter().all(Option::is_some);
    let mut types: Vec<(&str, Vec<&Value>)> = Vec::new();
    for state in states.iter().flatten() {
        for condition in state.get("conditions").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = condition.get("type").and_then(Value::as_str) else { continue };
            match types.iter_mut().find(|(known, _)| *known == name) {
                Some((_, found)) => found.push(condition),
                None => types.push((name, vec![condition])),
            }
        }
    }
    types.iter().map(|(_, found)| condition(found, all_reported)).collect()
}

/// `False` if any is, `True` if all are, otherwise `Unknown`. What it says comes from the latest that says so too.
fn condition(found: &[&Value], all_reported: bool) -> Value {
    let status = |condition: &Value| condition.get("status").and_then(Value::as_str).unwrap_or("Unknown").to_owned();
    let time = |condition: &Value| condition.get("lastTransitionTime").and_then(Value::as_str).unwrap_or("").to_owned();
    let truth = if found.iter().any(|condition| status(condition) == "False") {
        "False"
    } else if all_reported && found.iter().all(|condition| status(condition) == "True") {
        "True"
    } else {
        "Unknown"
    };
    // Times are RFC 3339 in UTC, which order as texts do. Of equally late ones the first counts.
    let latest = |of: &mut dyn Iterator<Item = &&Value>| {
        of.fold(None, |best: Option<&Value>, &condition| match best {
            Some(best) if time(condition) <= time(best) => Some(best),
            _ => Some(condition),
        })
        .cloned()
    };
    let speaker = latest(&mut found.iter().filter(|condition| status(condition) == truth));
    let mut result = speaker.or_else(|| latest(&mut found.iter())).unwrap_or_else(|| json!({}));
    result["status"] = truth.into();
    if let Some(last) = found.iter().map(|condition| time(condition)).max().filter(|time| !time.is_empty()) {
        result["lastTransitionTime"] = last.into();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Wanted = Wanted { singleton: true, aggregated: true };
    const SINGLETON: Wanted = Wanted { singleton: true, aggregated: false };
    const AGGREGATED: Wanted = Wanted { singleton: false, aggregated: true };

    fn check(kind: &str, states: &[Value], expected: Value) {
        let states: Vec<Option<&Value>> =
            states.iter().map(|state| Some(state).filter(|state| !state.is_null())).collect();
        assert_eq!(returned(kind, AGGREGATED, &states), Returned::Status(expected));
    }

    #[test]
    fn who_asks_gets_the_state_of_one_or_of_all() {
        let (a, b) = (json!({"replicas": 1}), json!({"replicas": 2}));
        let (one, two) = ([Some(&a)], [Some(&a), Some(&b)]);
        let least = Returned::Status(json!({"replicas": 1}));
        for (wanted, states, expected) in [
            (Wanted::default(), &one[..], Returned::Untouched),
            (Wanted::default(), &two[..], Returned::Untouched),
            (SINGLETON, &one[..], Returned::Status(a.clone())),
            (SINGLETON, &two[..], Returned::Status(json!({}))),
            (SINGLETON, &[][..], Returned::Status(json!({}))),
            (SINGLETON, &[None][..], Returned::Status(json!({}))),
            (AGGREGATED, &one[..], Returned::Status(a.clone())),
            (AGGREGATED, &two[..], least.clone()),
            (BOTH, &one[..], Returned::Status(a.clone())),
            (BOTH, &two[..], least),
        ] {
            assert_eq!(returned("Deployment", wanted, states), expected, "{wanted:?} {states:?}");
        }
    }

    #[test]
    fn counts_of_workloads() {
        check(
            "Deployment",
            &[json!({"replicas": 3, "readyReplicas": 3}), json!({"replicas": 3, "unavailableReplicas": 3})],
            json!({"replicas": 3, "readyReplicas": 0, "unavailableReplicas": 3}),
        );
        check("Deployment", &[json!({"replicas": 3}), Value::Null], json!({"replicas": 0}));
        check(
            "DaemonSet",
            &[json!({"numberReady": 2, "numberMisscheduled": 0}), json!({"numberReady": 1, "numberMisscheduled": 1})],
            json!({"numberReady": 1, "numberMisscheduled": 1}),
        );
        check("Job", &[json!({"succeeded": 1}), json!({"failed": 1})], json!({"succeeded": 0, "failed": 0}));
    }

    #[test]
    fn states_of_other_kinds_are_what_they_have_in_common() {
        check(
            "Thing",
            &[
                json!({"n": 2, "x": 1.5, "ok": true, "phase": "Up", "host": "a", "deep": {"n": 1, "only": 1}, "list": [1, 2], "other": [1]}),
                json!({"n": 1, "x": 2, "ok": false, "phase": "Up", "host": "b", "deep": {"n": 3}, "list": [3, 1], "other": []}),
            ],
            json!({"n": 1, "x": 1.5, "ok": false, "phase": "Up", "deep": {"n": 1}, "list": [1, 1]}),
        );
        check("Thing", &[json!({"n": 2}), Value::Null], json!({}));
    }

    #[test]
    fn one_condition_of_each_type() {
        let condition = |status: &str, time: &str, reason: &str| json!({"type": "Available", "status": status, "lastTransitionTime": time, "reason": reason});
        let state = |condition: Value| json!({"conditions": [condition]});
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        for (a, b, expected) in [
            (condition("True", early, "A"), condition("True", late, "B"), condition("True", late, "B")),
            (condition("False", early, "A"), condition("True", late, "B"), condition("False", late, "A")),
            (condition("Unknown", early, "A"), condition("True", late, "B"), condition("Unknown", late, "A")),
            (condition("Unknown", early, "A"), condition("Unknown", early, "B"), condition("Unknown", early, "A")),
        ] {
            check("Deployment", &[state(a), state(b)], state(expected));
        }
        let unheard = [state(condition("True", early, "A")), Value::Null];
        check("Deployment", &unheard, state(condition("Unknown", early, "A")));
    }
}
