//! The properties of a cluster, which templates are expanded with.

use std::collections::BTreeMap;

use orrery_gotemplate::{Data, is_identifier};

/// The property that every cluster has: its name.
pub const CLUSTER_NAME: &str = "clusterName";

/// Where the properties of one cluster come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// The name of the inventory object.
    pub cluster: &'a str,
    /// The labels of the inventory object.
    pub labels: Option<&'a BTreeMap<String, String>>,
    /// The annotations of the inventory object.
    pub annotations: Option<&'a BTreeMap<String, String>>,
    /// The strings in the ConfigMap of the same name in the namespace `customization-properties`.
    pub data: Option<&'a BTreeMap<String, String>>,
    /// The bytes in that ConfigMap, decoded.
    pub binary_data: Option<&'a BTreeMap<String, Vec<u8>>>,
}

impl Sources<'_> {
    /// The properties. The ConfigMap beats annotations, those beat labels, and all of them beat the cluster's own name.
    ///
    /// A name that is no identifier of the Go language does not count; nor does a keyword, which is none either.
    pub fn properties(&self) -> Data {
        let mut properties = Data::new();
        properties.insert(CLUSTER_NAME, self.cluster);
        let strings = [self.labels, self.annotations, self.data].into_iter().flatten().flatten();
        let strings = strings.map(|(name, value)| (name, value.as_bytes()));
        let bytes = self.binary_data.into_iter().flatten().map(|(name, value)| (name, value.as_slice()));
        for (name, value) in strings.chain(bytes).filter(|(name, _)| is_identifier(name)) {
            properties.insert(name, value);
        }
        properties
    }
}
