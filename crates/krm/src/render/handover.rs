//! Hands items over to a program as kpt would, and takes back what it made of them.

use std::{collections::HashMap, path::Path, str};

use super::{comments, package::Files, package::join};
use crate::{
    Item, Value,
    item::{
        self, FileRef, ID, INDEX, LEGACY_ID, LEGACY_INDEX, LEGACY_PATH, LIST_INDENT, MIGRATION_ID, PACKAGE_PATH, PATH,
        RESOURCE_ID,
    },
    list::text_of_texts,
    yaml::{self, Node, Stream},
};

/// What a program wrote, and how it ended.
#[derive(Clone, Debug)]
pub struct Program {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
    /// The exit code.
    pub exit: i32,
}

/// What a function is asked for: kpt tells mutators more than validators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Mutator,
    Validator,
}

/// What a program gave back.
#[derive(Default)]
pub(super) struct Returned {
    pub(super) items: Vec<Item>,
    pub(super) results: Vec<Value>,
}

/// The text for a program's standard input. With selectors every item carries its position among all.
pub(super) fn list_text(
    items: &[Item],
    chosen: Option<&[usize]>,
    config: Option<&Item>,
    role: Role,
    root: &Path,
    files: &Files,
) -> String {
    // An item that is handed over twice carries the number of its last appearance, both times.
    let last: HashMap<usize, usize> =
        chosen.into_iter().flatten().enumerate().map(|(number, &at)| (at, number)).collect();
    let number_of = |number: usize| chosen.map_or(number, |chosen| last[&chosen[number]]);
    let mutates = role == Role::Mutator;
    let annotated = items.iter().enumerate().map(|(number, item)| {
        let position = chosen.filter(|_| mutates).map(|chosen| chosen[number]);
        files.text_of(&with_annotations(item, number_of(number), position, role, root))
    });
    let config = config.map(|config| {
        let same = |item: &&Item| config.file.is_some() && item.file == config.file;
        match items.iter().position(|item| same(&item)).filter(|_| mutates) {
            Some(number) => with_annotations(config, number_of(number), None, role, root),
            None if config.file.is_some() && mutates => with_place(config, root),
            None => config.clone(),
        }
    });
    text_of_texts(annotated, config.as_ref())
}

/// The item with everything that kpt tells a function about it.
fn with_annotations(item: &Item, number: usize, position: Option<usize>, role: Role, root: &Path) -> Item {
    let mut copy = with_place(item, root);
    if let Some(position) = position {
        annotate(&mut copy, RESOURCE_ID, &position.to_string());
    }
    if role == Role::Mutator {
        annotate(&mut copy, MIGRATION_ID, &number.to_string());
    }
    annotate(&mut copy, ID, &(number + 1).to_string());
    annotate(&mut copy, LEGACY_ID, &(number + 1).to_string());
    copy
}

/// The item with the annotations that say where it stands.
fn with_place(item: &Item, root: &Path) -> Item {
    let mut copy = item.clone();
    let Some(file) = item.file.as_deref() else { return copy };
    let package = if file.package.is_empty() { root.to_owned() } else { root.join(&file.package) };
    annotate_place(&mut copy, file, Some(&package.to_string_lossy()));
    if file.home.is_some() {
        annotate(&mut copy, LIST_INDENT, list_indent(item));
    }
    copy
}

/// Annotations for the way are in single quotes, as kpt writes them.
fn annotate(item: &mut Item, key: &str, value: &str) {
    item.set_annotation(key, value);
    if let Some(node) = item.root.at_mut(&["metadata", "annotations", key]) {
        node.quote_single();
    }
}

/// The text of the outcome as a ResourceList; paths count from the folder that is rendered.
pub(super) fn final_list(items: &[Item], files: &Files) -> String {
    let annotated = items.iter().map(|item| {
        let mut copy = item.clone();
        if let Some(file) = item.file.as_deref() {
            let file = FileRef { path: join(&file.package, &file.path), ..file.clone() };
            annotate_place(&mut copy, &file, None);
            if file.home.is_some() {
                annotate(&mut copy, LIST_INDENT, list_indent(item));
            }
        }
        files.text_of(&copy)
    });
    text_of_texts(annotated, None)
}

