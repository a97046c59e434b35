//! The function that expands Interfaces into claims of addresses and VLANs, and keeps those in step with them.
//!
//! It decides first ([`verdict`]), then edits the items ([`children`]), and last of all, when every object has its name,
//! writes the conditions ([`report`]).

pub(crate) mod cluster;
pub(crate) mod request;
pub(crate) mod verdict;
pub(crate) mod wanted;

mod children;
mod report;

use crate::{
    Context, Function, FunctionError, ResourceList,
    functions::{
        dialect::Dialect,
        interface::{cluster::Clusters, report::Report, verdict::Verdict},
        package::Package,
    },
};

/// `orrery fn interface`
pub(crate) struct Interface;

impl Function for Interface {
    fn name(&self) -> &'static str {
        "interface"
    }

    fn about(&self) -> &'static str {
        "Expands Interfaces into claims of addresses and VLANs, and keeps those in step with Interfaces and cluster."
    }

    fn run(&self, list: &mut ResourceList, context: &Context) -> Result<(), FunctionError> {
        if list.items.is_empty() {
            list.results.info("the package is empty: there is nothing to expand");
            return Ok(());
        }
        let mut conditions = list.conditions()?;
        let package = Package::read(&list.items);
        let dialect = Dialect::choose(list, &package)?;
        let clusters = Clusters::read(&list.items, &package);
        let mut verdicts = Vec::with_capacity(package.interfaces.len());
        for &position in &package.interfaces {
            let interface = &list.items[position];
            let verdict = Verdict::of(interface, &list.items, &package, &clusters, dialect);
            if let Some(problem) = &verdict.problem {
                problem.report(interface, &mut list.results);
            }
            request::warn_of_misspelling(interface, dialect, &mut list.results);
            verdicts.push((position, verdict));
        }
        let (families, orphans) = children::reconcile(&mut list.items, &package, verdicts, dialect, &context.now);
        let statuses = Report::new(&list.items, dialect, &mut conditions).write(&families, &orphans);
        for (position, status) in statuses {
            status.store(&mut list.items[position]);
        }
        list.store_conditions(conditions)
    }
}
