//! What verbs do with a kind beyond what discovery says, as observed on the real server.

/// How a kind departs from the rule.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// Whether an update may leave `resourceVersion` out.
    pub unconditional_update: bool,
    /// Whether an update of what is missing creates it.
    pub create_on_update: bool,
    /// Whether the server counts `metadata.generation`: 1 on create, one more with each change of the desired state.
    pub has_generation: bool,
    /// What a completed deletion answers.
    pub delete_answer: DeleteAnswer,
    /// Whether a deletion that names no policy leaves the dependents behind.
    pub orphans_by_default: bool,
    /// Whether objects of the kind cannot own others, so that no deletion has to think of dependents.
    pub owns_nothing: bool,
    /// The fields a field selector may name.
    pub field_labels: FieldLabels,
}

/// The body that answers a completed deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteAnswer {
    /// A `Status` that names the object.
    Status,
    /// The object as it was.
    Object,
}

/// The fields a field selector may name, besides `metadata.name` and `metadata.namespace`.
#[derive(Debug, Clone)]
pub struct FieldLabels {
    /// Each label with the path of its value in the stored form, in dots.
    pub labels: Vec<(String, String)>,
    refusal: Refusal,
}

/// How the refusal of an unknown label is worded.
#[derive(Debug, Clone)]
enum Refusal {
    /// The kind has no labels of its own.
    Generic,
    Plain,
    NamesJob,
    NamesResourceSlice,
}

impl Behaviour {
    /// The behaviour of a custom kind.
    pub(crate) fn custom(field_labels: FieldLabels) -> Self {
        Self {
            unconditional_update: false,
            create_on_update: false,
            has_generation: true,
            delete_answer: DeleteAnswer::Status,
            orphans_by_default: false,
            owns_nothing: false,
            field_labels,
        }
    }
}

impl FieldLabels {
    /// The labels of a custom kind.
    pub(crate) fn custom(labels: Vec<(String, String)>) -> Self {
        Self { labels, refusal: Refusal::Plain }
    }

