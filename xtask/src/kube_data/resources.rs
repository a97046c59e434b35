//! The registry's data: groups, versions and resources as discovery lists them, with their columns and schemas.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

/// Everything discovery says of the built-in kinds, core group first, each resource with its columns and the name of its schema.
pub(crate) fn registry(discovery: &Value, tables: &Value, definitions: &BTreeMap<String, Value>) -> Result<Value> {
    let kinds = kinds(definitions);
    let mut groups = Vec::new();
    for list in ["api", "apis"] {
        for group in array(&discovery[list]["items"]) {
            let name = text(&group["metadata"]["name"]);
            let mut versions = Vec::new();
            for version in array(&group["versions"]) {
                let version_name = text(&version["version"]);
                let here = Place { group: name, version: version_name, tables, kinds: &kinds };
                let resources: Vec<Value> = array(&version["resources"])
                    .iter()
                    .map(|resource| here.resource(resource))
                    .collect::<Result<_>>()?;
                versions.push(json!({ "version": version_name, "resources": resources }));
            }
            groups.push(json!({ "group": name, "versions": versions }));
        }
    }
    Ok(json!({ "groups": groups }))
}

/// The definition of each kind, by `group/version/Kind`.
fn kinds(definitions: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, definition) in definitions {
        let marks = array(&definition["x-kubernetes-group-version-kind"]);
        for mark in marks {
            let key = format!("{}/{}/{}", text(&mark["group"]), text(&mark["version"]), text(&mark["kind"]));
            found.insert(key, name.clone());
        }
    }
    found
}

struct Place<'a> {
    group: &'a str,
    version: &'a str,
    tables: &'a Value,
    kinds: &'a BTreeMap<String, String>,
}

impl Place<'_> {
    fn resource(&self, listed: &Value) -> Result<Value> {
        let plural = text(&listed["resource"]);
        let mut entry = self.described(listed, text(&listed["responseKind"]["kind"]))?;
        entry.insert("plural".into(), plural.into());
        entry.insert("singular".into(), listed["singularResource"].clone());
        entry.insert("namespaced".into(), (text(&listed["scope"]) == "Namespaced").into());
        for (from, to) in [("shortNames", "shortNames"), ("categories", "categories")] {
            if !listed[from].is_null() {
                entry.insert(to.into(), listed[from].clone());
            }
        }
        let prefix = if self.group.is_empty() { "api".to_owned() } else { format!("apis/{}", self.group) };
        let columns = &self.tables[&format!("{prefix}/{}/{plural}", self.version)];
        if !columns.is_null() {
            entry.insert("columns".into(), columns.clone());
        }
        let subresources: Vec<Value> = array(&listed["subresources"])
            .iter()
            .map(|listed| {
                let mut entry = self.described(listed, text(&listed["responseKind"]["kind"]))?;
                entry.insert("name".into(), listed["subresource"].clone());
                Ok(entry.into())
            })
            .collect::<Result<_>>()?;
        if !subresources.is_empty() {
            entry.insert("subresources".into(), subresources.into());
        }
        Ok(entry.into())
    }

    /// Kind, its group and version where they differ from the place, verbs and schema.
    fn described(&self, listed: &Value, kind: &str) -> Result<Map<String, Value>> {
        let response = &listed["responseKind"];
        let own = |value: &Value, place: &str| {
            let named = text(value);
            if named.is_empty() { place.to_owned() } else { named.to_owned() }
        };
        let foreign = !text(&response["version"]).is_empty();
        let group = if foreign { text(&response["group"]).to_owned() } else { self.group.to_owned() };
        let version = own(&response["version"], self.version);
        let key = format!("{group}/{version}/{kind}");
        let mut entry = Map::new();
        entry.insert("kind".into(), kind.into());
        if foreign {
            entry.insert("kindGroup".into(), group.into());
            entry.insert("kindVersion".into(), version.into());
        }
        entry.insert("verbs".into(), listed["verbs"].clone());
        if let Some(schema) = self.kinds.get(&key) {
            entry.insert("schema".into(), schema.as_str().into());
        } else if !kind.ends_with("Options") {
            anyhow::bail!("no schema describes {key}");
        }
        Ok(entry)
    }
}

pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
