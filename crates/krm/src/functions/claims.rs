//! What ipam and vlan have in common: they serve the claims of a package, and let go of those that are marked for deletion.

use std::collections::HashSet;

use crate::{
    Context, FunctionError, Item, ResourceList, Results, Value,
    functions::{
        dialect::{self, Dialect},
        package::{Package, Resource},
        problem::Problem,
    },
};

/// What a claim gets: fields of its status.
pub(crate) type Grant = Vec<(&'static str, Value)>;

/// How one resource is given out.
pub(crate) trait Allocator {
    /// What is claimed.
    const RESOURCE: Resource;
    /// All fields of the status that a grant may have; those that it does not have are removed.
    const FIELDS: &'static [&'static str];

    /// Decides about all claims at once, in their order.
    fn allocate(demand: &Demand<'_>, results: &mut Results) -> Vec<Result<Grant, Problem>>;
}

/// What there is to decide about.
pub(crate) struct Demand<'a> {
    /// The package.
    pub(crate) items: &'a [Item],
    /// Where the claims stand that are to be served.
    pub(crate) claims: &'a [usize],
    /// What several packages share.
    pub(crate) pools: &'a [Item],
}

/// Who is served when: what somebody has is not given to another, and what somebody needs is not given to one who can take
/// any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Keep,
    Named,
    Any,
}

impl Turn {
    pub(crate) const ORDER: [Self; 3] = [Self::Keep, Self::Named, Self::Any];
}

/// Serves the claims of a package.
pub(crate) fn serve<A: Allocator>(list: &mut ResourceList, context: &Context) -> Result<(), FunctionError> {
    if list.items.is_empty() {
        list.results.info("the package is empty: there is nothing to allocate");
        return Ok(());
    }
    let mut conditions = list.conditions()?;
    let package = Package::read(&list.items);
    let claims = package.claims.iter().copied().filter(|&claim| Resource::of(&list.items[claim]) == Some(A::RESOURCE));
    let (released, claims): (HashSet<usize>, Vec<usize>) = {
        let (released, claims) = claims.partition::<Vec<usize>, _>(|&claim| dialect::is_marked(&list.items[claim]));
        (released.into_iter().collect(), claims)
    };
    let grants = A::allocate(&Demand { items: &list.items, claims: &claims, pools: &context.pools }, &mut list.results);
    for (&position, grant) in claims.iter().zip(grants) {
        let claim = &mut list.items[position];
        let kind = package.claim_condition(claim);
        let earlier = conditions.get(&kind);
        match &grant {
            Ok(_) if conditions.is_true(&kind) => {}
            Ok(_) => {
                let done = Dialect::of_claim(claim).done(kind, earlier);
                conditions.set(done);
            }
            Err(problem) => {
                problem.report(claim, &mut list.results);
                let failed = Dialect::failed(kind, earlier, &problem.message);
                conditions.set(failed);
            }
        }
        write_status(claim, A::FIELDS, grant.unwrap_or_default());
    }
    for &position in &released {
        conditions.remove(&package.claim_condition(&list.items[position]));
    }
    remove(&mut list.items, &released);
    list.store_conditions(conditions)
}

fn write_status(claim: &mut Item, fields: &[&str], grant: Grant) {
    for field in fields {
        if !grant.iter().any(|(granted, _)| granted == field) {
            claim.remove(&["status", field]);
        }
    }
    for (field, value) in grant {
        claim.set(&["status", field], value);
    }
}

/// Takes items out of the package.
pub(crate) fn remove(items: &mut Vec<Item>, positions: &HashSet<usize>) {
    if positions.is_empty() {
        return;
    }
    let mut position = 0;
    items.retain(|_| {
        position += 1;
        !positions.contains(&(position - 1))
    });
}

/// Who an object is, across packages and pools: a claim in a package and the same in a pool hold the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    kind: String,
    namespace: String,
    name: String,
}

impl Identity {
    /// The identity of an item; without a namespace it is in `default`.
    pub(crate) fn of(item: &Item) -> Self {
        Self {
            kind: item.kind().to_owned(),
            namespace: item.namespace().unwrap_or(DEFAULT_NAMESPACE).to_owned(),
            name: item.name().to_owned(),
        }
    }
}

/// Where things are of which no namespace is said.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// Pools and package together: what is in both counts as it stands in the package. `from` says which kinds are meant.
pub(crate) fn pool_objects<'i>(
    items: &'i [Item],
    pools: &'i [Item],
    is_pool: impl Fn(&Item) -> bool + Copy + 'i,
) -> Vec<&'i Item> {
    let here: HashSet<Identity> = items.iter().filter(|item| is_pool(item)).map(Identity::of).collect();
    let shared = pools.iter().filter(|item| is_pool(item) && !here.contains(&Identity::of(item)));
    let all = shared.chain(items.iter().filter(|item| is_pool(item)));
    all.filter(|item| !dialect::is_marked(item)).collect()
}

/// A number below nested keys, in any of YAML's notations or as a string; `Err` is a text that is none.
pub(crate) fn number<'i>(item: &'i Item, path: &[&str]) -> Option<Result<i64, &'i str>> {
    let node = item.get(path).filter(|node| !node.is_null())?;
    let text = node.as_str().unwrap_or_default();
    Some(node.as_int().or_else(|| text.parse().ok()).ok_or(text))
}

/// What a person reads in a message: `IPClaim n3`.
pub(crate) fn describe(item: &Item) -> String {
    match item.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", item.kind(), item.name()),
        None => format!("{} {}", item.kind(), item.name()),
    }
}
