//! The function that gives VLANs to claims, out of VLAN indexes in the package and in shared pools.

use std::collections::HashMap;

use crate::{
    Context, Function, FunctionError, Item, ResourceList, Results, Value,
    functions::{
        claims::{self, Allocator, DEFAULT_NAMESPACE, Demand, Grant, Identity, Turn},
        interface::wanted::VLAN_CLAIM_NAME,
        package::Resource,
        problem::Problem,
        ranges::Ranges,
        selector::{Labels, Selector, spec_labels},
    },
    yaml::Node,
};

/// 0 and 4095 are reserved by the standard, 1 is the default of most switches.
const USABLE: Span = Span { first: 2, last: 4094 };

/// `orrery fn vlan`
pub(crate) struct Vlan;

impl Function for Vlan {
    fn name(&self) -> &'static str {
        "vlan"
    }

    fn about(&self) -> &'static str {
        "Gives VLANs to VLANClaims and VLANAllocations, and releases those marked for deletion."
    }

    fn run(&self, list: &mut ResourceList, context: &Context) -> Result<(), FunctionError> {
        claims::serve::<Self>(list, context)
    }
}

impl Allocator for Vlan {
    const RESOURCE: Resource = Resource::Vlan;
    const FIELDS: &'static [&'static str] = &["vlanID", "vlanRange"];

    fn allocate(demand: &Demand<'_>, results: &mut Results) -> Vec<Result<Grant, Problem>> {
        let Demand { items, claims, pools } = *demand;
        let mut indexes = Indexes::read(items, pools, results);
        let remembered = indexes.hold_shared(items, pools);
        let mut outcomes: Vec<Option<Result<Span, Problem>>> = vec![None; claims.len()];
        for turn in Turn::ORDER {
            for (&position, outcome) in claims.iter().zip(&mut outcomes).filter(|(_, outcome)| outcome.is_none()) {
                let item = &items[position];
                let has = held(item).or_else(|| remembered.get(&Identity::of(item)).copied());
                *outcome = indexes.serve(item, has, turn).transpose();
            }
        }
        let unserved = || Err(Problem::new("nothing was allocated"));
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unserved).map(Span::grant)).collect()
    }
}

/// One VLAN or several in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u16,
    last: u16,
}

impl Span {
    fn one(id: u16) -> Self {
        Self { first: id, last: id }
    }

    /// Reads `100:199`.
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once(':')?;
        let span = Self { first: first.trim().parse().ok()?, last: last.trim().parse().ok()? };
        (span.first <= span.last).then_some(span)
    }

    fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    fn grant(self) -> Grant {
        match self.first == self.last {
            true => vec![("vlanID", Value::from(self.first))],
            false => vec![("vlanRange", Value::from(format!("{}:{}", self.first, self.last)))],
        }
    }
}

/// What a claim asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Any,
    /// So many in a row.
    Size(u16),
    This(Span),
}

impl Want {
    fn read(item: &Item) -> Result<Self, Problem> {
        let number = |field: &'static str, name: &str| match claims::number(item, &["spec", name]) {
            None => Ok(None),
            Some(number) => {
                let number = number.ok().and_then(|number| u16::try_from(number).ok()).filter(|number| *number > 0);
                number.map(Some).ok_or_else(|| Problem::at(field, format!("{name} is no number from 1 to 4095")))
            }
        };
        let this = |span: Span, field| match USABLE.contains(span) {
            true => Ok(Self::This(span)),
            false => Err(Problem::at(field, "0, 1 and 4095 are reserved: VLANs go from 2 to 4094")),
        };
        if let Some(id) = number("spec.vlanID", "vlanID")? {
            return this(Span::one(id), "spec.vlanID");
        }
        if let Some(text) = item.text(&["spec", "range"]).filter(|text| !text.is_empty()) {
            let message = || Problem::at("spec.range", format!("{text:?} is no range: write it as 100:199"));
            return this(Span::parse(text).ok_or_else(message)?, "spec.range");
        }
        Ok(number("spec.size", "size")?.map_or(Self::Any, Self::Size))
    }

    fn accepts(self, span: Span) -> bool {
        match self {
            Self::Any => span.first == span.last,
            Self::Size(size) => span.last - span.first + 1 == size,
            Self::This(wanted) => wanted == span,
        }
    }
}

