//! Which objects of a space go to which clusters.
//!
//! Flow: what is known of policies, objects, namespaces and clusters is told to a [`Resolution`], one change at a time; each
//! change answers which policies it touched. A touched policy's answer is read ([`Resolution::answer`]) and written as one or more
//! Bindings ([`parts`]).
//!
//! Guarantees: the answers depend on what is known, not on the order in which it was learnt. A change costs what it touches: an
//! object is tested against each policy, its resource first; a policy against the objects of the resources it names; a change of
//! a namespace's labels judges its members again, one of a cluster's labels the cluster selectors.

mod clause;
mod object;
pub mod parts;
mod resolution;

pub use clause::policy_concerns as concerns;
pub use object::{GroupResource, ObjectFacts, ObjectId};
pub use resolution::{Answer, Resolution, SupposedFacts, Touched};