fn annotate_place(copy: &mut Item, file: &FileRef, package: Option<&str>) {
    let index = file.index.as_deref();
    let annotations = [
        (LEGACY_INDEX, index),
        (LEGACY_PATH, Some(file.path.as_str())),
        (INDEX, index),
        (PACKAGE_PATH, package),
        (PATH, Some(file.path.as_str())),
    ];
    for (key, value) in annotations {
        if let Some(value) = value {
            annotate(copy, key, value);
        }
    }
}

/// How kpt takes the lists of an object to be indented: it looks at the first one, and knows only two ways.
fn list_indent(item: &Item) -> &'static str {
    let text = item.root.origin.map(|origin| origin.of(&item.source)).unwrap_or_default();
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut key: Option<&str> = None;
    for line in text.lines() {
        let words = line.trim();
        if words.starts_with("- ") {
            let plain_key = key.filter(|key| key.ends_with(':') && key.matches(':').count() == 1);
            if let Some(key) = plain_key {
                return if indent(line) == indent(key) + 2 { "wide" } else { "compact" };
            }
        }
        if !words.is_empty() && !words.starts_with('#') {
            key = Some(line.trim_end_matches(' '));
        }
    }
    "compact"
}

/// Reads a program's output. Nothing at all is an empty package, as for kpt.
pub(super) fn read_output(stdout: &[u8]) -> Result<Returned, String> {
    let text =
        str::from_utf8(stdout).map_err(|error| format!("its output is not UTF-8 (byte {})", error.valid_up_to()))?;
    let stream = Stream::parse(text).map_err(|error| format!("its output is not YAML: {error}"))?;
    let mut documents = stream.documents.into_iter();
    let Some(first) = documents.next() else { return Ok(Returned::default()) };
    if let Some(other) = [&first].into_iter().chain(documents.as_slice()).find(|document| !document.root().is_map()) {
        return Err(format!("its output holds no objects, but {}", describe(other.root())));
    }
    let whole = Item::from_document(first);
    if whole.kind() != "ResourceList" {
        let mut items: Vec<Item> = [whole].into_iter().chain(documents.map(Item::from_document)).collect();
        // Documents without a list around them are counted like those of a file.
        for (number, item) in items.iter_mut().enumerate() {
            if item.annotation(INDEX).or_else(|| item.annotation(LEGACY_INDEX)).is_none() {
                item.set_annotation(INDEX, &number.to_string());
            }
        }
        return Ok(Returned { items, results: Vec::new() });
    }
    let list = whole.node().get("items").ok_or("its output is a ResourceList without items")?;
    if !list.is_list() && !list.is_null() {
        return Err("the items of its output are not a list".to_owned());
    }
    let items: Vec<Item> = list.elements().map(|element| whole.part(element.clone())).collect();
    if items.iter().any(|item| !item.node().is_map()) {
        return Err("an item of its output is no object".to_owned());
    }
    let results = whole.node().get("results").map(|results| results.get("items").unwrap_or(results));
    let results = results.into_iter().flat_map(Node::elements).map(Value::from).collect();
    Ok(Returned { items, results })
}

fn describe(node: &Node) -> &'static str {
    if node.is_list() { "a list" } else { "a scalar" }
}

/// Turns what a program gave back into items of the package: those it did not change stay as they were, those it changed
/// keep all else, new ones get a place.
pub(super) fn absorb(
    returned: Vec<Item>,
    sent: &str,
    given: &[Item],
    package: &str,
    root: &Path,
) -> Result<Vec<Item>, String> {
    let sent = read_output(sent.as_bytes())?.items;
    returned.into_iter().map(|item| absorb_one(item, &sent, given, package, root)).collect()
}