    /// What to answer to a label that is neither in the table nor the object's name or namespace.
    pub fn refusal(&self, label: &str) -> String {
        match self.refusal {
            Refusal::Generic => {
                format!("\"{label}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            }
            Refusal::Plain => format!("field label not supported: {label}"),
            Refusal::NamesJob => format!("field label \"{label}\" not supported for Job"),
            Refusal::NamesResourceSlice => {
                format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}")
            }
        }
    }

    /// Whether the kind accepts `metadata.namespace`; of the cluster-scoped kinds, those with labels of their own do not.
    pub fn accepts_namespace(&self, namespaced: bool) -> bool {
        namespaced || matches!(self.refusal, Refusal::Generic)
    }
}

/// The behaviour of a built-in kind.
pub(super) fn of(group: &str, plural: &str) -> Behaviour {
    let named = |list: &[&str]| list.contains(&plural);
    Behaviour {
        unconditional_update: !named(NEED_VERSION),
        create_on_update: named(CREATED_BY_UPDATE),
        has_generation: named(COUNT_GENERATIONS),
        delete_answer: if named(ANSWER_OBJECT) || group == "resource.k8s.io" {
            DeleteAnswer::Object
        } else {
            DeleteAnswer::Status
        },
        orphans_by_default: named(&["jobs", "replicationcontrollers"]),
        owns_nothing: named(&["events"]),
        field_labels: field_labels(group, plural),
    }
}

const NEED_VERSION: &[&str] = &[
    "apiservices",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "customresourcedefinitions",
    "leases",
    "mutatingwebhookconfigurations",
    "poddisruptionbudgets",
    "runtimeclasses",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "volumeattachments",
];

const CREATED_BY_UPDATE: &[&str] = &[
    "clusterrolebindings",
    "clusterroles",
    "endpoints",
    "events",
    "leases",
    "limitranges",
    "rolebindings",
    "roles",
    "runtimeclasses",
    "services",
];

const COUNT_GENERATIONS: &[&str] = &[
    "cronjobs",
    "customresourcedefinitions",
    "daemonsets",
    "deployments",
    "deviceclasses",
    "endpointslices",
    "flowschemas",
    "ingressclasses",
    "ingresses",
    "jobs",
    "mutatingwebhookconfigurations",
    "networkpolicies",
    "poddisruptionbudgets",
    "pods",
    "podtemplates",
    "priorityclasses",
    "prioritylevelconfigurations",
    "replicasets",
    "replicationcontrollers",
    "resourceslices",
    "statefulsets",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];

const ANSWER_OBJECT: &[&str] = &[
    "csidrivers",
    "csinodes",
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
];

fn field_labels(group: &str, plural: &str) -> FieldLabels {
    let plain = |labels| FieldLabels { labels: owned(labels), refusal: Refusal::Plain };
    match (group, plural) {
        ("", "pods") => plain(&[
            ("spec.nodeName", "spec.nodeName"),
            ("spec.host", "spec.nodeName"),
            ("spec.restartPolicy", "spec.restartPolicy"),
            ("spec.schedulerName", "spec.schedulerName"),
            ("spec.serviceAccountName", "spec.serviceAccountName"),
            ("spec.hostNetwork", "spec.hostNetwork"),
            ("status.phase", "status.phase"),
            ("status.podIP", "status.podIP"),
            ("status.podIPs", "status.podIPs"),
            ("status.nominatedNodeName", "status.nominatedNodeName"),
        ]),
        ("", "nodes") => plain(&[("spec.unschedulable", "spec.unschedulable")]),
        ("", "replicationcontrollers") => plain(&[("status.replicas", "status.replicas")]),
        ("", "namespaces") => plain(&[("status.phase", "status.phase")]),
        ("", "secrets") => plain(&[("type", "type")]),
        ("", "services") => plain(&[("spec.clusterIP", "spec.clusterIP"), ("spec.type", "spec.type")]),
        ("", "events") => plain(&[
            ("involvedObject.kind", "involvedObject.kind"),
            ("involvedObject.namespace", "involvedObject.namespace"),
            ("involvedObject.name", "involvedObject.name"),
            ("involvedObject.uid", "involvedObject.uid"),
            ("involvedObject.apiVersion", "involvedObject.apiVersion"),
            ("involvedObject.resourceVersion", "involvedObject.resourceVersion"),
            ("involvedObject.fieldPath", "involvedObject.fieldPath"),
            ("reason", "reason"),
            ("reportingComponent", "reportingComponent"),
            // Falls back to `reportingComponent` where the component is not set.
            ("source", "source.component"),
            ("type", "type"),
        ]),
        ("events.k8s.io", "events") => plain(&[
            ("regarding.kind", "involvedObject.kind"),
            ("regarding.namespace", "involvedObject.namespace"),
            ("regarding.name", "involvedObject.name"),
            ("regarding.uid", "involvedObject.uid"),
            ("regarding.apiVersion", "involvedObject.apiVersion"),
            ("regarding.resourceVersion", "involvedObject.resourceVersion"),
            ("regarding.fieldPath", "involvedObject.fieldPath"),
            ("reason", "reason"),
            ("reportingController", "reportingComponent"),
            ("type", "type"),
        ]),
        ("certificates.k8s.io", "certificatesigningrequests") => plain(&[("spec.signerName", "spec.signerName")]),
        ("batch", "jobs") => {
            FieldLabels { labels: owned(&[("status.successful", "status.succeeded")]), refusal: Refusal::NamesJob }
        }
        ("resource.k8s.io", "resourceslices") => FieldLabels {
            labels: owned(&[("spec.nodeName", "spec.nodeName"), ("spec.driver", "spec.driver")]),
            refusal: Refusal::NamesResourceSlice,
        },
        _ => FieldLabels { labels: Vec::new(), refusal: Refusal::Generic },
    }
}

fn owned(labels: &[(&str, &str)]) -> Vec<(String, String)> {
    labels.iter().map(|(label, path)| ((*label).to_owned(), (*path).to_owned())).collect()
}
