//! The children that an Interface needs in a cluster, as a function of the two.

use crate::{
    Item, Value,
    functions::{
        dialect::{self, Dialect, LOCAL_CONFIG, NEPHIO_FOR, NEPHIO_OWNER},
        family::Family,
        fingerprint,
        interface::{
            cluster::Cluster,
            request::{Families, NETWORK_NAME, Request},
        },
        json,
        package::Resource,
        problem::Problem,
    },
};

/// The annotation by which VLAN claims say that they want the same VLAN.
pub(crate) const VLAN_CLAIM_NAME: &str = "specializer.nephio.org/vlanClaimName";
/// The longest name that an object may have.
const LONGEST_NAME: usize = 253;

/// A claim as it should be in the package.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) resource: Resource,
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// The name, or what it begins with.
    stem: String,
    pub(crate) spec: Value,
    /// Annotations that a claim has to have, and that are corrected in place.
    pub(crate) annotations: Vec<(&'static str, String)>,
    /// With whom a VLAN is shared. A change means another VLAN, as a change of the spec does.
    shared_as: Option<String>,
}

/// The claims of an Interface, addresses before VLANs.
pub(crate) fn wanted(interface: &Item, request: &Request, cluster: &Cluster) -> Result<Vec<Wanted>, Problem> {
    if request.is_default_network() {
        return Ok(Vec::new());
    }
    match cluster {
        Cluster::Seed { site, region, .. } => {
            let labels = [("nephio.org/region", region.as_deref()), ("nephio.org/site", Some(site))];
            Ok(seed_claims(interface, request, &labels))
        }
        Cluster::Nephio { name, cnis, .. } => {
            check_cni(request, cnis)?;
            Ok(nephio_claims(interface, request, name))
        }
    }
}

/// The name of the attachment definition of an Interface, if it gets one.
pub(crate) fn attachment_name(interface: &Item, request: &Request) -> Option<String> {
    request.cni.filter(|_| !request.is_default_network()).map(|_| name_for(interface))
}

/// The name of what is made for an Interface: `<for>-<name>`, or the name alone if it is for nothing in particular.
pub(crate) fn name_for(interface: &Item) -> String {
    match made_for(interface).and_then(dialect::referenced_name) {
        Some(purpose) => format!("{purpose}-{}", interface.name()),
        None => interface.name().to_owned(),
    }
}

fn made_for(interface: &Item) -> Option<&str> {
    interface.annotation(NEPHIO_FOR).or_else(|| interface.annotation(NEPHIO_OWNER))
}

fn check_cni(request: &Request, cnis: &[String]) -> Result<(), Problem> {
    match request.cni.map(|cni| cni.as_str()) {
        Some(cni) if !cnis.iter().any(|supported| supported == cni) => Err(Problem::at(
            "spec.cniType",
            format!(
                "stage1: cannot populate new resource err: cniType not supported in workload cluster; \
                 workload cluster CNI(s): [{}], interface cniType requested: {cni}",
                cnis.join(" ")
            ),
        )),
        _ => Ok(()),
    }
}

/// One allocation of an address unless the Interface says otherwise, and always one of a VLAN.
fn seed_claims(interface: &Item, request: &Request, cluster_labels: &[(&str, Option<&str>)]) -> Vec<Wanted> {
    let selector = |family: Option<Family>| {
        let given = cluster_labels.iter().copied().chain([(NETWORK_NAME, request.network_name.as_deref())]);
        let mut labels = Value::map(given.filter_map(|(key, value)| Some((key, value?))));
        labels = labels.with_some("nephio.org/address-family", family.map(Family::as_str));
        Value::object().with("matchLabels", labels)
    };
    let namespace = request.instance.get("namespace").and_then(Value::as_str).unwrap_or("default");
    let instance = Value::object().with("namespace", namespace).with("name", &request.instance_name);
    let (owner_key, owner) = Dialect::Seed.owner_annotation(interface);
    let claim = |resource, kind, infix: &str, spec| Wanted {
        resource,
        api_version: "ipam.nephio.org/v1alpha1",
        kind,
        stem: format!("{}-{infix}", interface.name()),
        spec,
        annotations: vec![(LOCAL_CONFIG, "true".to_owned()), (owner_key, owner.clone())],
        shared_as: None,
    };
    let families: &[Option<Family>] = match request.families {
        Families::Unsaid => &[None],
        Families::None => &[],
        Families::One(Family::V4) => &[Some(Family::V4)],
        Families::One(Family::V6) => &[Some(Family::V6)],
        Families::Both => &[Some(Family::V4), Some(Family::V6)],
    };
    let addresses = families.iter().map(|&family| {
        let spec = Value::object()
            .with("kind", address_kind(request))
            .with("prefixLength", u16::from(family.unwrap_or(Family::V4).bits()))
            .with("networkInstanceRef", instance.clone())
            .with("selector", selector(family));
        claim(Resource::Address, "IPAllocation", "ip", spec)
    });
    let vlan = Value::object().with("networkInstanceRef", instance.clone()).with("selector", selector(None));
    addresses.chain([claim(Resource::Vlan, "VLANAllocation", "vlan", vlan)]).collect()
}

