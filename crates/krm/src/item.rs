//! One Kubernetes object of a package, as text that is edited in place.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use crate::{
    results::ResourceRef,
    yaml::{self, Document, Fresh, Node, ParseError, Span, Stream, Value},
};

/// The annotation that says in which file of the package an item stands.
pub const PATH: &str = "internal.config.kubernetes.io/path";
/// The annotation that says which document of its file an item is.
pub const INDEX: &str = "internal.config.kubernetes.io/index";
/// The annotation that says in which folder the package of an item lies; kpt sets it when it renders.
pub const PACKAGE_PATH: &str = "internal.config.kubernetes.io/package-path";
/// The older spelling of [`PATH`].
pub const LEGACY_PATH: &str = "config.kubernetes.io/path";
/// The older spelling of [`INDEX`].
pub const LEGACY_INDEX: &str = "config.kubernetes.io/index";
/// The annotation by which kpt knows an item again after a function has run.
pub(crate) const ID: &str = "internal.config.kubernetes.io/id";
/// The older spelling of [`ID`].
pub(crate) const LEGACY_ID: &str = "config.k8s.io/id";
/// The annotation by which kpt merges the items that selectors chose with the others.
pub(crate) const RESOURCE_ID: &str = "internal.config.k8s.io/kpt-resource-id";
/// The annotation that says how the lists of an item are indented.
pub(crate) const LIST_INDENT: &str = "internal.config.kubernetes.io/seqindent";
/// The annotation by which kpt keeps both spellings of the others in step.
pub(crate) const MIGRATION_ID: &str = "internal.config.kubernetes.io/annotations-migration-resource-id";

/// What kpt adds to an item on its way to a function and takes away afterwards.
const INTERNAL: &[&str] =
    &[PATH, INDEX, PACKAGE_PATH, LEGACY_PATH, LEGACY_INDEX, ID, LEGACY_ID, RESOURCE_ID, LIST_INDENT, MIGRATION_ID];

/// An object of a package: read by path, edited by path, written back with every byte that no edit touched.
#[derive(Clone, Debug)]
pub struct Item {
    pub(crate) source: Arc<str>,
    pub(crate) root: Node,
    pub(crate) anchors: Arc<HashMap<String, Value>>,
    /// Whether any edit was made; an item without edits is written as a copy of its source.
    pub(crate) edited: bool,
    /// The file and the document that the renderer read it from; items on standard input carry annotations instead.
    pub(crate) file: Option<Box<FileRef>>,
    /// Which element of the ResourceList's items this was.
    pub(crate) slot: Option<usize>,
}

/// A document of a file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRef {
    /// The folder of the package, relative to the one that is rendered; empty for that one itself.
    pub(crate) package: String,
    /// Relative to the package.
    pub(crate) path: String,
    /// Which document of the file; a new item may leave that open.
    pub(crate) index: Option<String>,
    /// The file that it was read from and the document in it, counted in the order of reading.
    pub(crate) home: Option<(usize, usize)>,
}

impl Item {
    /// A new object. Its keys are written in the order given.
    #[must_use]
    pub fn new(value: &Value) -> Self {
        Self {
            source: Arc::from(""),
            root: value.to_node(),
            anchors: Arc::default(),
            edited: true,
            file: None,
            slot: None,
        }
    }