/// A table of VLANs.
struct Index {
    namespace: String,
    name: String,
    labels: Labels,
    /// What may be given out.
    spans: Vec<Span>,
    taken: Ranges,
    /// Who holds what. Claims that share a VLAN are one holder.
    held: HashMap<Holder, Span>,
    holders: HashMap<u16, Holder>,
}

/// Who holds VLANs: a claim, or all claims that want the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Holder {
    namespace: String,
    name: String,
}

impl Holder {
    fn of(item: &Item) -> Self {
        let name = item.annotation(VLAN_CLAIM_NAME).unwrap_or(item.name());
        Self { namespace: item.namespace().unwrap_or(DEFAULT_NAMESPACE).to_owned(), name: name.to_owned() }
    }
}

impl Index {
    fn hold(&mut self, holder: Holder, span: Span) {
        self.taken.insert(span.first.into(), span.last.into());
        self.holders.extend((span.first..=span.last).map(|id| (id, holder.clone())));
        self.held.insert(holder, span);
    }

    fn is_free(&self, span: Span) -> bool {
        self.spans.iter().any(|usable| usable.contains(span))
            && !self.taken.overlaps(span.first.into(), span.last.into())
    }

    fn lowest_free(&self, size: u16) -> Option<Span> {
        let mut free = self.spans.iter().filter_map(|span| {
            let first = self.taken.lowest_free(span.first.into(), span.last.into(), size.into(), 1)?;
            let first = u16::try_from(first).ok()?;
            Some(Span { first, last: first + (size - 1) })
        });
        free.next()
    }

    fn conflict(&self, span: Span) -> Problem {
        let taken = (span.first..=span.last).find_map(|id| Some((id, self.holders.get(&id)?)));
        Problem::at(
            "spec.vlanID",
            match taken {
                Some((id, holder)) => format!("VLAN {id} of {} is held by {}", self.name, holder.name),
                None => format!("VLAN {} is none of those of {}", span.first, self.name),
            },
        )
    }
}

struct Indexes {
    list: Vec<Index>,
    by_name: HashMap<String, Vec<usize>>,
}

impl Indexes {
    fn read(items: &[Item], pools: &[Item], results: &mut Results) -> Self {
        let mut indexes = Self { list: Vec::new(), by_name: HashMap::new() };
        for item in claims::pool_objects(items, pools, is_index) {
            match read_spans(item) {
                Ok(spans) => indexes.add(item, spans),
                Err(problem) => problem.report(item, results),
            }
        }
        indexes
    }

    fn add(&mut self, item: &Item, spans: Vec<Span>) {
        self.by_name.entry(item.name().to_owned()).or_default().push(self.list.len());
        self.list.push(Index {
            namespace: item.namespace().unwrap_or(DEFAULT_NAMESPACE).to_owned(),
            name: item.name().to_owned(),
            labels: spec_labels(item),
            spans,
            taken: Ranges::default(),
            held: HashMap::new(),
            holders: HashMap::new(),
        });
    }

    /// Takes what claims in the pools hold. Gives what those hold that are in the package too.
    fn hold_shared(&mut self, items: &[Item], pools: &[Item]) -> HashMap<Identity, Span> {
        let is_claim = |item: &&Item| Resource::of(item) == Some(Resource::Vlan);
        let here: HashMap<Identity, &Item> =
            items.iter().filter(is_claim).map(|item| (Identity::of(item), item)).collect();
        let mut remembered = HashMap::new();
        for item in pools.iter().filter(is_claim) {
            let Some(span) = held(item) else { continue };
            let identity = Identity::of(item);
            if here.contains_key(&identity) {
                remembered.insert(identity, span);
            } else if let Ok(places) = self.places(item) {
                for place in places {
                    self.list[place].hold(Holder::of(item), span);
                }
            }
        }
        remembered
    }

