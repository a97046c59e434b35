//! The merge as a whole, by examples and by laws.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    registry::{Registry, Resource},
    schema,
};

/// An object of a kind, and who owns what of it.
struct Object {
    resource: Arc<Resource>,
    value: Value,
    managers: Managers,
    clock: u32,
}

struct OneVersion<'a>(&'a Resource);

impl Versions for OneVersion<'_> {
    fn typed(&self, _: &str) -> Option<Typed<'_>> {
        None
    }

    fn convert(&self, object: &Value, _: &str, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }

    fn empty(&self) -> Value {
        let mut empty = json!({"metadata": {}});
        schema::complete(&self.0.schemas, self.0.schema, &mut empty);
        empty
    }
}

impl Object {
    fn new(group: &str, plural: &str) -> Self {
        let resource = Arc::clone(Registry::kubernetes().resource(group, "v1", plural).unwrap());
        let value = OneVersion(&resource).empty();
        Self { resource, value, managers: Managers::default(), clock: 0 }
    }

    fn configmap() -> Self {
        Self::new("", "configmaps")
    }

    /// Does something in the next second.
    fn write<T>(&mut self, act: impl FnOnce(&Writing<'_>, &Value, Managers) -> T) -> T {
        self.clock += 1;
        let resource = Arc::clone(&self.resource);
        let writing = Writing {
            typed: Typed { types: resource.schemas.merging(), ty: Types::structure(resource.schema) },
            api_version: &resource.api_version(),
            subresource: "",
            reset: &Reset::Fields(FieldSet::of(&[&["status"]])),
            versions: &OneVersion(&resource),
            now: &format!("2026-01-01T00:{:02}:{:02}Z", self.clock / 60, self.clock % 60),
        };
        act(&writing, &self.value, self.managers.clone())
    }

    fn try_apply(&mut self, name: &str, config: Value, force: bool) -> Result<(), ApplyError> {
        let applied = self.write(|writing, live, managers| writing.apply(live, &config, managers, name, force))?;
        self.managers = applied.managers;
        if applied.changed {
            self.set(applied.object);
        }
        Ok(())
    }

    fn apply(&mut self, name: &str, config: Value) {
        self.try_apply(name, config, true).unwrap();
    }

    fn update(&mut self, name: &str, value: Value) {
        let before = self.value.clone();
        self.set(value);
        let after = std::mem::replace(&mut self.value, before);
        self.managers = self.write(|writing, live, managers| writing.update(live, &after, managers, name));
        self.value = after;
    }

    /// The object as the server would keep it.
    fn set(&mut self, value: Value) {
        self.value = value;
        schema::sparse(&self.resource.schemas, self.resource.schema, &mut self.value);
        schema::complete(&self.resource.schemas, self.resource.schema, &mut self.value);
    }

    fn owned(&self, name: &str) -> Value {
        let entry = self.managers.entries().iter().find(|entry| entry.id.name == name);
        entry.map_or(Value::Null, |entry| entry.fields.to_json())
    }

    fn conflicts(&mut self, name: &str, config: Value) -> String {
        match self.try_apply(name, config, false) {
            Err(ApplyError::Conflicts(conflicts)) => conflicts.message(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_an_applier_drops_goes_unless_another_owns_it() {
    let mut object = Object::configmap();
    object.apply("m1", json!({"data": {"a": "1", "b": "2", "c": "3"}}));
    object.apply("m2", json!({"data": {"b": "2"}}));
    object.apply("m1", json!({"data": {"c": "3"}}));
    assert_eq!(object.value["data"], json!({"b": "2", "c": "3"}));
    assert_eq!(object.owned("m1"), json!({"f:data": {"f:c": {}}}));
    object.apply("m1", json!({}));
    object.apply("m2", json!({}));
    assert_eq!(object.value.get("data"), None);
    assert!(object.managers.is_empty());
}

#[test]
fn what_others_own_is_changed_by_force_alone() {
    let mut object = Object::configmap();
    object.apply("m1", json!({"data": {"a": "1", "b": "2"}}));
    object.update("u1", json!({"metadata": {"labels": {"x": "y"}}, "data": {"a": "1", "b": "3"}}));
    assert_eq!(
        object.conflicts("m2", json!({"data": {"a": "9"}})),
        r#"Apply failed with 1 conflict: conflict with "m1": .data.a"#
    );
    assert_eq!(
        object.conflicts("m2", json!({"data": {"a": "9", "b": "9"}, "metadata": {"labels": {"x": "z"}}})),
        "Apply failed with 3 conflicts: conflicts with \"m1\":\n- .data.a\nconflicts with \"u1\" using v1:\n- .data.b\n- .metadata.labels.x"
    );
    object.apply("m2", json!({"data": {"a": "9"}}));
    assert_eq!(object.owned("m1"), Value::Null);
    assert_eq!(object.owned("m2"), json!({"f:data": {"f:a": {}}}));
    assert_eq!(object.value["data"], json!({"a": "9", "b": "3"}));
}

#[test]
fn an_update_owns_maps_it_makes_and_what_it_changes() {
    let mut object = Object::configmap();
    object.update("u1", json!({"metadata": {"name": "c", "uid": "u"}, "data": {"a": "1"}}));
    assert_eq!(object.owned("u1"), json!({"f:data": {".": {}, "f:a": {}}}));
    object.update("u2", json!({"metadata": {"name": "c", "uid": "u"}, "data": {"a": "2", "b": "1"}}));
    assert_eq!(object.owned("u1"), json!({"f:data": {}}));
    assert_eq!(object.owned("u2"), json!({"f:data": {"f:a": {}, "f:b": {}}}));
    let before = object.managers.clone();
    object.update("u3", object.value.clone());
    assert_eq!(object.managers, before, "whoever changes nothing owns nothing");
}

#[test]
fn items_keep_their_order_and_their_owners() {
    let mut object = Object::new("", "podtemplates");
    let containers = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "i"})).collect();
        json!({"template": {"spec": {"containers": containers}}})
    };
    let names = |object: &Object| -> Vec<String> {
        let list = object.value.pointer("/template/spec/containers").and_then(Value::as_array);
        list.into_iter().flatten().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    object.apply("m1", containers(&["a", "b", "c"]));
    object.apply("m2", containers(&["x", "b"]));
    assert_eq!(names(&object), ["a", "x", "b", "c"]);
    object.apply("m1", containers(&["c", "a"]));
    assert_eq!(names(&object), ["x", "b", "c", "a"]);
    object.apply("m2", json!({}));
    assert_eq!(names(&object), ["c", "a"]);
}

#[test]
fn what_client_side_apply_has_left_is_taken_over() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut object = Object::configmap();
    let applied = r#"{"apiVersion":"v1","data":{"a":"1","b":"2"},"kind":"ConfigMap","metadata":{"name":"c"}}"#;
    let noted = json!({"name": "c", "annotations": {annotation: applied}});
    object.update("kubectl-client-side-apply", json!({"metadata": noted, "data": {"a": "1", "b": "2"}}));
    assert!(object.conflicts("other", json!({"data": {"a": "3"}})).contains(".data.a"));
    object.try_apply("kubectl", json!({"data": {"a": "3", "b": "2"}}), false).unwrap();
    assert_eq!(object.value["data"], json!({"a": "3", "b": "2"}));
    let renewed = object.value["metadata"]["annotations"][annotation].as_str().unwrap();
    assert_eq!(renewed, "{\"data\":{\"a\":\"3\",\"b\":\"2\"}}\n");
    object.update("u1", json!({"metadata": object.value["metadata"], "data": {"a": "4", "b": "2"}}));
    assert!(
        object.conflicts("kubectl", json!({"data": {"a": "5"}})).contains("u1"),
        "it is no longer as it was applied"
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    for (config, problem) in [
        (json!({"foo": 1}), ".foo: field not declared in schema"),
        (json!({"data": {"a": true}}), ".data.a: expected string, got &value.valueUnstructured{Value:true}"),
        (json!({"data": []}), ".data: expected map, got &{[]}"),
        (json!({"metadata": {"finalizers": ["a", "a"]}}), r#".metadata.finalizers: duplicate entries for key [="a"]"#),
        (
            json!({"immutable": "x", "data": {"a": 1}}),
            "errors:\n  .data.a: expected string, got &value.valueUnstructured{Value:1}\n  .immutable: expected boolean, got &{x}",
        ),
    ] {
        let refused = Object::configmap().try_apply("m1", config.clone(), true);
        assert_eq!(refused, Err(ApplyError::Misfit(problem.into())), "{config}");
    }
}

/// Configurations of a pod template: maps, sets, keyed items with keys of one and two fields, and what is one value.
fn configs() -> impl Strategy<Value = Value> {
    let text = || prop::sample::select(vec!["1", "2", "3"]);
    let labels = || prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), text(), 0..3);
    let env = prop::collection::btree_map(prop::sample::select(vec!["A", "B"]), text(), 0..2)
        .prop_map(|env| env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect::<Vec<_>>());
    let ports =
        prop::collection::btree_set((80..82u16, prop::sample::select(vec!["TCP", "UDP"])), 0..3).prop_map(|ports| {
            ports
                .into_iter()
                .map(|(port, protocol)| json!({"containerPort": port, "protocol": protocol}))
                .collect::<Vec<_>>()
        });
    let container = (text(), env, ports, prop::collection::vec(text(), 0..2))
        .prop_map(|(image, env, ports, args)| json!({"image": image, "env": env, "ports": ports, "args": args}));
    let containers =
        prop::collection::vec((prop::sample::select(vec!["x", "y", "z"]), container), 0..3).prop_map(|containers| {
            let mut named: Vec<Value> = Vec::new();
            for (name, mut container) in containers {
                container["name"] = name.into();
                if named.iter().all(|other| other["name"] != name) {
                    named.push(container);
                }
            }
            named
        });
    let finalizers = prop::collection::btree_set(prop::sample::select(vec!["ex.io/a", "ex.io/b"]), 0..3);
    (labels(), labels(), containers, finalizers, prop::option::of(0..3u32)).prop_map(
        |(labels, selector, containers, finalizers, grace)| {
            let mut config = json!({
                "metadata": {"labels": labels, "finalizers": finalizers},
                "template": {"spec": {"containers": containers, "nodeSelector": selector, "terminationGracePeriodSeconds": grace}},
            });
            without_nothing(&mut config);
            config
        },
    )
}

/// Takes out what is empty: it is applied, but not stored, and so applied anew each time.
fn without_nothing(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(without_nothing);
            members.retain(|_, value| {
                let empty =
                    value.as_object().is_some_and(|it| it.is_empty()) || value.as_array().is_some_and(Vec::is_empty);
                !empty && !value.is_null()
            });
        }
        Value::Array(items) => items.iter_mut().for_each(without_nothing),
        _ => {}
    }
}

