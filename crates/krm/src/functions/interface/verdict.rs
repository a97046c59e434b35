//! What is to become of an Interface: its children, or the reason why there are none.

use crate::{
    Item,
    functions::{
        dialect::{ATTACHMENT_SUFFIX, Dialect},
        interface::{
            cluster::{Cluster, Clusters, NoCluster},
            request::Request,
            wanted::{self, Wanted},
        },
        package::Package,
        problem::Problem,
    },
};

/// Said of a child that nothing needs any more.
pub(crate) const DELETE: &str = "delete resource";
/// Said of a child whose cluster is not usable.
const NOT_READY: &str = "not ready";

/// The decision about one Interface.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Why it cannot be served.
    pub(crate) problem: Option<Problem>,
    pub(crate) plan: Plan,
}

/// What to do with the children.
#[derive(Debug)]
pub(crate) enum Plan {
    /// They stay as they are: a slip of the pen must not release addresses that are in use.
    LeaveAlone,
    /// They should be these and no others.
    Children {
        claims: Vec<Wanted>,
        /// The name of the attachment definition.
        attachment: Option<String>,
        /// Said of those that go.
        farewell: &'static str,
    },
}

impl Verdict {
    /// Decides about an Interface.
    pub(crate) fn of(
        interface: &Item,
        items: &[Item],
        package: &Package,
        clusters: &Clusters,
        dialect: Dialect,
    ) -> Self {
        let request = check_name(interface, items, package, dialect).and_then(|()| Request::read(interface));
        let request = match request {
            Ok(request) => request,
            Err(problem) => return Self::leave_alone(problem),
        };
        if request.is_default_network() {
            return Self { problem: None, plan: no_children(DELETE) };
        }
        match clusters.of(interface) {
            Ok(cluster) => Self::in_cluster(interface, &request, cluster),
            Err(NoCluster::Missing) => Self { problem: Some(no_cluster(dialect)), plan: no_children(DELETE) },
            Err(NoCluster::Invalid(problem)) => Self { problem: Some(problem.clone()), plan: no_children(NOT_READY) },
            Err(NoCluster::Several(problem)) => Self::leave_alone(problem.clone()),
        }
    }

    fn in_cluster(interface: &Item, request: &Request, cluster: &Cluster) -> Self {
        match wanted::wanted(interface, request, cluster) {
            Ok(claims) => {
                let attachment = wanted::attachment_name(interface, request);
                Self { problem: None, plan: Plan::Children { claims, attachment, farewell: DELETE } }
            }
            Err(problem) => Self::leave_alone(problem),
        }
    }

    fn leave_alone(problem: Problem) -> Self {
        Self { problem: Some(problem), plan: Plan::LeaveAlone }
    }
}

fn no_children(farewell: &'static str) -> Plan {
    Plan::Children { claims: Vec::new(), attachment: None, farewell }
}

fn no_cluster(dialect: Dialect) -> Problem {
    Problem::new(match dialect {
        Dialect::Seed => "the package has no ClusterContext: add the one of the cluster that the package is for",
        Dialect::Nephio => "stage1: cannot populate new resource err: workload cluster is missing from the kpt package",
    })
}

/// Conditions are kept by name: an Interface without a name of its own has none.
fn check_name(interface: &Item, items: &[Item], package: &Package, dialect: Dialect) -> Result<(), Problem> {
    let name = interface.name();
    if name.is_empty() {
        return Err(Problem::at("metadata.name", "metadata.name is missing from Interface"));
    }
    let namesakes = package.interfaces_named(name).iter();
    if namesakes.filter(|&&other| items[other].namespace() == interface.namespace()).count() > 1 {
        let message = format!("several Interfaces of the package are named {name}: rename all but one");
        return Err(Problem::at("metadata.name", message));
    }
    let base = name.strip_suffix(ATTACHMENT_SUFFIX).filter(|_| dialect == Dialect::Seed);
    if let Some(base) = base.filter(|base| !package.interfaces_named(base).is_empty()) {
        let message =
            format!("the condition of an Interface named {name} is that of the attachment of {base}: rename it");
        return Err(Problem::at("metadata.name", message));
    }
    Ok(())
}
