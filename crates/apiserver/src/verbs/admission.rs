//! What a write takes from other objects: priorities, default classes, whether a volume may grow and devices be administered.

use orrery_store::{Key, ListOptions, Scope};
use serde_json::{Value, json};

use super::{named, stored};
use crate::{
    field::{FieldError, Path},
    object,
    quantity::Quantity,
    registry::Resource,
    server::Shared,
    status::{Result, Status},
};

/// The label of namespaces from which devices may be administered.
const ADMINISTERS: &str = "resource.kubernetes.io/admin-access";

/// Where a write happens.
pub(super) struct Place<'a> {
    pub(super) shared: &'a Shared,
    pub(super) space: &'a str,
    pub(super) resource: &'a Resource,
}

impl Place<'_> {
    /// Adds to a new object, in its sparse form, what others decide, before anything is judged.
    pub(super) fn fill(&self, object: &mut Value) -> Result<()> {
        match (self.resource.group.as_str(), self.resource.kind.as_str()) {
            ("", "Pod") => self.set_priority(object),
            ("", "PersistentVolumeClaim") => {
                self.default_storage_class(object);
                Ok(())
            }
            ("networking.k8s.io", "Ingress") => {
                self.default_ingress_class(object);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Judges an object beside the others, when it is right in itself; `old` is absent on create.
    pub(super) fn judge(&self, new: &Value, old: Option<&Value>) -> Result<()> {
        match (self.resource.group.as_str(), self.resource.kind.as_str(), old) {
            ("scheduling.k8s.io", "PriorityClass", _) => self.one_default_priority(new, old),
            ("", "PersistentVolumeClaim", Some(old)) => self.may_grow(new, old),
            _ => Ok(()),
        }
    }

    fn refuse(&self, object: &Value, why: &str) -> Status {
        let name = object::name(object);
        let name = if name.is_empty() { object::text(object, "generateName") } else { name };
        Status::forbidden(named(self.resource), name, why)
    }

    /// An object without a namespace.
    fn find(&self, group: &str, resource: &str, name: &str) -> Option<Value> {
        let key = Key::new(group, resource, self.space, "", name).ok()?;
        Some(stored(&*self.shared.store.get(&key)?).ok()?.parse("", ""))
    }

    /// All objects of a resource without namespaces.
    fn all(&self, group: &str, resource: &str) -> Vec<Value> {
        let scope = Scope::space(group, resource, self.space);
        let list = self.shared.store.list(&scope, &ListOptions::default()).map(|list| list.objects).unwrap_or_default();
        list.iter().filter_map(|object| Some(stored(object).ok()?.parse("", ""))).collect()
    }

    /// A pod's priority is that of its class, or of the class for pods without one.
    fn set_priority(&self, pod: &mut Value) -> Result<()> {
        let name = pod.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
        let class = match name.as_str() {
            "" => self.default_priority_class(),
            name => {
                let class = self.find("scheduling.k8s.io", "priorityclasses", name);
                let missing = || self.refuse(pod, &format!("no PriorityClass with name {name} was found"));
                Some(class.ok_or_else(missing)?)
            }
        };
        let policy = class.as_ref().map_or(json!("PreemptLowerPriority"), |class| class["preemptionPolicy"].clone());
        let priority = class.as_ref().and_then(|class| class["value"].as_i64()).unwrap_or(0);
        if let Some(given) = pod.pointer("/spec/priority").and_then(Value::as_i64).filter(|given| *given != priority) {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
            );
            return Err(self.refuse(pod, &why));
        }
        let given = pod.pointer("/spec/preemptionPolicy").and_then(Value::as_str);
        if let (Some(given), Some(policy)) = (given, policy.as_str())
            && given != policy
        {
            let why = format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            );
            return Err(self.refuse(pod, &why));
        }
        if let Some(class) = class.filter(|_| name.is_empty()) {
            pod["spec"]["priorityClassName"] = object::name(&class).into();
        }
        pod["spec"]["priority"] = priority.into();
        if !policy.is_null() {
            pod["spec"]["preemptionPolicy"] = policy;
        }
        Ok(())
    }

    /// The class of pods that name none; of several the one with the lowest priority.
    fn default_priority_class(&self) -> Option<Value> {
        let classes = self.all("scheduling.k8s.io", "priorityclasses").into_iter();
        classes.filter(|class| class["globalDefault"] == true).min_by_key(|class| class["value"].as_i64().unwrap_or(0))
    }

    fn one_default_priority(&self, class: &Value, old: Option<&Value>) -> Result<()> {
        if class.get("globalDefault") != Some(&Value::Bool(true)) {
            return Ok(());
        }
        match self.default_priority_class() {
            Some(other) if old.is_none() || object::name(&other) != object::name(class) => {
                let why = format!(
                    "PriorityClass {} is already marked as default. Only one default can exist",
                    object::name(&other)
                );
                Err(self.refuse(class, &why))
            }
            _ => Ok(()),
        }
    }

    fn default_storage_class(&self, claim: &mut Value) {
        let named = claim.pointer("/spec/storageClassName").is_some()
            || claim.pointer("/metadata/annotations/volume.beta.kubernetes.io~1storage-class").is_some();
        if named {
            return;
        }
        let marks =
            ["storageclass.kubernetes.io~1is-default-class", "storageclass.beta.kubernetes.io~1is-default-class"];
        if let Some(name) = self.newest_default("storage.k8s.io", "storageclasses", &marks) {
            claim["spec"]["storageClassName"] = name.into();
        }
    }

    fn default_ingress_class(&self, ingress: &mut Value) {
        let named = ingress.pointer("/spec/ingressClassName").is_some()
            || ingress.pointer("/metadata/annotations/kubernetes.io~1ingress.class").is_some();
        if named {
            return;
        }
        let marks = ["ingressclass.kubernetes.io~1is-default-class"];
        if let Some(name) = self.newest_default("networking.k8s.io", "ingressclasses", &marks) {
            ingress["spec"]["ingressClassName"] = name.into();
        }
    }

    /// The class that is marked as the default; of several the newest.
    fn newest_default(&self, group: &str, resource: &str, marks: &[&str]) -> Option<String> {
        let marked = |class: &Value| {
            marks.iter().any(|mark| {
                class.pointer(&format!("/metadata/annotations/{mark}")).and_then(Value::as_str) == Some("true")
            })
        };
        let mut classes: Vec<Value> = self.all(group, resource).into_iter().filter(marked).collect();
        classes.sort_by(|one, other| {
            let made = |class: &Value| object::text(class, "creationTimestamp").to_owned();
            made(other).cmp(&made(one)).then_with(|| object::name(one).cmp(object::name(other)))
        });
        classes.first().map(|class| object::name(class).to_owned())
    }

    /// Devices are administered from namespaces that say so. Templates are told of with the paths of claims.
    pub(super) fn unadministered(&self, claim: &Value) -> Vec<FieldError> {
        let requests = match (self.resource.group.as_str(), self.resource.kind.as_str()) {
            ("resource.k8s.io", "ResourceClaim") => "/spec/devices/requests",
            ("resource.k8s.io", "ResourceClaimTemplate") => "/spec/spec/devices/requests",
            _ => return Vec::new(),
        };
        let mut requests = claim.pointer(requests).and_then(Value::as_array).into_iter().flatten();
        let asked = requests.position(|request| request.pointer("/exactly/adminAccess") == Some(&Value::Bool(true)));
        let Some(at) = asked else { return Vec::new() };
        let namespace = self.find("", "namespaces", object::text(claim, "namespace")).unwrap_or_default();
        if namespace["metadata"]["labels"][ADMINISTERS] == "true" {
            return Vec::new();
        }
        let path = format!("spec.devices.requests[{at}].adminAccess");
        let detail =
            format!("admin access to devices requires the `{ADMINISTERS}: true` label on the containing namespace");
        vec![FieldError::forbidden(&Path::ROOT.child(&path), &detail)]
    }

    /// A claim may grow if it has a volume of a class that allows it.
    fn may_grow(&self, new: &Value, old: &Value) -> Result<()> {
        let size = |claim: &Value| {
            let text = claim.pointer("/spec/resources/requests/storage").and_then(Value::as_str);
            text.and_then(|text| Quantity::parse(text).ok()).unwrap_or_else(Quantity::zero)
        };
        if size(new).compare(&size(old)).is_le() {
            return Ok(());
        }
        if old.pointer("/status/phase").and_then(Value::as_str) != Some("Bound") {
            return Err(self.refuse(new, "Only bound persistent volume claims can be expanded"));
        }
        let class = |claim: &Value| {
            let noted = claim.pointer("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
            let named = noted.or_else(|| claim.pointer("/spec/storageClassName"));
            named.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let growing = |name: &str| {
            let class = self.find("storage.k8s.io", "storageclasses", name);
            class.is_some_and(|class| class["allowVolumeExpansion"] == true)
        };
        let name = class(new);
        if !name.is_empty() && name == class(old) && growing(&name) {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        Err(self.refuse(new, why))
    }
}