/// The fields of a set that are not what tells an item apart.
fn leaves(set: &FieldSet) -> FieldSet {
    let nodes = set.nodes().iter().filter_map(|node| {
        let key = matches!(&node.element, element::Element::Field(name) if matches!(&**name, "name" | "containerPort" | "protocol"));
        let item = matches!(node.element, element::Element::Key(_));
        let (member, below) = (node.member && !key && !item, leaves(&node.below));
        (member || !below.is_empty()).then(|| set::Node { element: node.element.clone(), member, below })
    });
    FieldSet::from_nodes(nodes.collect())
}

/// Takes fields out of a configuration; what is left empty goes too.
fn remove_shared(typed: Typed<'_>, config: &mut Value, shared: &FieldSet) {
    walk::remove(typed, config, shared);
    if config.is_null() {
        *config = json!({});
    }
    without_nothing(config);
}

/// Puts the items of all lists into one order: who comes first decides where items go.
fn without_order(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(without_order),
        Value::Array(items) => {
            items.iter_mut().for_each(without_order);
            items.sort_by_cached_key(Value::to_string);
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(first in configs(), other in configs(), config in configs()) {
        let mut object = Object::new("", "podtemplates");
        object.apply("m1", first);
        object.apply("m2", other);
        object.apply("m1", config.clone());
        let state = |object: &Object| (object.value.clone(), object.owned("m1"), object.owned("m2"));
        let once = state(&object);
        object.apply("m1", config);
        prop_assert_eq!(state(&object), once);
    }

    #[test]
    fn managers_of_different_fields_do_not_care_who_is_first(base in configs(), one in configs(), other in configs()) {
        let resource = Object::new("", "podtemplates").resource;
        let typed = Typed { types: resource.schemas.merging(), ty: Types::structure(resource.schema) };
        // What is in both is left to the first, but for what tells items apart.
        let mut other = other;
        let shared = leaves(&extract(typed, &one));
        remove_shared(typed, &mut other, &shared);
        let after = |order: [(&str, &Value); 2]| {
            let mut object = Object::new("", "podtemplates");
            object.update("u1", base.clone());
            for (name, config) in order {
                object.apply(name, config.clone());
            }
            let mut value = object.value.clone();
            without_order(&mut value);
            (value, object.owned("m1"), object.owned("m2"), object.owned("u1"))
        };
        prop_assert_eq!(after([("m1", &one), ("m2", &other)]), after([("m2", &other), ("m1", &one)]));
    }

    #[test]
    fn what_the_applier_never_owned_stays(base in configs(), first in configs(), second in configs()) {
        let mut object = Object::new("", "podtemplates");
        object.update("u1", base);
        object.apply("m1", first);
        let resource = Arc::clone(&object.resource);
        let typed = Typed { types: resource.schemas.merging(), ty: Types::structure(resource.schema) };
        let before = object.value.clone();
        let had = object.managers.get(&Manager::applier("m1", "")).map(|entry| FieldSet::clone(&entry.fields)).unwrap_or_default();
        object.apply("m1", second);
        let removed = compare(typed, &before, &object.value).removed;
        // Whatever has gone was the applier's, or was in an item or a struct that was.
        let given_up = walk::with_named(typed, &had);
        prop_assert!(removed.without(&given_up).is_empty(), "{}", removed.without(&given_up));
    }

    #[test]
    fn what_others_own_stays(first in configs(), others in configs(), second in configs()) {
        let mut object = Object::new("", "podtemplates");
        object.apply("m2", others);
        if object.try_apply("m1", first, false).is_ok() && object.try_apply("m1", second, false).is_ok() {
            let typed = Typed { types: object.resource.schemas.merging(), ty: Types::structure(object.resource.schema) };
            let there = extract(typed, &object.value);
            let owned = object.managers.get(&Manager::applier("m2", "")).map(|entry| FieldSet::clone(&entry.fields)).unwrap_or_default();
            prop_assert!(owned.difference(&there).is_empty(), "{}", owned.difference(&there));
        }
    }

    #[test]
    fn managers_that_were_stored_are_as_good_as_others(
        first in configs(), others in configs(), second in configs(), again in any::<bool>(),
    ) {
        let mut object = Object::new("", "podtemplates");
        object.apply("m2", others);
        object.apply("m1", first.clone());
        let config = if again { first } else { second };
        let stored = Managers::parse(&object.managers.clone().text()).unwrap();
        let (clock, known) = (object.clock, std::mem::replace(&mut object.managers, stored));
        let from_text = object.write(|writing, live, managers| writing.apply(live, &config, managers, "m1", false));
        (object.clock, object.managers) = (clock, known);
        let from_sets = object.write(|writing, live, managers| writing.apply(live, &config, managers, "m1", false));
        prop_assert_eq!(from_text, from_sets);
    }

    #[test]
    fn the_quick_way_to_prune_is_the_long_way(first in configs(), others in configs(), second in configs()) {
        let mut object = Object::new("", "podtemplates");
        object.apply("m2", others);
        object.apply("m1", first);
        let id = Manager::applier("m1", "");
        let Some(last) = object.managers.get(&id).cloned() else { return Ok(()) };
        let (quick, long) = object.write(|writing, live, mut managers| {
            let fields = extract(writing.typed, &second);
            managers.set(Entry { fields: fields.clone().into(), ..last.clone() });
            let mut merged = live.clone();
            merge(writing.typed, &mut merged, &second);
            let mut quick = merged.clone();
            let owned = managers.entries().iter().fold(FieldSet::default(), |owned, entry| owned.union(&entry.fields));
            prune(writing.typed, &mut quick, &last.fields, &owned);
            (quick, versions::prune(writing, &merged, &managers, &last).unwrap().unwrap())
        });
        prop_assert_eq!(quick, long);
    }
}