    /// The objects of a text with any number of documents; a `List` stands for its items.
    ///
    /// # Errors
    /// When the text is not YAML.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ParseError> {
        let mut items = Vec::new();
        for document in Stream::parse(text)?.documents {
            let item = Self::from_document(document);
            let list = item.kind().ends_with("List").then(|| item.get(&["items"])).flatten();
            match list.filter(|list| list.is_list()) {
                Some(list) => items.extend(list.elements().map(|element| item.part(element.clone()))),
                None => items.push(item),
            }
        }
        Ok(items)
    }

    pub(crate) fn from_document(document: Document) -> Self {
        let Document { source, root, anchors, .. } = document;
        Self { source, root, anchors, edited: false, file: None, slot: None }
    }

    /// An object that is part of the text of this one.
    pub(crate) fn part(&self, root: Node) -> Self {
        let (source, anchors) = (Arc::clone(&self.source), Arc::clone(&self.anchors));
        Self { root, source, anchors, edited: false, file: None, slot: None }
    }

    /// The whole object.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.root
    }

    /// The whole object, to be edited.
    pub fn node_mut(&mut self) -> &mut Node {
        self.edited = true;
        &mut self.root
    }

    /// `apiVersion`, or nothing.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.text(&["apiVersion"]).unwrap_or_default()
    }

    /// The group in `apiVersion`; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version().rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// `kind`, or nothing.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text(&["kind"]).unwrap_or_default()
    }

    /// `metadata.name`, or nothing.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text(&["metadata", "name"]).unwrap_or_default()
    }

    /// `metadata.namespace`.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.text(&["metadata", "namespace"]).filter(|namespace| !namespace.is_empty())
    }

    /// Whether the object is of this kind and in this group, whatever its version.
    #[must_use]
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.kind() == kind && self.group() == group
    }

    /// Names the object in a result.
    #[must_use]
    pub fn resource_ref(&self) -> ResourceRef {
        ResourceRef {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            name: self.name().to_owned(),
            namespace: self.namespace().map(str::to_owned),
        }
    }

    /// The value below nested keys. An alias or merge key on the way is followed.
    #[must_use]
    pub fn get(&self, path: &[&str]) -> Option<&Node> {
        let mut node = self.follow(&self.root);
        for key in path {
            node = self.follow(self.entry(node, key, 0)?);
        }
        Some(node)
    }

    /// The text of the scalar below nested keys, whatever its type; null counts as absent.
    #[must_use]
    pub fn text(&self, path: &[&str]) -> Option<&str> {
        self.get(path).filter(|node| !node.is_null())?.as_str()
    }

    /// The plain value below nested keys, with aliases replaced by what they stand for.
    #[must_use]
    pub fn value(&self, path: &[&str]) -> Option<Value> {
        self.get(path).map(|node| yaml::expand(node, &self.anchors))
    }

    /// Gives the field below nested keys a value, and says whether that changed anything. Maps on the way are made; a new
    /// field goes to the end of its map. A map or list that is given replaces the old one, but keeps what is equal: keys and
    /// elements that are the same stay as they are written.
    pub fn set(&mut self, path: &[&str], value: impl Into<Value>) -> bool {
        let value = value.into();
        if self.value(path).is_some_and(|old| old == value) {
            return false;
        }
        self.unshare(path, path.len());
        self.node_mut().set_at(path, value)
    }

    /// Removes the field below nested keys with the comments that belong to it, and says whether there was one.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        if self.get(path).is_none() {
            return false;
        }
        self.unshare(path, path.len() + 1);
        self.node_mut().remove_at(path)
    }

    /// A label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.text(&["metadata", "labels", key])
    }

    /// All labels.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.strings(&["metadata", "labels"])
    }

    /// An annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.text(&["metadata", "annotations", key])
    }

    /// All annotations.
    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.strings(&["metadata", "annotations"])
    }

    /// The texts of the scalars of a map: labels, a selector, the data of a ConfigMap.
    pub fn strings(&self, path: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.get(path).into_iter().flat_map(Node::entries);
        entries.filter_map(|(key, node)| Some((key, self.follow(node).as_str()?)))
    }

    /// Sets an annotation; says whether that changed anything.
    pub fn set_annotation(&mut self, key: &str, value: &str) -> bool {
        self.set(&["metadata", "annotations", key], value)
    }

    /// Removes an annotation, and the map if it was the last; says whether there was one.
    pub fn remove_annotation(&mut self, key: &str) -> bool {
        self.remove_last(&["metadata", "annotations"], key)
    }

    /// Sets a label; says whether that changed anything.
    pub fn set_label(&mut self, key: &str, value: &str) -> bool {
        self.set(&["metadata", "labels", key], value)
    }

    /// Removes a label, and the map if it was the last; says whether there was one.
    pub fn remove_label(&mut self, key: &str) -> bool {
        self.remove_last(&["metadata", "labels"], key)
    }

    /// The file of the package that the item stands in, relative to the package.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match &self.file {
            Some(file) => Some(&file.path),
            None => self.annotation(PATH).or_else(|| self.annotation(LEGACY_PATH)),
        }
    }

    /// The folder of the package that the item belongs to, if several packages are rendered together.
    #[must_use]
    pub fn package(&self) -> Option<&str> {
        match &self.file {
            Some(file) => Some(&file.package),
            None => self.annotation(PACKAGE_PATH),
        }
    }

    /// Which document of its file the item is.
    #[must_use]
    pub fn index(&self) -> Option<i64> {
        match &self.file {
            Some(file) => file.index.as_ref()?.parse().ok(),
            None => self.annotation(INDEX).or_else(|| self.annotation(LEGACY_INDEX))?.parse().ok(),
        }
    }

    /// The object as text at column 0, edits included, with a line break at its end. Comments above the first key, which
    /// belong to the file, are not part of it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = self.raw_text().into_owned();
        let column = self.root.collection().map_or(0, |collection| collection.column as usize);
        if column > 0 && self.root.origin.is_some() {
            text = dedent(&text, column);
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// The text with what stands around the object in a part of its source.
    pub(crate) fn text_within(&self, around: Span) -> String {
        if !self.edited {
            return around.of(&self.source).to_owned();
        }
        let fresh = Fresh::like(&self.root, &self.source);
        yaml::emit_block(&self.root, &self.source, &self.anchors, fresh, Some(around))
    }

    /// The text at the column it has in its source.
    pub(crate) fn raw_text(&self) -> Cow<'_, str> {
        match self.root.origin {
            Some(origin) if !self.edited => Cow::Borrowed(origin.of(&self.source)),
            _ => {
                let fresh = Fresh::like(&self.root, &self.source);
                Cow::Owned(yaml::emit_block(&self.root, &self.source, &self.anchors, fresh, None))
            }
        }
    }

    /// Takes away what only has a meaning on the way to a function and back.
    pub(crate) fn strip_internal(&mut self) {
        for key in INTERNAL {
            self.remove_annotation(key);
        }
    }

    fn remove_last(&mut self, map: &[&str], key: &str) -> bool {
        let path: Vec<&str> = map.iter().copied().chain([key]).collect();
        let removed = self.remove(&path);
        if removed && self.get(map).is_some_and(Node::is_empty_collection) {
            self.remove(map);
        }
        removed
    }

    /// What an alias stands for; other nodes are returned as they are.
    fn follow<'n>(&'n self, node: &'n Node) -> &'n Node {
        match node.alias() {
            Some(name) => find_anchor(&self.root, name).unwrap_or(node),
            None => node,
        }
    }

    fn entry<'n>(&'n self, map: &'n Node, key: &str, depth: usize) -> Option<&'n Node> {
        map.get(key).or_else(|| {
            // Merge keys may nest, but not without end: an alias can only point back.
            let merged = map.get("<<").filter(|_| depth < 16)?;
            let merged = self.follow(merged);
            match merged.is_list() {
                true => merged.elements().find_map(|one| self.entry(self.follow(one), key, depth + 1)),
                false => self.entry(merged, key, depth + 1),
            }
        })
    }

    /// Replaces an alias on the way to a field by a copy of what it stands for, so that an edit touches this place alone.
    /// The same for a merge key that brings in one of the first `needed` keys of the path.
    fn unshare(&mut self, path: &[&str], needed: usize) {
        for length in 1..path.len() {
            let way = &path[..length];
            let Some(node) = self.root.at(way) else { return };
            let merged_in = length + 1 < needed && node.get("<<").is_some() && node.get(path[length]).is_none();
            if node.alias().is_some() || merged_in {
                let copy = yaml::expand(node, &self.anchors);
                if let Some(node) = self.root.at_mut(way) {
                    *node = copy.to_node();
                }
                self.edited = true;
            }
        }
    }
}

fn find_anchor<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    if node.anchor() == Some(name) {
        return Some(node);
    }
    node.parts().iter().find_map(|part| find_anchor(&part.value, name))
}

fn dedent(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let blanks = if number == 0 { 0 } else { line.bytes().take(columns).take_while(|&b| b == b' ').count() };
        out.push_str(&line[blanks..]);
    }
    out
}
