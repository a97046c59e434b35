//! The two dialects in which the functions of a package talk to each other: the seed's, and that of today's Nephio.

use crate::{
    Condition, Item, Status, Value,
    function::FunctionError,
    functions::{fingerprint, package::Package},
    list::ResourceList,
};

/// The annotation by which the seed's later revision names an owner.
pub(crate) const SEED_OWNER: &str = "krm-fn.nephio.org/owner";
/// The annotation by which the seed's later revision marks an object for deletion.
pub(crate) const SEED_DELETE: &str = "krm-fn.nephio.org/to-be-deleted";
/// The annotation by which Nephio names an owner.
pub(crate) const NEPHIO_OWNER: &str = "specializer.nephio.org/owner";
/// The annotation by which Nephio marks an object for deletion.
pub(crate) const NEPHIO_DELETE: &str = "specializer.nephio.org/delete";
/// The annotation by which Nephio names the network function that something is made for.
pub(crate) const NEPHIO_FOR: &str = "specializer.nephio.org/for";
/// The annotation of what stays in the package and is not applied to a cluster.
pub(crate) const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";

const INTERFACE_GROUP: &str = "req.nephio.org";
/// The version of Interfaces, for those that are not there any more.
pub(crate) const INTERFACE_VERSION: &str = "req.nephio.org/v1alpha1";

/// Which kinds, names, marks and condition types are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `ClusterContext`, `IPAllocation`, `VLANAllocation`, condition types with dashes.
    Seed,
    /// `WorkloadCluster`, `IPClaim`, `VLANClaim`, condition types with dots.
    Nephio,
}

impl Dialect {
    /// The cluster object of the package decides; without one the claims in it; without those the setting `dialect`.
    pub(crate) fn choose(list: &ResourceList, package: &Package) -> Result<Self, FunctionError> {
        let of_cluster = |&position: &usize| Self::of_cluster(&list.items[position]);
        let mut clusters = package.clusters.iter().filter_map(of_cluster);
        if let Some(first) = clusters.next() {
            return match clusters.all(|other| other == first) {
                true => Ok(first),
                false => Err(FunctionError::new(
                    "the package has both a ClusterContext and a WorkloadCluster, which belong to different dialects: \
                     remove one of them",
                )),
            };
        }
        if let Some(&claim) = package.claims.iter().find(|&&claim| owner_name(&list.items[claim]).is_some()) {
            return Ok(match list.items[claim].kind().ends_with("Allocation") {
                true => Self::Seed,
                false => Self::Nephio,
            });
        }
        match list.setting("dialect") {
            None | Some("nephio") => Ok(Self::Nephio),
            Some("seed") => Ok(Self::Seed),
            Some(other) => Err(FunctionError::new(format!("unknown dialect {other:?}: write seed or nephio"))),
        }
    }

    /// The dialect of a cluster object; nothing for other objects.
    pub(crate) fn of_cluster(item: &Item) -> Option<Self> {
        match item.kind() {
            "ClusterContext" if item.group() == "infra.nephio.org" => Some(Self::Seed),
            "WorkloadCluster" if item.group() == "infra.nephio.org" => Some(Self::Nephio),
            _ => None,
        }
    }

    /// The dialect in which conditions about a claim are written, and in which it is marked.
    pub(crate) fn of_claim(claim: &Item) -> Self {
        if claim.group() == "ipam.nephio.org" { Self::Seed } else { Self::Nephio }
    }

    /// What stands between the parts of a condition type.
    pub(crate) fn separator(self) -> char {
        match self {
            Self::Seed => '-',
            Self::Nephio => '.',
        }
    }

    /// The type of the condition about an object.
    pub(crate) fn condition_type(self, api_version: &str, kind: &str, name: &str) -> String {
        match self {
            Self::Seed => {
                format!("{}-{}-{name}", api_version.replace(['.', '/'], "-"), kind.to_ascii_lowercase())
            }
            Self::Nephio => format!("{api_version}.{kind}.{name}"),
        }
    }

    /// A condition about something that is not done yet. Nephio's says for whom, and what is going on.
    pub(crate) fn pending(self, kind: String, owner: &str, message: &str) -> Condition {
        let condition = Condition::new(kind, Status::False);
        match self {
            Self::Seed => condition,
            Self::Nephio => condition.because(owner).saying(message),
        }
    }

    /// A condition about something that is done. The reason of the earlier one stays.
    pub(crate) fn done(self, kind: String, earlier: Option<&Condition>) -> Condition {
        let mut condition = Condition::new(kind, Status::True);
        condition.reason = earlier.and_then(|earlier| earlier.reason.clone());
        match self {
            Self::Seed => condition,
            Self::Nephio => condition.saying(DONE),
        }
    }

    /// A condition about something that went wrong. The reason of the earlier one stays.
    pub(crate) fn failed(kind: String, earlier: Option<&Condition>, message: &str) -> Condition {
        let mut condition = Condition::new(kind, Status::False).saying(message);
        condition.reason = earlier.and_then(|earlier| earlier.reason.clone());
        condition
    }

