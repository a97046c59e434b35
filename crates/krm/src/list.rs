//! The ResourceList that a function gets and gives back.

use std::str;

use crate::{
    function::FunctionError,
    item::Item,
    kptfile::Conditions,
    results::Results,
    yaml::{Content, Document, Node, ParseError, Part, Scalar, Stream, Style, Value},
};

/// Why standard input is no ResourceList. Nothing can be written then.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The bytes are no text.
    #[error("the input is not UTF-8 (byte {0})")]
    NotUtf8(usize),
    /// The text is no YAML.
    #[error("the input is not YAML: {0}")]
    NotYaml(ParseError),
    /// There is no document.
    #[error("the input is empty: a ResourceList is expected")]
    Empty,
    /// `items` is missing.
    #[error("the ResourceList has no items: write `items: []` for an empty package")]
    NoItems,
    /// `items` is something else.
    #[error("the items of the ResourceList are not a list")]
    ItemsNotList,
    /// An item is something else.
    #[error("items[{0}] is not an object")]
    NotObject(usize),
}

/// The objects of a package, the function's configuration, and what the function has to say.
#[derive(Debug, Default)]
pub struct ResourceList {
    /// The document around the items, if they came in one.
    envelope: Option<Document>,
    /// The objects. Their order is kept; a new one goes to the end; one that is taken out is deleted from the package.
    pub items: Vec<Item>,
    /// What the function says.
    pub results: Results,
    config: Option<Item>,
}

impl ResourceList {
    /// Reads a ResourceList in YAML or JSON. Documents that are no ResourceList are taken as its items.
    ///
    /// # Errors
    /// When the bytes cannot be read as such.
    pub fn parse(input: &[u8]) -> Result<Self, InputError> {
        let text = str::from_utf8(input).map_err(|error| InputError::NotUtf8(error.valid_up_to()))?;
        let mut documents = Stream::parse(text).map_err(InputError::NotYaml)?.documents;
        let Some(first) = documents.first() else { return Err(InputError::Empty) };
        let is_list = first.root().text(&["kind"]) == Some("ResourceList");
        if !is_list {
            let items: Vec<Item> = documents.into_iter().map(Item::from_document).collect();
            check_objects(&items)?;
            return Ok(Self { items, ..Self::default() });
        }
        let mut envelope = documents.swap_remove(0);
        let whole = Item::from_document(envelope.without_root());
        let config = envelope.root().get("functionConfig").filter(|config| config.is_map());
        let config = config.map(|config| whole.part(config.clone()));
        let list = envelope.root_mut().get_mut("items").ok_or(InputError::NoItems)?;
        let mut items = Vec::new();
        if !list.is_list() && !list.is_null() {
            return Err(InputError::ItemsNotList);
        }
        for (slot, element) in list.elements_mut().enumerate() {
            let root = std::mem::replace(element, Value::Null.to_node());
            items.push(Item { slot: Some(slot), ..whole.part(root) });
        }
        check_objects(&items)?;
        Ok(Self { envelope: Some(envelope), items, results: Results::default(), config })
    }

    /// A list that stands in no text yet.
    #[must_use]
    pub fn new(items: Vec<Item>, config: Option<Item>) -> Self {
        Self { envelope: None, items, results: Results::default(), config }
    }

    /// The function's configuration, whatever its kind.
    #[must_use]
    pub fn config(&self) -> Option<&Item> {
        self.config.as_ref()
    }

