//! The cluster that a package is for, as its cluster object describes it.

use std::collections::HashMap;

use crate::{
    Item,
    functions::{dialect::Dialect, package::Package, problem::Problem},
};

/// What the functions need to know of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cluster {
    /// A ClusterContext.
    Seed { site: String, region: Option<String>, master: Option<String> },
    /// A WorkloadCluster.
    Nephio { name: String, cnis: Vec<String>, master: String },
}

/// Why there is no cluster to work with, and what that means for what exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoCluster {
    /// It is not in the package: what was made for it is superfluous.
    Missing,
    /// It is not usable: what was made for it is superfluous.
    Invalid(Problem),
    /// Nobody can say which one is meant: what exists stays as it is.
    Several(Problem),
}

impl Cluster {
    /// Reads a cluster object.
    pub(crate) fn read(item: &Item) -> Result<Self, Problem> {
        let text = |path: &[&str]| item.text(path).filter(|text| !text.is_empty()).map(str::to_owned);
        match Dialect::of_cluster(item) {
            Some(Dialect::Seed) => Ok(Self::Seed {
                site: text(&["spec", "siteCode"]).ok_or_else(|| {
                    Problem::new(
                        "spec invalid: mandatory field siteCode is missing from ClusterContext: without it the addresses of \
                         every site would match",
                    )
                })?,
                region: text(&["spec", "region"]),
                master: text(&["spec", "cniConfig", "masterInterface"]),
            }),
            _ => Self::read_workload_cluster(item),
        }
    }

    fn read_workload_cluster(item: &Item) -> Result<Self, Problem> {
        let missing =
            |field: &str, of: &str| Problem::new(format!("spec invalid: mandatory field {field} is missing from {of}"));
        let name = item.text(&["spec", "clusterName"]).unwrap_or_default();
        if name.is_empty() {
            return Err(missing("ClusterName", "WorkloadCluster"));
        }
        if name == "example" {
            return Err(missing("ClusterName", "WorkloadCluster: \"example\" stands for a name to come"));
        }
        let cnis: Vec<String> = item
            .get(&["spec", "cnis"])
            .into_iter()
            .flat_map(|list| list.elements())
            .filter_map(|cni| cni.as_str().map(str::to_owned))
            .collect();
        if cnis.is_empty() {
            return Err(missing("CNIConfig", "ClusterContext"));
        }
        let master = item.text(&["spec", "masterInterface"]).filter(|master| !master.is_empty());
        let master = master.ok_or_else(|| missing("MasterInterface", "ClusterContext"))?;
        Ok(Self::Nephio { name: name.to_owned(), cnis, master: master.to_owned() })
    }

    /// The interface of the node that attachments stand on.
    pub(crate) fn master(&self) -> Option<&str> {
        match self {
            Self::Seed { master, .. } => master.as_deref(),
            Self::Nephio { master, .. } => Some(master),
        }
    }
}

/// The clusters of a package and of those in it.
pub(crate) struct Clusters {
    /// By the folder of the package that they stand in.
    by_package: HashMap<String, Result<Cluster, NoCluster>>,
}

impl Clusters {
    /// Reads them all.
    pub(crate) fn read(items: &[Item], package: &Package) -> Self {
        let mut by_package = HashMap::new();
        for &position in &package.clusters {
            let item = &items[position];
            let cluster = Cluster::read(item).map_err(NoCluster::Invalid);
            by_package
                .entry(item.package().unwrap_or_default().to_owned())
                .and_modify(|earlier| *earlier = Err(several(item)))
                .or_insert(cluster);
        }
        Self { by_package }
    }

    /// The cluster of an Interface: that of its own package, else that of the nearest one around it, else the only one.
    pub(crate) fn of(&self, interface: &Item) -> &Result<Cluster, NoCluster> {
        const MISSING: &Result<Cluster, NoCluster> = &Err(NoCluster::Missing);
        let mut folder = interface.package().unwrap_or_default();
        loop {
            if let Some(cluster) = self.by_package.get(folder) {
                return cluster;
            }
            match folder.rsplit_once('/') {
                Some((outer, _)) => folder = outer,
                None if folder.is_empty() => break,
                None => folder = "",
            }
        }
        let mut all = self.by_package.values();
        all.next().filter(|_| self.by_package.len() == 1).unwrap_or(MISSING)
    }
}

fn several(item: &Item) -> NoCluster {
    NoCluster::Several(Problem::new(format!("multiple {} objects found in the kpt package", item.kind())))
}
