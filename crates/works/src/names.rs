//! Names and counters of the conversation, each checked once where it enters.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::Deserialize;

/// The longest name that is believed, in bytes. Kubernetes names end at 253.
const MAX_NAME_BYTES: usize = 253;

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is empty.
    #[error("{what} is empty")]
    Empty {
        /// What the text should have named.
        what: &'static str,
    },
    /// The text is longer than any name.
    #[error("{what} is longer than {MAX_NAME_BYTES} bytes")]
    TooLong {
        /// What the text should have named.
        what: &'static str,
    },
    /// The text has a character that the name cannot have.
    #[error("{what} contains {character:?}")]
    Character {
        /// What the text should have named.
        what: &'static str,
        /// The first character that does not belong.
        character: char,
    },
}

/// Makes a name type over shared text: cheap to clone, ordered bytewise, found in maps by `&str`.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and makes it a name.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                check($what, text.as_ref(), $allowed)?;
                Ok(Self(Arc::from(text.as_ref())))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::new(&*text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// The unique name of a source of works, as it stands in topics.
    SourceId,
    "source id",
    in_topic
);
name!(
    /// The name of a cluster, as it stands in topics.
    ClusterName,
    "cluster name",
    in_topic
);
name!(
    /// The id of one work, unique within its source.
    ResourceId,
    "resource id",
    printable
);
name!(
    /// Names one life of a source's store: a store that was made anew or restored has another epoch.
    Epoch,
    "epoch",
    in_topic
);

impl Epoch {
    /// What a work has that came from no epoch, in a list that has one. No source makes such an epoch.
    pub(crate) fn none() -> Self {
        Self(Arc::from("none"))
    }
}

/// Letters that can stand in one level of a topic without meaning anything to a broker.
fn in_topic(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.')
}

fn printable(character: char) -> bool {
    !character.is_control()
}

fn check(what: &'static str, text: &str, allowed: fn(char) -> bool) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong { what });
    }
    match text.chars().find(|character| !allowed(*character)) {
        Some(character) => Err(NameError::Character { what, character }),
        None => Ok(()),
    }
}

/// The version of a work: grows with every change of what is desired. Zero means that the source does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(i64);

impl Version {
    /// A source that does not count its versions sends this one.
    pub const UNVERSIONED: Self = Self(0);

    /// The highest version the `ocm` dialect can carry: CloudEvents integers have 32 bits.
    pub const MAX: Self = Self(i32::MAX as i64);

    /// Makes a version of a number that is not negative.
    pub fn new(number: i64) -> Option<Self> {
        (number >= 0).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }

    /// The next version, unless the `ocm` dialect could not carry it.
    pub fn next(self) -> Option<Self> {
        (self < Self::MAX).then_some(Self(self.0 + 1))
    }

    /// Whether the source counts at all.
    pub fn is_counted(self) -> bool {
        self != Self::UNVERSIONED
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_broker_would_misread_are_refused() {
        for text in ["", "a/b", "+", "#", "a b", "$share", "naïve", "a\0", &"x".repeat(254)] {
            assert!(ClusterName::new(text).is_err(), "{text:?}");
        }
        for text in ["cluster1", "a.b-c_D", &"x".repeat(253)] {
            assert_eq!(ClusterName::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn versions_end_where_the_wire_ends() {
        assert_eq!(Version::new(-1), None);
        assert_eq!(Version::new(1).unwrap().next(), Version::new(2));
        assert_eq!(Version::MAX.next(), None);
    }
}
