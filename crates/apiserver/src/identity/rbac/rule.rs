//! One rule of a role: what it allows, which other rules it covers, and how it is described to people.

use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::{
    gotext,
    identity::{Attributes, Target},
};

/// What may be done to what. All parts are sets; `*` in one stands for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Rule {
    #[serde(deserialize_with = "list")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "list")]
    api_groups: Vec<String>,
    #[serde(deserialize_with = "list")]
    resources: Vec<String>,
    /// Which objects; none is all of them.
    #[serde(deserialize_with = "list")]
    resource_names: Vec<String>,
    #[serde(deserialize_with = "list", rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
}

/// A list that may be null, as Kubernetes writes empty ones.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Rule {
    /// Everything there is, as two rules.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec!["*".to_owned()];
        let resources = Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() };
        [resources, Self { verbs: all(), non_resource_urls: all(), ..Self::default() }]
    }

    /// Whether the rule allows what is asked for.
    pub(crate) fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has(&self.verbs, attributes.verb) {
            return false;
        }
        match &attributes.target {
            Target::Path(path) => covers_url(&self.non_resource_urls, path),
            Target::Resource { group, resource, subresource, name, .. } => {
                has(&self.api_groups, group)
                    && self.resources.iter().any(|rule| names(rule, resource, subresource))
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|allowed| allowed == name))
            }
        }
    }

    /// Whether whoever has this right has a smallest piece of a right too.
    fn covers(&self, piece: &Self) -> bool {
        let names = match piece.resource_names.as_slice() {
            _ if self.resource_names.is_empty() => true,
            [] => false,
            names => names.iter().all(|name| self.resource_names.contains(name)),
        };
        let resource = |piece: &String| {
            self.resources.iter().any(|rule| rule == "*" || rule == piece)
                || piece.split_once('/').is_some_and(|(_, part)| self.resources.contains(&format!("*/{part}")))
        };
        names
            && piece.verbs.iter().all(|verb| has(&self.verbs, verb))
            && piece.api_groups.iter().all(|group| has(&self.api_groups, group))
            && piece.resources.iter().all(resource)
            && piece.non_resource_urls.iter().all(|url| covers_url(&self.non_resource_urls, url))
    }

    /// How many pieces the rule falls into.
    fn pieces(&self) -> usize {
        let objects = self.resource_names.len().max(1);
        let sizes = [self.api_groups.len(), self.resources.len(), self.verbs.len(), objects];
        let resources = sizes.into_iter().fold(1, usize::saturating_mul);
        resources.saturating_add(self.non_resource_urls.len().saturating_mul(self.verbs.len()))
    }

    /// The rule in its smallest pieces: one verb on one resource or one address.
    fn split(&self) -> impl Iterator<Item = Self> {
        let one = |value: &String| vec![value.clone()];
        let objects: Vec<Vec<String>> = if self.resource_names.is_empty() {
            vec![Vec::new()]
        } else {
            self.resource_names.iter().map(one).collect()
        };
        let resources = self.api_groups.iter().flat_map(move |group| {
            let objects = objects.clone();
            self.resources.iter().flat_map(move |resource| {
                let objects = objects.clone();
                self.verbs.iter().flat_map(move |verb| {
                    objects.clone().into_iter().map(move |resource_names| Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        resource_names,
                        ..Self::default()
                    })
                })
            })
        });
        let urls = self.non_resource_urls.iter().flat_map(move |url| {
            self.verbs.iter().map(move |verb| Self { verbs: one(verb), non_resource_urls: one(url), ..Self::default() })
        });
        resources.chain(urls)
    }
}

/// How many pieces are compared at most: rules name everything with every verb in far fewer.
const MOST_PIECES: usize = 100_000;

/// What of `wanted` the rules somebody has do not cover, a line each; an error if there is too much to compare.
pub(crate) fn missing<'a>(
    held: &[&Rule],
    wanted: impl IntoIterator<Item = &'a Rule> + Clone,
) -> Result<Vec<String>, &'static str> {
    let pieces = wanted.clone().into_iter().map(Rule::pieces).fold(0, usize::saturating_add);
    if pieces > MOST_PIECES {
        return Err("the rules name more combinations of groups, resources, verbs and names than are compared");
    }
    let pieces = wanted.into_iter().flat_map(Rule::split);
    let uncovered = pieces.filter(|piece| !held.iter().any(|rule| rule.covers(piece)));
    let mut lines: Vec<String> = compacted(uncovered).iter().map(Rule::to_string).collect();
    lines.sort_unstable();
    lines.dedup();
    Ok(lines)
}

/// Pieces that differ only in their verb become one rule.
fn compacted(pieces: impl Iterator<Item = Rule>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for mut piece in pieces {
        if !piece.non_resource_urls.is_empty() {
            rules.push(piece);
            continue;
        }
        let verbs = std::mem::take(&mut piece.verbs);
        let place = *places.entry(piece.clone()).or_insert_with(|| {
            rules.push(piece);
            rules.len() - 1
        });
        // One that is named twice is told twice, as Kubernetes does.
        rules[place].verbs.extend(verbs);
    }
    rules
}

impl fmt::Display for Rule {
    /// As Kubernetes describes it: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
        let parts: Vec<String> = parts.map(|(name, values)| format!("{name}:{}", gotext::quote_list(values))).collect();
        write!(f, "{{{}}}", parts.join(", "))
    }
}

