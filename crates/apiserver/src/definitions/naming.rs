//! Which names a definition gets beside the others of its group, and the conditions that tell of it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The names that other definitions of a group have.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Plurals, singulars and short names.
    resources: BTreeSet<String>,
    /// Kinds and kinds of lists.
    kinds: BTreeSet<String>,
}

/// What a definition is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// `status.acceptedNames`.
    pub(super) names: Value,
    /// `status.conditions`.
    pub(super) conditions: Value,
}

impl Taken {
    /// Adds the names another definition has been given.
    pub(super) fn add(&mut self, names: &Value) {
        let text = |field: &str| names[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.resources.extend(["plural", "singular"].into_iter().filter_map(text));
        self.resources.extend(short_names(names).map(str::to_owned));
        self.kinds.extend(["kind", "listKind"].into_iter().filter_map(text));
    }
}

fn short_names(names: &Value) -> impl Iterator<Item = &str> {
    names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Gives a definition the names it asks for as far as nobody has them, and says whether it has all. A definition that once
/// had all its names stays established.
pub(super) fn settle(definition: &Value, taken: &Taken, now: &str) -> Outcome {
    let asked = &definition["spec"]["names"];
    let had = &definition["status"]["acceptedNames"];
    let mut names = had.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    let free = |name: &str, others: &BTreeSet<String>| match others.contains(name) {
        true => Err(format!("{} is already in use", crate::gotext::quote(name))),
        false => Ok(()),
    };
    let mut settle_one =
        |field: &str, reason: &'static str, others: &BTreeSet<String>, names: &mut Map<String, Value>| {
            let text = |names: &Value| names[field].as_str().unwrap_or_default().to_owned();
            let (wanted, held) = (text(asked), text(had));
            match free(&wanted, others) {
                Err(message) if wanted != held => conflict = Some((reason, message)),
                _ => set(names, field, asked.get(field)),
            }
        };
    settle_one("plural", "PluralConflict", &taken.resources, &mut names);
    settle_one("singular", "SingularConflict", &taken.resources, &mut names);
    let held: BTreeSet<&str> = short_names(had).collect();
    let new = short_names(asked).filter(|name| !held.contains(name));
    let problems: Vec<String> = new.filter_map(|name| free(name, &taken.resources).err()).collect();
    let short = match problems.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    };
    if short.is_none() {
        set(&mut names, "shortNames", asked.get("shortNames"));
    }
    settle_one("kind", "KindConflict", &taken.kinds, &mut names);
    settle_one("listKind", "ListKindConflict", &taken.kinds, &mut names);
    // Of several conflicts the last is told, in the order of the fields.
    let conflict = match (conflict, short) {
        (Some(kinds @ ("KindConflict" | "ListKindConflict", _)), _) => Some(kinds),
        (_, Some(message)) => Some(("ShortNamesConflict", message)),
        (conflict, None) => conflict,
    };
    set(&mut names, "categories", asked.get("categories"));
    let mut conditions = Conditions::of(definition, now);
    match &conflict {
        Some((reason, message)) => conditions.set("NamesAccepted", "False", reason, message),
        None => conditions.set("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    }
    if conflict.is_none() {
        conditions.keep_or_set("Established", "True", "InitialNamesAccepted", "the initial names have been accepted");
    } else if conditions.find("Established").is_none() {
        conditions.set("Established", "False", "NotAccepted", "not all names are accepted");
    }
    approval(definition, &mut conditions);
    Outcome { names: Value::Object(names), conditions: conditions.list.into() }
}

/// Whether a definition has all the names it asks for, and says so.
pub(super) fn is_settled(definition: &Value) -> bool {
    let outcome = settle(definition, &Taken::default(), "");
    let status = &definition["status"];
    outcome.names == status["acceptedNames"] && outcome.conditions == status["conditions"]
}

fn set(names: &mut Map<String, Value>, field: &str, value: Option<&Value>) {
    match value.filter(|value| !value.is_null()) {
        Some(value) => names.insert(field.to_owned(), value.clone()),
        None => names.remove(field),
    };
}

/// Groups that belong to Kubernetes must say where their definitions were approved.
fn approval(definition: &Value, conditions: &mut Conditions<'_>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let protected = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    if !["k8s.io", "kubernetes.io"].into_iter().any(protected) {
        return;
    }
    let noted = definition["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
    let is_address = noted
        .split_once("://")
        .is_some_and(|(scheme, host)| !scheme.is_empty() && !host.trim_start_matches('/').is_empty());
    let (status, reason, message) = match noted {
        "" => (
            "False",
            "MissingAnnotation",
            format!("protected groups must have approval annotation {ANNOTATION:?}, {SEE}"),
        ),
        _ if noted.starts_with("unapproved") => {
            ("False", "UnapprovedAnnotation", format!("not approved: {}", crate::gotext::quote(noted)))
        }
        _ if is_address => ("True", "ApprovedAnnotation", format!("approved in {noted}")),
        _ => (
            "False",
            "InvalidAnnotation",
            format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", {SEE}"
            ),
        ),
    };
    conditions.set("KubernetesAPIApprovalPolicyConformant", status, reason, &message);
}

/// The conditions of a definition while they are changed.
pub(super) struct Conditions<'a> {
    pub(super) list: Vec<Value>,
    now: &'a str,
}

