//! Resync requests that wait until a source knows all it wants. Agents ask again, so a lost one only costs time.

use std::{collections::BTreeMap, mem::size_of};

use crate::{ClusterName, Dialect, HeldVersion, ResourceId, SourceId, SpecResync};

/// Bytes of requests that wait.
const MOST: usize = 64 << 20;
/// Bytes of requests of one cluster that wait: a list of about 50,000 works.
const MOST_OF_ONE: usize = 8 << 20;

/// The requests, by cluster, so that none can crowd out the others.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    clusters: BTreeMap<ClusterName, Requests>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Requests {
    /// By page: whose works it lists, and after which. A newer one replaces an older one.
    pages: BTreeMap<(Option<SourceId>, Option<ResourceId>), (Dialect, SpecResync)>,
    bytes: usize,
}

impl Deferred {
    /// Keeps a request, unless there is no room for it.
    pub(super) fn push(&mut self, dialect: Dialect, request: SpecResync) {
        let (bytes, page) = (cost(&request), page(&request));
        let requests = self.clusters.entry(request.cluster.clone()).or_default();
        let older = requests.pages.get(&page).map_or(0, |(_, older)| cost(older));
        if requests.bytes + bytes > MOST_OF_ONE + older || self.bytes + bytes > MOST + older {
            return;
        }
        requests.bytes = requests.bytes + bytes - older;
        self.bytes = self.bytes + bytes - older;
        requests.pages.insert(page, (dialect, request));
    }

    /// All that wait, cluster by cluster.
    pub(super) fn into_requests(self) -> impl Iterator<Item = (Dialect, SpecResync)> {
        self.clusters.into_values().flat_map(|requests| requests.pages.into_values())
    }
}

fn page(request: &SpecResync) -> (Option<SourceId>, Option<ResourceId>) {
    let scope = request.scope.as_ref();
    (scope.and_then(|scope| scope.listed.clone()), scope.and_then(|scope| scope.after.clone()))
}

/// About what a request takes up.
fn cost(request: &SpecResync) -> usize {
    let text =
        |held: &HeldVersion| held.id.as_str().len() + held.epoch.as_ref().map_or(0, |epoch| epoch.as_str().len());
    let listed: usize = request.versions.iter().map(|held| size_of::<HeldVersion>() + text(held)).sum();
    let others = request.scope.as_ref().map_or(0, |scope| scope.others.iter().map(|other| other.as_str().len()).sum());
    size_of::<SpecResync>() + listed + others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Version, event::Scope};

    fn request(cluster: &str, after: &str, works: usize) -> SpecResync {
        let held = |number| HeldVersion {
            id: format!("work-{number}").parse().unwrap(),
            version: Version::default(),
            epoch: None,
        };
        let scope = Scope { after: Some(after.parse().unwrap()), ..Scope::default() };
        let cluster = cluster.parse().unwrap();
        SpecResync { cluster, addressee: None, scope: Some(scope), versions: (0..works).map(held).collect() }
    }

    fn waiting(deferred: Deferred) -> Vec<(String, usize)> {
        let requests = deferred.into_requests();
        requests.map(|(_, request)| (request.cluster.to_string(), request.versions.len())).collect()
    }

    #[test]
    fn a_page_waits_once_the_newest_of_it() {
        let mut deferred = Deferred::default();
        for (cluster, after, works) in [("b", "x", 1), ("a", "x", 2), ("b", "x", 3), ("b", "y", 4)] {
            deferred.push(Dialect::Seed, request(cluster, after, works));
        }
        let kept: usize = deferred
            .clusters
            .values()
            .flat_map(|requests| requests.pages.values())
            .map(|(_, request)| cost(request))
            .sum();
        assert_eq!(deferred.bytes, kept);
        assert_eq!(waiting(deferred), [("a".into(), 2), ("b".into(), 3), ("b".into(), 4)]);
    }

    #[test]
    fn one_cluster_cannot_crowd_out_the_others() {
        let mut deferred = Deferred::default();
        for number in 0..1000 {
            deferred.push(Dialect::Seed, request("greedy", &format!("p{number}"), 1000));
        }
        assert!(deferred.bytes <= MOST_OF_ONE);
        deferred.push(Dialect::Seed, request("modest", "x", 1));
        assert_eq!(waiting(deferred).last(), Some(&("modest".into(), 1)));
    }
}