    fn deletion_mark(self) -> &'static str {
        match self {
            Self::Seed => SEED_DELETE,
            Self::Nephio => NEPHIO_DELETE,
        }
    }

    /// The annotation that makes an Interface the owner of what is made for it, with its value.
    pub(crate) fn owner_annotation(self, interface: &Item) -> (&'static str, String) {
        match self {
            Self::Seed => {
                let kind = interface.kind().to_ascii_lowercase();
                (SEED_OWNER, format!("{}/{kind}/{}", interface.api_version(), interface.name()))
            }
            Self::Nephio => (NEPHIO_OWNER, reference(interface)),
        }
    }
}

/// What follows the type of an Interface's condition in that of its attachment definition, in the seed's dialect.
pub(crate) const ATTACHMENT_SUFFIX: &str = "-nad-generated";
/// What Nephio's conditions say when all is done.
pub(crate) const DONE: &str = "update done";

/// The type of the condition about the attachment definition of an Interface, in the seed's dialect.
pub(crate) fn seed_attachment_type(api_version: &str, interface: &str) -> String {
    Dialect::Seed.condition_type(api_version, "Interface", interface) + ATTACHMENT_SUFFIX
}

/// The type of the condition about an attachment definition, in Nephio's dialect.
pub(crate) fn nephio_attachment_type(name: &str) -> String {
    Dialect::Nephio.condition_type("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", name)
}

/// An object in the notation of Nephio's annotations and reasons: `<apiVersion>.<Kind>.<name>`.
pub(crate) fn reference(item: &Item) -> String {
    Dialect::Nephio.condition_type(item.api_version(), item.kind(), item.name())
}

/// The name in such a reference. It may hold dots itself, as the group does, but version and kind do not.
pub(crate) fn referenced_name(reference: &str) -> Option<&str> {
    let (_, rest) = reference.rsplit_once('/').unwrap_or(("", reference));
    rest.splitn(3, '.').nth(2).filter(|name| !name.is_empty())
}

/// Whether a reference is to an Interface.
pub(crate) fn is_interface_reference(reference: &str) -> bool {
    let Some((group, rest)) = reference.split_once('/') else { return false };
    group == INTERFACE_GROUP && rest.split('.').nth(1) == Some("Interface")
}

/// The name of the Interface that owns an object, by any of the ways in which that is said.
pub(crate) fn owner_name(item: &Item) -> Option<&str> {
    if let Some(owner) = item.annotation(SEED_OWNER) {
        let parts: Vec<&str> = owner.splitn(4, '/').collect();
        return match parts[..] {
            [INTERFACE_GROUP, _, kind, name] if kind.eq_ignore_ascii_case("interface") => Some(name),
            _ => None,
        };
    }
    if let Some(owner) = item.annotation(NEPHIO_OWNER) {
        return referenced_name(owner).filter(|_| is_interface_reference(owner));
    }
    let mut references = item.get(&["metadata", "ownerReferences"])?.elements();
    let of_interface = references.find(|reference| {
        let group = reference.text(&["apiVersion"]).and_then(|version| version.split('/').next());
        reference.text(&["kind"]) == Some("Interface") && group == Some(INTERFACE_GROUP)
    });
    of_interface?.text(&["name"])
}

/// The seed's owner reference in a form that the API accepts. An object in a package has no uid; the one given here is made
/// from its name, and what carries it is never applied to a cluster, where nothing of that uid exists.
pub(crate) fn owner_reference(interface: &Item) -> Value {
    let uid = interface.text(&["metadata", "uid"]).map_or_else(
        || fingerprint::uuid(&[interface.namespace().unwrap_or_default(), &reference(interface)]),
        str::to_owned,
    );
    Value::object()
        .with("apiVersion", interface.api_version())
        .with("kind", interface.kind())
        .with("name", interface.name())
        .with("uid", uid)
}

/// Whether an object is marked for deletion, in either dialect.
pub(crate) fn is_marked(item: &Item) -> bool {
    let timestamp = item.text(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_empty());
    timestamp || [SEED_DELETE, NEPHIO_DELETE].into_iter().any(|mark| item.annotation(mark) == Some("true"))
}

/// Marks a claim for deletion in its dialect. A mark that is there is never rewritten.
pub(crate) fn mark_claim(claim: &mut Item, now: &str) {
    if is_marked(claim) {
        return;
    }
    let dialect = Dialect::of_claim(claim);
    claim.set_annotation(dialect.deletion_mark(), "true");
    if dialect == Dialect::Seed {
        claim.set(&["metadata", "deletionTimestamp"], now);
    }
}

/// Marks an attachment definition for deletion. It is applied to clusters, where a time of deletion must not be made up.
pub(crate) fn mark_attachment(attachment: &mut Item, dialect: Dialect) {
    if !is_marked(attachment) {
        attachment.set_annotation(dialect.deletion_mark(), "true");
    }
}

/// Takes all marks from an object.
pub(crate) fn unmark(item: &mut Item) {
    item.remove(&["metadata", "deletionTimestamp"]);
    item.remove_annotation(SEED_DELETE);
    item.remove_annotation(NEPHIO_DELETE);
}