fn absorb_one(mut got: Item, sent: &[Item], given: &[Item], package: &str, root: &Path) -> Result<Item, String> {
    let id = got.annotation(ID).or_else(|| got.annotation(LEGACY_ID));
    let number = id.and_then(|id| id.parse::<usize>().ok()).and_then(|id| id.checked_sub(1));
    let original = number.and_then(|number| Some((given.get(number)?, sent.get(number)?)));
    let known_place = original.and_then(|(given, _)| given.file.as_deref());
    let path = reconcile(&got, PATH, LEGACY_PATH, known_place.map(|file| file.path.as_str()))?;
    let index = reconcile(&got, INDEX, LEGACY_INDEX, known_place.and_then(|file| file.index.as_deref()))?;
    let folder = match got.annotation(PACKAGE_PATH) {
        Some(folder) => Path::new(folder).strip_prefix(root).ok().map(|path| path.to_string_lossy().into_owned()),
        None => Some(package.to_owned()),
    };
    let folder = folder.ok_or_else(|| format!("{} {} names a package that is not there", got.kind(), got.name()))?;
    let path = path.unwrap_or_else(|| default_path(&got));
    let slot = match got.annotation(RESOURCE_ID) {
        Some(position) => position.parse().ok(),
        None => None,
    };
    let home = known_place.and_then(|file| file.home);
    let mut item = match original {
        Some((given, sent)) if got.raw_text() == sent.raw_text() => given.clone(),
        Some((given, sent)) => {
            check_shape(&sent.root, &got.root, &format!("{}/{}", got.kind(), got.name()))?;
            let mut item = given.clone();
            let comments = comments::Changes::between(sent, &got);
            got.strip_internal();
            let wanted =
                if got.anchors.is_empty() { got.root } else { yaml::expand(&got.root, &got.anchors).to_node() };
            item.edited |= item.root.assign_node(&wanted, &given.anchors);
            comments.apply(&mut item);
            item
        }
        None => {
            got.strip_internal();
            got
        }
    };
    item.file = Some(Box::new(FileRef { package: folder, path, index, home }));
    item.slot = slot;
    Ok(item)
}

/// kpt refuses a function that makes a map of a list, or the like: a field keeps its shape, unless it is or becomes null.
fn check_shape(before: &Node, after: &Node, path: &str) -> Result<(), String> {
    let shape = |node: &Node| match (node.is_map(), node.is_list(), node.is_null() || node.alias().is_some()) {
        (true, ..) => Some("a map"),
        (_, true, _) => Some("a list"),
        (.., true) => None,
        _ => Some("a scalar"),
    };
    for (key, value) in after.entries() {
        let Some(old) = before.get(key) else { continue };
        if let (Some(was), Some(is)) = (shape(old), shape(value))
            && was != is
        {
            return Err(format!("it makes {is} of {path}.{key}, which was {was}: kpt does not allow that"));
        }
        check_shape(old, value, &format!("{path}.{key}"))?;
    }
    // When elements come or go, nobody can tell which belong together.
    if before.parts().len() != after.parts().len() {
        return Ok(());
    }
    for (position, (old, element)) in before.elements().zip(after.elements()).enumerate() {
        let path = format!("{path}[{position}]");
        if old.is_list() && shape(element) == Some("a scalar") {
            return Err(format!("it makes a scalar of {path}, which was a list: kpt does not allow that"));
        }
        check_shape(old, element, &path)?;
    }
    Ok(())
}

/// What the two spellings of an annotation say: the one that was changed counts, and both may not be changed differently.
fn reconcile(item: &Item, key: &str, legacy_key: &str, before: Option<&str>) -> Result<Option<String>, String> {
    let (current, legacy) = (item.annotation(key), item.annotation(legacy_key));
    let chosen = match (current, legacy) {
        (Some(current), Some(legacy)) if current != legacy => match before {
            Some(before) if before == current => Some(legacy),
            Some(before) if before == legacy => Some(current),
            _ => {
                return Err(format!(
                    "{} {} has two annotations about its place that disagree: {key}: {current:?} and {legacy_key}: {legacy:?}",
                    item.kind(),
                    item.name()
                ));
            }
        },
        (current, legacy) => current.or(legacy),
    };
    Ok(chosen.map(str::to_owned))
}

/// Where an item goes that says nothing about it.
pub(super) fn default_path(item: &Item) -> String {
    let file = format!("{}_{}.yaml", item.kind().to_lowercase(), item.name());
    join(item.namespace().unwrap_or_default(), &file)
}

/// Gives items that a built-in function made their place in the package.
pub(super) fn settle(item: &mut Item, package: &str) {
    if item.file.is_some() {
        return;
    }
    let path = item.path().map_or_else(|| default_path(item), str::to_owned);
    let index = item.annotation(item::INDEX).or_else(|| item.annotation(LEGACY_INDEX)).map(str::to_owned);
    item.strip_internal();
    item.file = Some(Box::new(FileRef { package: package.to_owned(), path, index, home: None }));
    item.slot = None;
}
