//! Nobody hands out rights they do not have: what is checked when roles and bindings are written.

use serde::Deserialize;
use serde_json::Value;

use super::{
    Attributes, Target, User,
    rbac::{self, Policy, RoleRef, Rule},
};
use crate::{object, request::SpaceScope, schema, status::Status, verbs::Call};

/// What the user lacks who writes an aggregated role.
const NOT_CLUSTER_ADMIN: &str = "must have cluster-admin privileges to use the aggregationRule";

/// Refuses to write a role or a binding that hands out more than its writer has. `old` is what it takes the place of.
pub(crate) fn check(call: &Call, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    let role = match (call.resource.group.as_str(), call.resource.plural.as_str()) {
        (rbac::GROUP, "roles" | "clusterroles") => true,
        (rbac::GROUP, "rolebindings" | "clusterrolebindings") => false,
        _ => return Ok(()),
    };
    let user = &call.user;
    if user.is_master() || old.is_some_and(|old| only_collected(call, new, old)) {
        return Ok(());
    }
    let Some(policy) = call.shared.authorizer.policy(call.one_space()?) else { return Ok(()) };
    let writer = Writer { call, user, policy: &policy };
    let refused = if role { writer.check_role(new, old) } else { writer.check_binding(new)? };
    let name = match object::name(new) {
        "" => call.name(),
        name => name,
    };
    refused.map_err(|why| Status::forbidden(call.named(), name, &why))
}

/// Somebody who writes roles or bindings.
struct Writer<'a> {
    call: &'a Call,
    user: &'a User,
    policy: &'a Policy,
}

impl Writer<'_> {
    fn check_role(&self, new: &Value, old: Option<&Value>) -> Result<(), String> {
        if self.may("escalate", &self.call.resource.plural, self.call.name()) {
            return Ok(());
        }
        let namespace = self.call.namespace();
        let rules: Vec<Rule> = Option::deserialize(&new["rules"]).ok().flatten().unwrap_or_default();
        self.policy.may_grant(self.user, namespace, &rules)?;
        let aggregated = |role: &Value| !role["aggregationRule"].is_null();
        if aggregated(new) || old.is_some_and(aggregated) {
            let everything = self.policy.may_grant(self.user, namespace, &Rule::everything());
            everything.map_err(|_| NOT_CLUSTER_ADMIN.to_owned())?;
        }
        Ok(())
    }

    /// The outer failure is that the role does not exist.
    fn check_binding(&self, new: &Value) -> Result<Result<(), String>, Status> {
        let role = RoleRef::deserialize(&new["roleRef"]).unwrap_or_default();
        let resource = if role.kind == "Role" { "roles" } else { "clusterroles" };
        if self.may("bind", resource, &role.name) {
            return Ok(Ok(()));
        }
        let namespace = self.call.namespace();
        let Ok(rules) = self.policy.rules_of(&role, namespace) else {
            return Err(Status::not_found(self.call.named(), &role.name));
        };
        Ok(self.policy.may_grant(self.user, namespace, &rules))
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let target = Target::Resource {
            group: rbac::GROUP,
            resource,
            subresource: "",
            namespace: self.call.namespace(),
            name: name.into(),
        };
        let space: &SpaceScope = &self.call.space;
        self.policy.allows(self.user, &Attributes { space, verb, target }).is_ok()
    }
}

/// Whether nothing changed but what the garbage collector needs to be able to change.
fn only_collected(call: &Call, new: &Value, old: &Value) -> bool {
    let plain = |object: &Value| {
        let mut object = object.clone();
        schema::sparse(&call.resource.schemas, call.resource.schema, &mut object);
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
                metadata.remove(field);
            }
        }
        object
    };
    plain(new) == plain(old)
}
