//! The form of a Kptfile, held as strictly as kpt holds it: a field that kpt does not know makes it refuse the package.

use crate::yaml::{Kind, Node};

/// What a field may hold; null is allowed everywhere.
enum Shape {
    Text,
    Texts,
    TextMap,
    Object(&'static [(&'static str, Shape)]),
    List(&'static Shape),
    /// Written by newer versions of kpt than the one whose rules these are; kept as it is.
    Anything,
}

use Shape::{Anything, List, Object, Text, TextMap, Texts};

const GIT: Shape = Object(&[("repo", Text), ("directory", Text), ("ref", Text)]);
const GIT_LOCK: Shape = Object(&[("repo", Text), ("directory", Text), ("ref", Text), ("commit", Text)]);
const SELECTOR: Shape = Object(&[
    ("apiVersion", Text),
    ("kind", Text),
    ("name", Text),
    ("namespace", Text),
    ("labels", TextMap),
    ("annotations", TextMap),
]);
const FUNCTION: Shape = Object(&[
    ("image", Text),
    ("exec", Text),
    ("configPath", Text),
    ("configMap", TextMap),
    ("name", Text),
    ("selectors", List(&SELECTOR)),
    ("exclude", List(&SELECTOR)),
]);
const CONDITION: Shape = Object(&[("type", Text), ("status", Text), ("reason", Text), ("message", Text)]);
const KPTFILE: Shape = Object(&[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(&[("name", Text), ("namespace", Text), ("labels", TextMap), ("annotations", TextMap)])),
    ("upstream", Object(&[("type", Text), ("git", GIT), ("updateStrategy", Text)])),
    ("upstreamLock", Object(&[("type", Text), ("git", GIT_LOCK)])),
    (
        "info",
        Object(&[
            ("site", Text),
            ("emails", Texts),
            ("license", Text),
            ("licenseFile", Text),
            ("description", Text),
            ("keywords", Texts),
            ("man", Text),
            ("readinessGates", List(&Object(&[("conditionType", Text)]))),
        ]),
    ),
    ("pipeline", Object(&[("mutators", List(&FUNCTION)), ("validators", List(&FUNCTION))])),
    (
        "inventory",
        Object(&[
            ("name", Text),
            ("namespace", Text),
            ("inventoryID", Text),
            ("labels", TextMap),
            ("annotations", TextMap),
        ]),
    ),
    ("status", Object(&[("conditions", List(&CONDITION)), ("renderStatus", Anything)])),
]);

/// Why a Kptfile would not be read.
pub(super) fn check(kptfile: &Node) -> Result<(), String> {
    let version = kptfile.text(&["apiVersion"]).unwrap_or_default();
    let kind = kptfile.text(&["kind"]).unwrap_or_default();
    match (version, kind) {
        ("kpt.dev/v1", "Kptfile") => check_shape(kptfile, &KPTFILE, ""),
        ("kpt.dev/v1alpha1" | "kpt.dev/v1alpha2", "Kptfile") => {
            Err(format!("its version {version} is too old: upgrade the package to kpt.dev/v1"))
        }
        _ => Err(format!("it is of the unknown type {version} {kind}")),
    }
}

fn check_shape(node: &Node, shape: &Shape, path: &str) -> Result<(), String> {
    if node.is_null() || node.alias().is_some() {
        return Ok(());
    }
    match shape {
        Anything => Ok(()),
        Text => expect(node.kind().is_some(), path, "a text"),
        Texts => {
            expect(node.is_list(), path, "a list")?;
            each(node, path, |element, path| check_shape(element, &Text, path))
        }
        TextMap => {
            expect(node.is_map(), path, "a map")?;
            check_keys(node, path)?;
            node.entries().try_for_each(|(key, value)| check_shape(value, &Text, &join(path, key)))
        }
        List(shape) => {
            expect(node.is_list(), path, "a list")?;
            each(node, path, |element, path| check_shape(element, shape, path))
        }
        Object(fields) => {
            expect(node.is_map(), path, "a map")?;
            check_keys(node, path)?;
            node.entries().try_for_each(|(key, value)| match fields.iter().find(|(name, _)| *name == key) {
                Some((_, shape)) => check_shape(value, shape, &join(path, key)),
                None => Err(format!("the field {} is unknown", join(path, key))),
            })
        }
    }
}

fn each(list: &Node, path: &str, check: impl Fn(&Node, &str) -> Result<(), String>) -> Result<(), String> {
    list.elements().enumerate().try_for_each(|(index, element)| check(element, &format!("{path}[{index}]")))
}

fn expect(holds: bool, path: &str, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{} must be {what}", if path.is_empty() { "its value" } else { path })) }
}

fn check_keys(map: &Node, path: &str) -> Result<(), String> {
    let mut seen = std::collections::HashSet::new();
    match map.entries().find(|(key, _)| !seen.insert(*key)) {
        Some((key, _)) => Err(format!("the field {} is there twice", join(path, key))),
        None => Ok(()),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Whether a value can be the value of a configMap: a text or what is read as one.
pub(super) fn text_of(node: &Node) -> String {
    match node.kind() {
        Some(Kind::Null) | None => String::new(),
        Some(_) => node.as_str().unwrap_or_default().to_owned(),
    }
}