fn has(allowed: &[String], wanted: &str) -> bool {
    allowed.iter().any(|value| value == "*" || value == wanted)
}

/// Whether a resource of a rule names what is asked for: `*`, `pods`, `pods/log`, or `*/scale` for every `scale`.
fn names(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    match (subresource, rule.split_once('/')) {
        ("", _) => rule == resource,
        (part, Some((of, named))) => (of == "*" || of == resource) && named == part,
        (_, None) => false,
    }
}

fn covers_url(allowed: &[String], path: &str) -> bool {
    allowed.iter().any(|url| match url.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix.trim_end_matches('*')),
        None => url == path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SpaceScope;

    fn rule(text: &str) -> Rule {
        serde_json::from_str(text).unwrap()
    }

    fn resource<'a>(group: &'a str, resource: &'a str, name: &'a str) -> Target<'a> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Target::Resource { group, resource, subresource, namespace: "", name: name.into() }
    }

    fn check(text: &str, allowed: &[(&str, Target<'_>)], refused: &[(&str, Target<'_>)]) {
        let rule = rule(text);
        let space = SpaceScope::One("root".into());
        let ask = |verb, target: &Target<'_>| rule.allows(&Attributes { space: &space, verb, target: target.clone() });
        for (verb, target) in allowed {
            assert!(ask(verb, target), "{verb} {target:?}");
        }
        for (verb, target) in refused {
            assert!(!ask(verb, target), "{verb} {target:?}");
        }
    }

    #[test]
    fn a_rule_names_verbs_groups_and_resources() {
        check(
            r#"{"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "deployments/scale"]}"#,
            &[
                ("get", resource("", "pods", "a")),
                ("list", resource("apps", "pods", "")),
                ("get", resource("apps", "deployments/scale", "a")),
            ],
            &[
                ("delete", resource("", "pods", "a")),
                ("get", resource("batch", "pods", "a")),
                ("get", resource("", "pods/log", "a")),
                ("get", resource("apps", "deployments", "a")),
                ("get", Target::Path("/version")),
            ],
        );
    }

    #[test]
    fn stars_stand_for_everything_but_only_as_a_whole() {
        check(
            r#"{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}"#,
            &[("fly", resource("x", "pods/log", "a"))],
            &[("get", Target::Path("/"))],
        );
        check(
            r#"{"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale", "pods/*"]}"#,
            &[("get", resource("apps", "deployments/scale", "a")), ("get", resource("", "pods/*", "a"))],
            &[
                ("get", resource("", "pods/log", "a")),
                ("get", resource("", "pods", "a")),
                ("get", resource("", "scale", "a")),
            ],
        );
    }

    #[test]
    fn names_limit_a_rule_to_objects() {
        let named = r#"{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}"#;
        check(
            named,
            &[("get", resource("", "pods", "a"))],
            &[("get", resource("", "pods", "b")), ("list", resource("", "pods", ""))],
        );
        let nameless = r#"{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": [""]}"#;
        check(nameless, &[("list", resource("", "pods", ""))], &[("list", resource("", "pods", "a"))]);
    }

    #[test]
    fn addresses_match_whole_or_by_their_beginning() {
        check(
            r#"{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/logs/*"]}"#,
            &[("get", Target::Path("/healthz")), ("get", Target::Path("/logs/a/b"))],
            &[
                ("get", Target::Path("/healthz/etcd")),
                ("get", Target::Path("/logs")),
                ("post", Target::Path("/healthz")),
            ],
        );
    }

    fn lines(held: &[&str], wanted: &[&str]) -> String {
        let held: Vec<Rule> = held.iter().map(|text| rule(text)).collect();
        let wanted: Vec<Rule> = wanted.iter().map(|text| rule(text)).collect();
        missing(&held.iter().collect::<Vec<_>>(), &wanted).unwrap().join("\n")
    }

    #[test]
    fn what_is_missing_is_told_a_line_for_each_resource() {
        let held = r#"{"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/status"]}"#;
        let wanted = [
            r#"{"verbs": ["list", "get", "watch"], "apiGroups": ["", "apps"], "resources": ["pods"]}"#,
            r#"{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"], "resourceNames": ["a"]}"#,
            r#"{"verbs": ["get", "post"], "nonResourceURLs": ["/a"]}"#,
        ];
        let expected = concat!(
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}\n",
            "{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"list\" \"get\" \"watch\"]}\n",
            "{NonResourceURLs:[\"/a\"], Verbs:[\"get\"]}\n",
            "{NonResourceURLs:[\"/a\"], Verbs:[\"post\"]}"
        );
        assert_eq!(lines(&[held], &wanted), expected);
        assert_eq!(lines(&[r#"{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}"#], &wanted[..2]), "");
    }

    #[test]
    fn a_right_to_some_objects_covers_no_right_to_all() {
        let some = r#"{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"]}"#;
        let all = r#"{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}"#;
        assert_eq!(lines(&[some], &[all]), "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}");
        assert_eq!(lines(&[all], &[some]), "");
        assert_eq!(
            lines(
                &[some],
                &[r#"{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["b", "c"]}"#]
            ),
            "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"c\"], Verbs:[\"get\"]}"
        );
    }

    #[test]
    fn what_would_take_too_long_to_compare_is_refused() {
        let many: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        let rule = Rule { verbs: many.clone(), api_groups: many.clone(), resources: many, ..Rule::default() };
        assert!(missing(&[], &[rule]).is_err());
    }
}
