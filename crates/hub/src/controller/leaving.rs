//! Policies that leave: one that has states written to objects is held until those are taken back, also when it is deleted while
//! nobody looks.
//!
//! # Flow
//!
//! Before a state is written, the policies that want states get a finalizer. A policy that is being deleted and has it is asked
//! nothing any more, but the kinds it selects stay watched until its objects have been seen and their states taken back; then it
//! is let go. What a policy selected when a program before this one stored its Binding stays watched for as long.

use kube::{ResourceExt, core::DynamicObject};
use orrery_api::control::{BindingPolicySpec, BindingSpec, Modulation};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{
    path,
    space::Space,
    write::{self, Unwritten},
};
use crate::placement::{GroupResource, ObjectId, concerns};

/// KubeStellar's own, so that policies which come from there are let go too.
const HOLD: &str = "bindingpolicy.kubestellar.io/kscontroller";

/// Whether a policy has to be let go before it is gone.
pub(super) fn is_held(policy: &DynamicObject) -> bool {
    policy.finalizers().iter().any(|name| name == HOLD)
}

impl Space {
    /// A policy is being deleted.
    pub(super) fn leave(&mut self, policy: &DynamicObject) {
        let name = policy.name_any();
        self.remove_policy(&name);
        if is_held(policy) {
            let spec = policy.data.get("spec").and_then(|spec| BindingPolicySpec::deserialize(spec).ok());
            self.leaving.insert(name.as_str().into(), spec.unwrap_or_default());
        }
    }

    /// Notes whether a policy is to be held.
    pub(super) fn note_hold(&mut self, policy: &DynamicObject, spec: &BindingPolicySpec) {
        let name = policy.name_any().as_str().into();
        if !is_held(policy) && spec.downsync.iter().any(|clause| wants_status(&clause.modulation)) {
            self.unheld.insert(name);
        } else {
            self.unheld.remove(&name);
        }
    }

    /// Notes what may have had states written to it by a program before this one.
    pub(super) fn note_left_over(&mut self, binding: &BindingSpec) {
        let workload = &binding.workload;
        let objects = workload.cluster_scope.iter().chain(&workload.namespace_scope);
        let wanted = objects.filter(|bound| wants_status(&bound.modulation));
        self.left_over.extend(wanted.map(|bound| ObjectId::from(&bound.object).resource));
    }

    /// Whether objects of a resource may have states that nobody wants any more.
    pub(super) fn may_have_left_over(&self, resource: &GroupResource) -> bool {
        self.left_over.contains(resource) || self.leaving.values().any(|spec| concerns(spec, resource))
    }

    /// Holds the policies that want states.
    pub(super) async fn hold(&mut self, stop: &CancellationToken, failed: &impl Fn()) -> Result<(), Unwritten> {
        while let Some(policy) = self.unheld.pop_first() {
            let path = path::object(&path::policies(), "", &policy);
            let attempt = || write::set_finalizer(&self.client, &path, HOLD, true);
            if write::persist("a finalizer", stop, failed, attempt).await == Err(Unwritten::NotNow) {
                self.unheld.insert(policy);
                return Err(Unwritten::NotNow);
            }
        }
        Ok(())
    }

    /// Lets policies go whose states were taken back. Says whether other kinds are to be watched now.
    pub(super) async fn let_go(&mut self, stop: &CancellationToken, failed: &impl Fn()) -> Result<bool, Unwritten> {
        if self.delivery.is_dirty() {
            return Ok(false);
        }
        let is_stuck = |spec: &BindingPolicySpec| self.unwritable.keys().any(|resource| concerns(spec, resource));
        let free = self.leaving.iter().filter(|(_, spec)| !is_stuck(spec)).map(|(policy, _)| policy);
        let free: Vec<_> = free.cloned().collect();
        let before = self.left_over.len();
        self.left_over.retain(|resource| self.unwritable.contains_key(resource));
        let watches_others = !free.is_empty() || self.left_over.len() < before;
        self.rediscover |= watches_others;
        for policy in free {
            let path = path::object(&path::policies(), "", &policy);
            let attempt = || write::set_finalizer(&self.client, &path, HOLD, false);
            if write::persist("a finalizer", stop, failed, attempt).await == Err(Unwritten::NotNow) {
                return Err(Unwritten::NotNow);
            }
            self.leaving.remove(&policy);
        }
        Ok(watches_others)
    }
}

/// Whether the status of objects is written. Tables of StatusCollectors are objects of their own, which go with their owners.
fn wants_status(modulation: &Modulation) -> bool {
    modulation.want_singleton_reported_state || modulation.want_multi_wec_reported_state
}
