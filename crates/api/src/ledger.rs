//! WorkLedger of `core.orrery.io/v1alpha1`: what must be remembered of the works that are derived from a Binding.

use serde::{Deserialize, Serialize};

/// The API group of every kind in this module.
pub const GROUP: &str = "core.orrery.io";

/// The version of the API group.
pub const VERSION: &str = "v1alpha1";

/// The one way in which kept content is compressed so far.
pub const DEFLATE: &str = "deflate";

/// What must be remembered of the works of one Binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkLedgerSpec {
    /// The name of the Binding.
    pub binding: String,
    /// Which objects travel together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<LedgerBox>,
    /// The last good works of a Binding that cannot be rendered now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptWork>,
    /// The names of further ledgers, which hold what does not fit in this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<String>,
}

/// Objects that travel together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerBox {
    /// From 1.
    pub number: u32,
    /// Each as `group/resource/namespace/name`.
    pub objects: Vec<String>,
}

/// Content that some clusters have of a box.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptWork {
    /// The box.
    pub number: u32,
    /// The clusters.
    pub clusters: Vec<String>,
    /// Manifests and settings as JSON, compressed, in base64.
    pub content: String,
    /// Always [`DEFLATE`].
    pub encoding: String,
}
