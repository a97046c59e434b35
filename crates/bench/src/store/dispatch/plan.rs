//! Who watches and what is written, so that it is known beforehand what every watcher must be told.

use orrery_store::{Batch, Content, Expect, Key, Scope, Selector};

use super::super::{population::VALUE, random::Random};

/// Changes that are written together.
pub(crate) const BATCH: usize = 250;

/// Who watches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Audience {
    /// Nobody: what writing alone costs.
    Nobody,
    /// One watcher for each of 10 resources.
    Resources,
    /// One for each of 1,000 spaces of a resource.
    Spaces,
    /// One for each of 10,000 namespaces.
    Namespaces,
    /// One for each of 1,000 spaces, beside 99,000 who watch spaces in which nothing happens.
    SpacesBesideIdle,
    /// 1,000 watchers of resources, spaces, labels, namespaces and objects: five for each change.
    Mixed,
}

/// A round: what is there, who watches, what is written.
pub(crate) struct Plan {
    /// Creates every object once.
    pub(crate) first: Vec<Batch>,
    /// Writes every object as often as every other.
    pub(crate) batches: Vec<Batch>,
    pub(crate) watches: Vec<Watch>,
    /// How many watchers want each change.
    pub(crate) wanted_by: usize,
}

/// One who watches.
pub(crate) struct Watch {
    pub(crate) scope: Scope,
    pub(crate) selector: Selector,
    /// How many changes it must be told.
    pub(crate) expected: usize,
}

/// Where objects are: one in each namespace of each space, of each resource.
struct Tree {
    resources: usize,
    spaces: usize,
    namespaces: usize,
}

/// The same objects are written for all audiences of one watcher for each change.
const LARGE: Tree = Tree { resources: 10, spaces: 100, namespaces: 10 };
/// Four watchers for each of these 248 objects, and one for each of the 8 resources: 1,000 of them.
const SMALL: Tree = Tree { resources: 8, spaces: 31, namespaces: 1 };
const IDLE: usize = 99_000;
const LABEL: &str = "app";

impl Audience {
    /// The kinds of watchers: each change is wanted by one of each.
    fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Nobody => &[],
            Self::Resources => &[Kind::Resource],
            Self::Spaces | Self::SpacesBesideIdle => &[Kind::Space],
            Self::Namespaces => &[Kind::Namespace],
            Self::Mixed => &[Kind::Resource, Kind::Space, Kind::Label, Kind::Namespace, Kind::Object],
        }
    }

    fn tree(self) -> &'static Tree {
        if matches!(self, Self::Mixed) { &SMALL } else { &LARGE }
    }

    /// How often a watcher is told something in a round of about so many changes.
    pub(crate) fn deliveries(self, events: usize) -> usize {
        self.tree().passes(events) * self.tree().objects() * self.kinds().len()
    }
}

impl Plan {
    /// A round of about so many changes: every object is written as often as every other.
    pub(crate) fn new(audience: Audience, events: usize) -> anyhow::Result<Self> {
        let (tree, kinds) = (audience.tree(), audience.kinds());
        let mut random = Random::new(8);
        let first = tree.pass(&mut random)?;
        let mut batches = Vec::new();
        for _ in 0..tree.passes(events) {
            batches.extend(tree.pass(&mut random)?);
        }
        let mut watches = Vec::new();
        for kind in kinds {
            let (scopes, objects) = tree.scopes(*kind)?;
            let selector = match kind {
                Kind::Label => Selector::equals(LABEL, "web"),
                _ => Selector::everything(),
            };
            let expected = objects * tree.passes(events);
            watches.extend(scopes.into_iter().map(|scope| Watch { scope, selector: selector.clone(), expected }));
        }
        if matches!(audience, Audience::SpacesBesideIdle) {
            let scopes = (0..IDLE).map(|number| Scope::space("", &resource(0), &format!("idle-{number}")));
            watches.extend(scopes.map(|scope| Watch { scope, selector: Selector::everything(), expected: 0 }));
        }
        Ok(Self { first, batches, watches, wanted_by: kinds.len() })
    }
}