    /// Serves a claim if it is its turn.
    fn serve(&mut self, item: &Item, has: Option<Span>, turn: Turn) -> Result<Option<Span>, Problem> {
        let want = Want::read(item)?;
        let holder = Holder::of(item);
        let places = match self.places(item) {
            Ok(places) => places,
            // Where its index is not known nobody can say that what a claim has is wrong.
            Err(problem) => {
                return has.filter(|span| want.accepts(*span)).map(Some).ok_or(problem);
            }
        };
        let shared = |index: &Index| index.held.get(&holder).copied().filter(|span| want.accepts(*span));
        if let Some(span) = places.iter().find_map(|&place| shared(&self.list[place])) {
            return Ok(Some(span));
        }
        let found = match (turn, want) {
            (Turn::Keep, _) => {
                let Some(span) = has.filter(|span| want.accepts(*span)) else { return Ok(None) };
                let place = places.into_iter().find(|&place| self.list[place].is_free(span));
                place.map(|place| (place, span))
            }
            (Turn::Named, Want::This(span)) => {
                let place = places.iter().copied().find(|&place| self.list[place].is_free(span));
                Some((place.ok_or_else(|| self.list[places[0]].conflict(span))?, span))
            }
            (Turn::Any, Want::Any | Want::Size(_)) => {
                let size = if let Want::Size(size) = want { size } else { 1 };
                let mut free = places.iter().filter_map(|&place| Some((place, self.list[place].lowest_free(size)?)));
                Some(free.next().ok_or_else(|| exhausted(&self.list[places[0]], size))?)
            }
            _ => None,
        };
        Ok(found.map(|(place, span)| {
            self.list[place].hold(holder, span);
            span
        }))
    }

    /// The indexes that a claim can be served from: the one it names, or those that its selector matches.
    fn places(&self, claim: &Item) -> Result<Vec<usize>, Problem> {
        let named = ["vlanIndex", "vlanDatabase"]
            .into_iter()
            .find_map(|key| Some((claim.text(&["spec", key, "name"])?, claim.text(&["spec", key, "namespace"]))));
        let Some((name, namespace)) = named else { return self.selected(claim) };
        let found = self.by_name.get(name).map_or(&[][..], Vec::as_slice).iter().copied();
        let mut found: Vec<usize> =
            found.filter(|&place| namespace.is_none_or(|namespace| self.list[place].namespace == namespace)).collect();
        found.sort_by_key(|&place| self.list[place].namespace != DEFAULT_NAMESPACE);
        found.truncate(1);
        match found.is_empty() {
            true => Err(Problem::at(
                "spec.vlanIndex",
                format!("there is no VLANIndex {name}: add it to the package or the pools"),
            )),
            false => Ok(found),
        }
    }

    fn selected(&self, claim: &Item) -> Result<Vec<usize>, Problem> {
        let selector = Selector::read(claim)?;
        let mut found: Vec<usize> =
            (0..self.list.len()).filter(|&place| selector.matches(&self.list[place].labels)).collect();
        found.sort_by_key(|&place| (&self.list[place].name, &self.list[place].namespace));
        match found.is_empty() {
            true if selector.is_empty() => {
                Err(Problem::new("there is no VLANIndex: add one to the package or the pools"))
            }
            true => Err(Problem::new(format!("no VLANIndex matches {selector}: add one to the package or the pools"))),
            false => Ok(found),
        }
    }
}

fn exhausted(index: &Index, size: u16) -> Problem {
    let what = if size == 1 { "no VLAN is".to_owned() } else { format!("no {size} VLANs in a row are") };
    Problem::new(format!("{what} free in {}: release claims or add an index", index.name))
}

fn held(item: &Item) -> Option<Span> {
    let id = claims::number(item, &["status", "vlanID"]).and_then(Result::ok);
    let id = id.and_then(|id| u16::try_from(id).ok()).map(Span::one);
    id.or_else(|| Span::parse(item.text(&["status", "vlanRange"])?)).filter(|span| USABLE.contains(*span))
}

fn is_index(item: &Item) -> bool {
    let group = item.group();
    let known = matches!(group, "vlan.resource.nephio.org" | "vlan.alloc.nephio.org" | "ipam.nephio.org");
    known && matches!(item.kind(), "VLANIndex" | "VLANDatabase")
}

/// All VLANs, unless the index is restricted to `spec.range` or `spec.ranges`.
fn read_spans(item: &Item) -> Result<Vec<Span>, Problem> {
    let listed = item.get(&["spec", "ranges"]).into_iter().flat_map(Node::elements).filter_map(Node::as_str);
    let texts = item.text(&["spec", "range"]).into_iter().chain(listed);
    let mut spans = texts
        .map(|text| {
            let span = Span::parse(text).filter(|span| USABLE.contains(*span));
            span.ok_or_else(|| Problem::at("spec.range", format!("{text:?} is no range within 2:4094")))
        })
        .collect::<Result<Vec<Span>, Problem>>()?;
    if spans.is_empty() {
        spans.push(USABLE);
    }
    spans.sort_by_key(|span| span.first);
    Ok(spans)
}
