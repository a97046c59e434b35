//! The clusters that objects can go to, and the properties their templates are expanded with.

use std::{collections::BTreeMap, sync::Arc};

use orrery_api::labels::Labels;
use orrery_gotemplate::Data;

use crate::transform::properties::Sources;

/// What a ConfigMap says about the cluster it is named after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Its strings.
    pub data: BTreeMap<String, String>,
    /// Its bytes, decoded.
    pub binary_data: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, Debug, Default)]
struct Cluster {
    labels: Labels,
    annotations: BTreeMap<String, String>,
    data: Arc<Data>,
}

/// All clusters and all properties, also those of clusters that are not there yet.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    clusters: BTreeMap<Arc<str>, Cluster>,
    properties: BTreeMap<Arc<str>, Properties>,
}

impl Inventory {
    /// The properties that templates are expanded with for a cluster.
    pub(crate) fn data(&self, cluster: &str) -> Option<&Arc<Data>> {
        self.clusters.get(cluster).map(|cluster| &cluster.data)
    }

    /// One cluster alone, with what is known of it.
    pub(super) fn alone(&self, name: &str) -> Self {
        let cluster = self.clusters.get_key_value(name).map(|(name, cluster)| (Arc::clone(name), cluster.clone()));
        let properties = self.properties.get_key_value(name).map(|(name, known)| (Arc::clone(name), known.clone()));
        Self { clusters: cluster.into_iter().collect(), properties: properties.into_iter().collect() }
    }

    /// Puts what is known of one in the place of what is known of the other.
    pub(super) fn absorb(&mut self, other: Self) {
        self.clusters.extend(other.clusters);
        self.properties.extend(other.properties);
    }

    /// A cluster joined or changed. Says whether its properties did.
    pub(super) fn set_cluster(&mut self, name: &str, labels: Labels, annotations: BTreeMap<String, String>) -> bool {
        let known = self.clusters.entry(name.into()).or_default();
        (known.labels, known.annotations) = (labels, annotations);
        self.refresh(name)
    }

    /// A cluster left.
    pub(super) fn remove_cluster(&mut self, name: &str) {
        self.clusters.remove(name);
    }

    /// The ConfigMap of a cluster was made, changed, or is gone. Says whether the properties of a cluster changed.
    pub(super) fn set_properties(&mut self, name: &str, properties: Option<Properties>) -> bool {
        match properties {
            Some(properties) => drop(self.properties.insert(name.into(), properties)),
            None => drop(self.properties.remove(name)),
        }
        self.refresh(name)
    }

    fn refresh(&mut self, name: &str) -> bool {
        let Some(cluster) = self.clusters.get_mut(name) else { return false };
        let properties = self.properties.get(name);
        let sources = Sources {
            cluster: name,
            labels: Some(&cluster.labels),
            annotations: Some(&cluster.annotations),
            data: properties.map(|properties| &properties.data),
            binary_data: properties.map(|properties| &properties.binary_data),
        };
        let data = sources.properties();
        let changed = *cluster.data != data;
        if changed {
            cluster.data = Arc::new(data);
        }
        changed
    }
}