/// What kind of bucket a watcher is in.
#[derive(Clone, Copy)]
enum Kind {
    Resource,
    Space,
    Label,
    Namespace,
    Object,
}

impl Tree {
    fn objects(&self) -> usize {
        self.resources * self.spaces * self.namespaces
    }

    /// How often every object is written in a round of about so many changes.
    fn passes(&self, events: usize) -> usize {
        events / self.objects()
    }

    /// Writes every object once, in an order of its own.
    fn pass(&self, random: &mut Random) -> anyhow::Result<Vec<Batch>> {
        let mut numbers: Vec<usize> = (0..self.objects()).collect();
        random.shuffle(&mut numbers);
        let batches = numbers.chunks(BATCH).map(|numbers| {
            numbers.iter().try_fold(Batch::new(), |batch, number| {
                let content = Content::new(random.bytes(VALUE)).label(LABEL, "web");
                Ok(batch.put(self.key(*number)?, Expect::Anything, content))
            })
        });
        batches.collect()
    }

    fn key(&self, number: usize) -> anyhow::Result<Key> {
        let (number, namespace) = (number / self.namespaces, number % self.namespaces);
        let (resource_number, space_number) = (number / self.spaces, number % self.spaces);
        Ok(Key::new("", &resource(resource_number), &space(space_number), &self::namespace(namespace), "object")?)
    }

    /// The scopes of all watchers of a kind, and how many objects are in each.
    fn scopes(&self, kind: Kind) -> anyhow::Result<(Vec<Scope>, usize)> {
        let per_scope = match kind {
            Kind::Resource => self.spaces * self.namespaces,
            Kind::Space | Kind::Label => self.namespaces,
            Kind::Namespace | Kind::Object => 1,
        };
        let keys = (0..self.objects()).step_by(per_scope).map(|number| self.key(number));
        let scopes = keys.map(|key| {
            let key = key?;
            Ok(match kind {
                Kind::Resource => Scope::resource("", key.resource()),
                Kind::Space | Kind::Label => Scope::space("", key.resource(), key.space()),
                Kind::Namespace => Scope::namespace("", key.resource(), key.space(), key.namespace()),
                Kind::Object => Scope::object(&key),
            })
        });
        Ok((scopes.collect::<anyhow::Result<_>>()?, per_scope))
    }
}

fn resource(number: usize) -> String {
    format!("resource-{number}")
}

fn space(number: usize) -> String {
    format!("space-{number}")
}

fn namespace(number: usize) -> String {
    format!("namespace-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(audience: Audience, watchers: usize) {
        const SOME: usize = 10_000;
        let plan = Plan::new(audience, SOME).unwrap();
        assert_eq!(plan.watches.len(), watchers, "{audience:?}");
        let written: usize = plan.batches.iter().map(Batch::len).sum();
        let told: usize = plan.watches.iter().map(|watch| watch.expected).sum();
        assert_eq!([told, audience.deliveries(SOME)], [written * plan.wanted_by; 2], "{audience:?}");
        assert!(written > SOME * 9 / 10, "{audience:?}: {written}");
        let tree = audience.tree();
        for number in (0..tree.objects()).step_by(89) {
            let key = tree.key(number).unwrap();
            let watching = plan.watches.iter().filter(|watch| watch.scope.contains(&key)).count();
            assert_eq!(watching, plan.wanted_by, "{audience:?}: {key}");
        }
    }

    #[test]
    fn every_change_is_wanted_by_as_many_as_are_told() {
        check(Audience::Resources, 10);
        check(Audience::Spaces, 1_000);
        check(Audience::Namespaces, 10_000);
        check(Audience::SpacesBesideIdle, 100_000);
        check(Audience::Mixed, 1_000);
    }
}