/// One claim for each family, and one of a VLAN for an attachment in one.
fn nephio_claims(interface: &Item, request: &Request, cluster: &str) -> Vec<Wanted> {
    let (owner_key, owner) = Dialect::Nephio.owner_annotation(interface);
    let annotations = |shared_as: Option<&String>| {
        let given = [
            (LOCAL_CONFIG, interface.annotation(LOCAL_CONFIG).map(str::to_owned)),
            (NEPHIO_FOR, made_for(interface).map(str::to_owned)),
            (VLAN_CLAIM_NAME, shared_as.cloned()),
            (owner_key, Some(owner.clone())),
        ];
        given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    };
    let families: &[Family] = match request.families {
        Families::Unsaid | Families::One(Family::V4) => &[Family::V4],
        Families::None => &[],
        Families::One(Family::V6) => &[Family::V6],
        Families::Both => &[Family::V4, Family::V6],
    };
    let addresses = families.iter().map(|family| {
        let labels = Value::object()
            .with("nephio.org/address-family", family.as_str())
            .with("nephio.org/cluster-name", cluster)
            .with_some(NETWORK_NAME, request.network_name.as_ref());
        Wanted {
            resource: Resource::Address,
            api_version: "ipam.resource.nephio.org/v1alpha1",
            kind: "IPClaim",
            stem: format!("{}-{}", name_for(interface), family.as_str()),
            spec: Value::object()
                .with("kind", address_kind(request))
                .with("selector", Value::object().with("matchLabels", labels))
                .with("networkInstance", request.instance.clone()),
            annotations: annotations(None),
            shared_as: None,
        }
    });
    let vlan = (request.cni.is_some() && request.tagged).then(|| {
        let shared_as = Some(format!("{}-{cluster}-bd", request.instance_name));
        Wanted {
            resource: Resource::Vlan,
            api_version: "vlan.resource.nephio.org/v1alpha1",
            kind: "VLANClaim",
            stem: name_for(interface),
            spec: Value::object().with("vlanIndex", Value::object().with("name", cluster)),
            annotations: annotations(shared_as.as_ref()),
            shared_as,
        }
    });
    addresses.chain(vlan).collect()
}

fn address_kind(request: &Request) -> &'static str {
    if request.cni.is_some() { "network" } else { "loopback" }
}

impl Wanted {
    /// Whether a claim in the package is this one: it claims the same, whatever its name.
    pub(crate) fn matches(&self, claim: &Item) -> bool {
        claim.kind() == self.kind
            && claim.api_version() == self.api_version
            && claim.annotation(VLAN_CLAIM_NAME) == self.shared_as.as_deref()
            && claim.value(&["spec"]).is_some_and(|spec| spec.sorted() == self.spec.sorted())
    }

    /// The claim as a new object, under a name that is not taken.
    pub(crate) fn create(&self, interface: &Item, dialect: Dialect, is_taken: impl Fn(&str) -> bool) -> Item {
        let seed = dialect == Dialect::Seed;
        let metadata = Value::object()
            .with("name", self.free_name(interface, dialect, is_taken))
            .with_some("namespace", interface.namespace())
            .with("annotations", Value::map(self.annotations.iter().map(|(key, value)| (*key, value))))
            .with_some("ownerReferences", seed.then(|| vec![dialect::owner_reference(interface)]));
        let claim = Value::object()
            .with("apiVersion", self.api_version)
            .with("kind", self.kind)
            .with("metadata", metadata)
            .with("spec", self.spec.clone())
            .with_some("status", (!seed).then(Value::object));
        Item::new(&claim)
    }

    /// The seed's names always end in a hash of what is claimed. Nephio's do so only if the name without it is taken, as it
    /// is after a change, by the claim that is to go.
    fn free_name(&self, interface: &Item, dialect: Dialect, is_taken: impl Fn(&str) -> bool) -> String {
        if dialect == Dialect::Nephio && self.stem.len() <= LONGEST_NAME && !is_taken(&self.stem) {
            return self.stem.clone();
        }
        let spec = json::compact(&self.spec.sorted());
        let shared_as = self.shared_as.as_deref().unwrap_or_default();
        let (namespace, owner) = (interface.namespace().unwrap_or_default(), dialect::reference(interface));
        let mut names = (0_u64..).map(|attempt| {
            let suffix = fingerprint::suffix(&[namespace, &owner, self.kind, &spec, shared_as, &attempt.to_string()]);
            let mut stem = self.stem.as_str();
            while stem.len() + 1 + suffix.len() > LONGEST_NAME {
                let (end, _) = stem.char_indices().next_back().unwrap_or_default();
                stem = &stem[..end];
            }
            format!("{stem}-{suffix}")
        });
        names.find(|name| !is_taken(name)).unwrap_or_default()
    }
}