impl<'a> Conditions<'a> {
    pub(super) fn of(definition: &Value, now: &'a str) -> Self {
        let list = definition.pointer("/status/conditions").and_then(Value::as_array).cloned();
        Self { list: list.unwrap_or_default(), now }
    }

    fn find(&self, kind: &str) -> Option<&Value> {
        self.list.iter().find(|condition| condition["type"] == kind)
    }

    /// Sets a condition; its time is that of the last change of its status.
    pub(super) fn set(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let same = self.find(kind).filter(|condition| condition["status"] == status);
        let since = same.and_then(|condition| condition["lastTransitionTime"].as_str()).unwrap_or(self.now);
        let condition =
            json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message});
        match self.list.iter_mut().find(|condition| condition["type"] == kind) {
            Some(known) => *known = condition,
            None => self.list.push(condition),
        }
    }

    /// Sets a condition that does not have this status yet.
    fn keep_or_set(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        if self.find(kind).is_none_or(|condition| condition["status"] != status) {
            self.set(kind, status, reason, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(names: Value, accepted: Value) -> Value {
        json!({"spec": {"group": "ex.io", "names": names}, "status": {"acceptedNames": accepted}})
    }

    fn check(asked: Value, had: Value, others: &[Value], expected: &str) {
        let mut taken = Taken::default();
        for names in others {
            taken.add(names);
        }
        let outcome = settle(&definition(asked, had), &taken, "now");
        let told = outcome.conditions.as_array().into_iter().flatten();
        let told = told.map(|it| {
            format!(
                "{}={} {}",
                it["type"].as_str().unwrap(),
                it["status"].as_str().unwrap(),
                it["reason"].as_str().unwrap()
            )
        });
        let told: Vec<String> = told.collect();
        assert_eq!(format!("{} {}", outcome.names, told.join(", ")), expected);
    }

    #[test]
    fn names_that_others_have_are_not_given() {
        let widget = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wi"]});
        let all =
            r#"{"kind":"Widget","listKind":"WidgetList","plural":"widgets","shortNames":["wi"],"singular":"widget"}"#;
        let accepted = "NamesAccepted=True NoConflicts, Established=True InitialNamesAccepted";
        check(widget.clone(), Value::Null, &[], &format!("{all} {accepted}"));
        check(widget.clone(), widget.clone(), std::slice::from_ref(&widget), &format!("{all} {accepted}"));
        let gadget = json!({"plural": "gadgets", "singular": "widget", "kind": "Gadget", "listKind": "GadgetList", "shortNames": ["wi"]});
        check(
            gadget,
            Value::Null,
            &[widget],
            r#"{"kind":"Gadget","listKind":"GadgetList","plural":"gadgets"} NamesAccepted=False ShortNamesConflict, Established=False NotAccepted"#,
        );
    }
}