    /// A setting of the configuration: `data.<key>` of a ConfigMap, `spec.<key>` of any other kind.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<&str> {
        let config = self.config.as_ref()?;
        config.text(&["data", key]).or_else(|| config.text(&["spec", key]))
    }

    /// Whether the configuration asks that any error makes the run fail (`strict: "true"`).
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.setting("strict") == Some("true")
    }

    /// The items of a kind in a group, in order.
    pub fn of_kind<'l>(&'l self, group: &'l str, kind: &'l str) -> impl Iterator<Item = &'l Item> {
        self.items.iter().filter(move |item| item.is(group, kind))
    }

    /// The Kptfile of the package; of the outermost one if there are subpackages.
    #[must_use]
    pub fn kptfile(&self) -> Option<&Item> {
        self.kptfile_position().map(|position| &self.items[position])
    }

    /// The Kptfile of the package, to be edited.
    pub fn kptfile_mut(&mut self) -> Option<&mut Item> {
        self.kptfile_position().map(|position| &mut self.items[position])
    }

    /// The conditions of the Kptfile, to be edited and then [stored](Self::store_conditions).
    ///
    /// # Errors
    /// When there is no Kptfile.
    pub fn conditions(&self) -> Result<Conditions, FunctionError> {
        self.kptfile().map(Conditions::read).ok_or_else(no_kptfile)
    }

    /// Writes conditions into the Kptfile: changed ones in place, new ones at the end.
    ///
    /// # Errors
    /// When there is no Kptfile.
    pub fn store_conditions(&mut self, conditions: Conditions) -> Result<(), FunctionError> {
        let kptfile = self.kptfile_mut().ok_or_else(no_kptfile)?;
        conditions.write(kptfile);
        Ok(())
    }

    /// The text of the list: the bytes that were read, but for what was edited.
    #[must_use]
    pub fn into_text(self) -> String {
        let Self { envelope, items, results, config } = self;
        let mut document = envelope.unwrap_or_else(|| empty_envelope(config.as_ref()));
        if let Some(list) = document.root_mut().get_mut("items") {
            put_items(list, items);
        }
        if results.is_empty() {
            document.root_mut().remove("results");
        } else {
            document.root_mut().set("results", results.to_value());
        }
        document.to_text()
    }

    fn kptfile_position(&self) -> Option<usize> {
        let kptfiles = self.items.iter().enumerate().filter(|(_, item)| item.is("kpt.dev", "Kptfile"));
        let outermost = kptfiles
            .min_by_key(|(_, item)| (item.package().unwrap_or_default().len(), item.path().unwrap_or_default().len()));
        outermost.map(|(position, _)| position)
    }
}

fn no_kptfile() -> FunctionError {
    FunctionError::new(
        "the package has no Kptfile: the function keeps its conditions there (selectors of the function must not leave it out)",
    )
}

fn check_objects(items: &[Item]) -> Result<(), InputError> {
    match items.iter().position(|item| !item.node().is_map()) {
        Some(position) => Err(InputError::NotObject(position)),
        None => Ok(()),
    }
}

fn empty_envelope(config: Option<&Item>) -> Document {
    let root = Value::object()
        .with("apiVersion", "config.kubernetes.io/v1")
        .with("kind", "ResourceList")
        .with("items", Value::List(Vec::new()));
    let mut document = Document::new(&root);
    if let Some(config) = config {
        document.root_mut().set("functionConfig", Value::Null);
        if let Some(node) = document.root_mut().get_mut("functionConfig") {
            *node = new_element(config, false);
        }
    }
    document
}

/// A list of objects that are given as texts at column 0.
pub(crate) fn text_of_texts(texts: impl Iterator<Item = String>, config: Option<&Item>) -> String {
    let mut document = empty_envelope(config);
    if let Some(list) = document.root_mut().get_mut("items") {
        texts.for_each(|text| list.push_node(Node::new(Content::Foreign(text))));
    }
    document.to_text()
}

/// Puts the items back into the list they came from, new ones at the end.
fn put_items(list: &mut Node, items: Vec<Item>) {
    if !list.is_list() {
        *list = Value::List(Vec::new()).to_node();
    }
    let Some(collection) = list.collection_mut() else { return };
    let in_brackets = collection.flow && !collection.parts.is_empty();
    let kept: std::collections::HashSet<usize> = items.iter().filter_map(|item| item.slot).collect();
    let mut slots = std::mem::take(&mut collection.parts);
    let mut next = 0;
    for item in items {
        let Some(slot) = item.slot.filter(|slot| *slot < slots.len()) else {
            collection.parts.push(Part::new(None, new_element(&item, in_brackets)));
            continue;
        };
        let mut residue = Vec::new();
        for gone in (next..slot).filter(|slot| !kept.contains(slot)) {
            residue.extend(slots[gone].take_residue());
        }
        next = next.max(slot + 1);
        let value = element(item);
        collection.parts.push(Part { place: slots[slot].place, residue, ..Part::new(None, value) });
    }
}

fn element(item: Item) -> Node {
    let mut node = item.root;
    if !item.edited {
        // A node without content of its own is copied from its place in the source, which is faster than a walk.
        node.content = Content::Scalar(Scalar { text: String::new(), style: Style::Plain });
        node.props = None;
    }
    node
}

fn new_element(item: &Item, in_brackets: bool) -> Node {
    if in_brackets {
        item.value(&[]).unwrap_or(Value::Null).to_node()
    } else {
        Node::new(Content::Foreign(item.to_text()))
    }
}
