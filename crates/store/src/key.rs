//! The name of an object, and the parts of the tree of names that can be read or watched as one.

use std::fmt;

/// Why text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("key {text:?} is not <group>/<resource>/<space>/<namespace>/<name>: {problem}")]
pub struct KeyError {
    text: String,
    problem: &'static str,
}

/// The name of an object: `<group>/<resource>/<space>/<namespace>/<name>`.
///
/// The group is empty for the core group, the namespace for what has none. Keys order as their bytes, as etcd orders them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<str>);

/// Longest key accepted, in bytes: four DNS names of 253 and a resource of 63, rounded up.
const MAX_LENGTH: usize = 2048;

impl Key {
    /// Puts a key together from its parts.
    pub fn new(group: &str, resource: &str, space: &str, namespace: &str, name: &str) -> Result<Self, KeyError> {
        let parts = [group, resource, space, namespace, name];
        let mut text = String::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                text.push('/');
            }
            text.push_str(part);
        }
        Self::checked(text)
    }

    /// Reads a key from its text.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        Self::checked(text.to_owned())
    }

    fn checked(text: String) -> Result<Self, KeyError> {
        let (mut slashes, mut count) = ([0; 4], 0);
        let mut has_zero = false;
        for (at, byte) in text.bytes().enumerate() {
            has_zero |= byte == 0;
            if byte == b'/' {
                if let Some(slash) = slashes.get_mut(count) {
                    *slash = at;
                }
                count += 1;
            }
        }
        let [first, second, third, fourth] = slashes;
        let problem = if text.len() > MAX_LENGTH {
            "it is longer than 2048 bytes"
        } else if has_zero {
            "it contains a zero byte"
        } else if count != slashes.len() {
            "it does not have five parts"
        } else if second == first + 1 || third == second + 1 || fourth + 1 == text.len() {
            "resource, space and name must not be empty"
        } else {
            return Ok(Self(text.into()));
        };
        Err(KeyError { text, problem })
    }

    /// The whole key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.part(0)
    }

    /// The resource, in the plural.
    pub fn resource(&self) -> &str {
        self.part(1)
    }

    /// The space.
    pub fn space(&self) -> &str {
        self.part(2)
    }

    /// The namespace; empty for what has none.
    pub fn namespace(&self) -> &str {
        self.part(3)
    }

    /// The name within namespace, space and resource.
    pub fn name(&self) -> &str {
        self.part(4)
    }

    fn part(&self, index: usize) -> &str {
        self.0.split('/').nth(index).unwrap_or_default()
    }
}

/// The first `parts` parts of a key with their closing slashes.
pub(crate) fn leading_parts(key: &str, parts: usize) -> &str {
    let end = key.bytes().enumerate().filter(|(_, byte)| *byte == b'/').nth(parts - 1);
    end.map_or(key, |(position, _)| &key[..=position])
}

/// How many leading parts of a key name its collection: group, resource and space.
pub(crate) const COLLECTION_PARTS: usize = 3;

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A part of the tree of keys that is read or watched as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    pub(crate) prefix: Box<str>,
    pub(crate) reach: Reach,
}

/// How far a scope reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// All spaces of one resource.
    Resource,
    /// One collection.
    Space,
    /// One namespace of a collection.
    Namespace,
    /// One object.
    Object,
}

impl Scope {
    /// Every object of a resource, in all spaces.
    pub fn resource(group: &str, resource: &str) -> Self {
        Self { prefix: format!("{group}/{resource}/").into(), reach: Reach::Resource }
    }

    /// Every object of a resource in one space.
    pub fn space(group: &str, resource: &str, space: &str) -> Self {
        Self { prefix: format!("{group}/{resource}/{space}/").into(), reach: Reach::Space }
    }

    /// Every object of a resource in one namespace of a space.
    pub fn namespace(group: &str, resource: &str, space: &str, namespace: &str) -> Self {
        Self { prefix: format!("{group}/{resource}/{space}/{namespace}/").into(), reach: Reach::Namespace }
    }

    /// One object.
    pub fn object(key: &Key) -> Self {
        Self { prefix: key.as_str().into(), reach: Reach::Object }
    }

    /// The resource it is of, as group and resource.
    pub fn of_resource(&self) -> (&str, &str) {
        (self.part(0), self.part(1))
    }

    /// The space it lies in; none if it reaches over all of them.
    pub fn in_space(&self) -> Option<&str> {
        Some(self.part(2)).filter(|space| !space.is_empty())
    }

    fn part(&self, index: usize) -> &str {
        self.prefix.split('/').nth(index).unwrap_or_default()
    }

    /// Whether a key lies in this scope.
    pub fn contains(&self, key: &Key) -> bool {
        self.contains_text(key.as_str())
    }

    pub(crate) fn contains_text(&self, key: &str) -> bool {
        match self.reach {
            Reach::Object => key == &*self.prefix,
            _ => key.starts_with(&*self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_five_parts() {
        let key = Key::new("apps", "deployments", "root", "default", "web").unwrap();
        assert_eq!(key.as_str(), "apps/deployments/root/default/web");
        assert_eq!([key.group(), key.resource(), key.space()], ["apps", "deployments", "root"]);
        assert_eq!([key.namespace(), key.name()], ["default", "web"]);
        assert_eq!(leading_parts(key.as_str(), COLLECTION_PARTS), "apps/deployments/root/");
    }

    #[test]
    fn core_group_and_cluster_scope_are_empty_parts() {
        let key = Key::new("", "namespaces", "root", "", "default").unwrap();
        assert_eq!(key.as_str(), "/namespaces/root//default");
        assert_eq!([key.group(), key.namespace(), key.name()], ["", "", "default"]);
    }

    #[test]
    fn what_is_not_a_key_is_refused() {
        for text in ["", "a/b/c/d", "a/b/c/d/e/f", "a//c/d/e", "a/b//d/e", "a/b/c/d/", "a/b/c/d/e\0"] {
            assert!(Key::parse(text).is_err(), "{text:?}");
        }
        assert!(Key::parse(&format!("a/b/c/d/{}", "e".repeat(MAX_LENGTH))).is_err());
    }

    #[test]
    fn a_scope_knows_its_resource_and_space() {
        let all = Scope::resource("apps", "deployments");
        assert_eq!((all.of_resource(), all.in_space()), (("apps", "deployments"), None));
        let object = Scope::object(&Key::parse("/pods/root/a/x").unwrap());
        assert_eq!((object.of_resource(), object.in_space()), (("", "pods"), Some("root")));
    }

    #[test]
    fn a_scope_ends_at_a_slash() {
        let scope = Scope::namespace("", "pods", "root", "a");
        assert!(scope.contains(&Key::parse("/pods/root/a/x").unwrap()));
        assert!(!scope.contains(&Key::parse("/pods/root/ab/x").unwrap()));
    }
}
