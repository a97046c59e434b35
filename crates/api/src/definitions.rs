//! The CustomResourceDefinitions of the kinds that come with the control plane, as YAML.

/// A definition, as it is applied to a Kubernetes that hosts our controllers and as the built-in API server reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name of the CustomResourceDefinition: `<plural>.<group>`.
    pub name: &'static str,
    /// The whole CustomResourceDefinition.
    pub yaml: &'static str,
}

macro_rules! definitions {
    ($($name:literal),* $(,)?) => {
        &[$(Definition { name: $name, yaml: include_str!(concat!("../crds/", $name, ".yaml")) }),*]
    };
}

/// The kinds whose objects are stored.
pub const STORED: &[Definition] = definitions![
    "bindingpolicies.control.kubestellar.io",
    "bindings.control.kubestellar.io",
    "combinedstatuses.control.kubestellar.io",
    "customtransforms.control.kubestellar.io",
    "managedclusters.cluster.open-cluster-management.io",
    "manifestworks.work.open-cluster-management.io",
    "statuscollectors.control.kubestellar.io",
    "workledgers.core.orrery.io",
];

/// The kinds that are answered when they are created, and never stored.
pub const ANSWERED: &[Definition] = definitions!["bindingpreviews.control.orrery.io"];
