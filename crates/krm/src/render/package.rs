//! Reads a package: which folders are packages of their own, which files hold objects, and what they hold.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{RenderError, ignore::Ignore, schema};
use crate::{
    Item,
    item::{self, FileRef},
    yaml::{Node, Span, Stream},
};

/// A folder with a Kptfile.
#[derive(Debug)]
pub(super) struct Package {
    /// Relative to the folder that is rendered; empty for that one itself.
    pub(super) folder: String,
    /// Its Kptfile as it was on disk: the pipeline does not change while it runs.
    pub(super) kptfile: Node,
    /// Its own objects, in the order of a walk through its folders.
    pub(super) items: Vec<Item>,
    pub(super) subpackages: Vec<Package>,
}

/// Every file that was read.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(super) root: PathBuf,
    pub(super) list: Vec<SourceFile>,
}

/// A file with objects.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// Relative to the folder that is rendered.
    pub(super) path: String,
    pub(super) text: Arc<str>,
    pub(super) documents: Vec<Segment>,
}

/// A document in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Where the separator before it begins; the same as `body` if it has none.
    pub(super) separator: u32,
    /// The document with its comments, without the separator.
    pub(super) body: Span,
}

/// Reads the package in a folder and all below it.
pub(super) fn read(root: &Path) -> Result<(Package, Files), RenderError> {
    let mut reader = Reader { files: Files { root: root.to_owned(), list: Vec::new() } };
    let package = reader.package("")?;
    Ok((package, reader.files))
}

struct Reader {
    files: Files,
}

/// What a walk through the folders of one package finds.
#[derive(Default)]
struct Found {
    items: Vec<Item>,
    subpackages: Vec<String>,
}

impl Reader {
    fn package(&mut self, folder: &str) -> Result<Package, RenderError> {
        let path = self.files.root.join(folder);
        let kptfile = read_kptfile(&path)?;
        let mut found = Found::default();
        self.walk(folder, "", Some(&Ignore::default()), &mut found)?;
        let subpackages = found.subpackages.iter().map(|folder| self.package(folder)).collect::<Result<_, _>>()?;
        Ok(Package { folder: folder.to_owned(), kptfile, items: found.items, subpackages })
    }

    /// Walks a folder `below` the package; names are visited in the order of their bytes. In a folder that is ignored (no
    /// rules are given then) only packages are looked for.
    fn walk(
        &mut self,
        package: &str,
        below: &str,
        rules: Option<&Ignore>,
        found: &mut Found,
    ) -> Result<(), RenderError> {
        let folder = self.files.root.join(package).join(below);
        let ignore_file = fs::read_to_string(folder.join(".krmignore")).ok();
        let extended = rules.zip(ignore_file).map(|(rules, text)| rules.with_file(below, &text));
        let rules = extended.as_ref().or(rules);
        for (name, kind) in entries(&folder)? {
            let path = join(below, &name);
            let full = folder.join(&name);
            match (kind, rules) {
                (EntryKind::Folder, _) if full.join("Kptfile").is_file() => {
                    found.subpackages.push(join(package, &path))
                }
                (EntryKind::Folder, rules) => {
                    let rules = rules.filter(|rules| !rules.hides(&path, true));
                    self.walk(package, &path, rules, found)?;
                }
                (EntryKind::File, Some(rules)) if holds_objects(&name) && !rules.hides(&path, false) => {
                    self.file(package, &path, &full, &mut found.items)?;
                }
                (EntryKind::File, _) => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, package: &str, path: &str, full: &Path, items: &mut Vec<Item>) -> Result<(), RenderError> {
        let text: Arc<str> = read_text(full)?.into();
        let stream =
            Stream::parse(Arc::clone(&text)).map_err(|error| RenderError::Yaml { file: full.to_owned(), error })?;
        if let Some(error) = stream.refused_by_kpt {
            return Err(RenderError::Yaml { file: full.to_owned(), error });
        }
        let number = self.files.list.len();
        let mut documents = Vec::new();
        for (index, document) in stream.documents.into_iter().enumerate() {
            if !document.root().is_map() && !document.root().is_list() {
                let reason = "a scalar stands where a map is expected".to_owned();
                return Err(RenderError::NotObject { file: full.to_owned(), reason });
            }
            documents.push(segment(&text, document.span));
            let mut item = Item::from_document(document);
            strip_places(&mut item)?;
            item.file = Some(Box::new(FileRef {
                package: package.to_owned(),
                path: path.to_owned(),
                index: Some(index.to_string()),
                home: Some((number, index)),
            }));
            items.push(item);
        }
        self.files.list.push(SourceFile { path: join(package, path), text, documents });
        Ok(())
    }
}

impl Files {
    /// The text of an item with the comments around it in its file.
    pub(crate) fn text_of(&self, item: &Item) -> String {
        let home = item.file.as_ref().and_then(|file| file.home);
        let segment = home.map(|(file, document)| self.list[file].documents[document]);
        match segment.filter(|_| item.root.origin.is_some()) {
            Some(segment) => item.text_within(segment.body),
            None => item.to_text(),
        }
    }
}

/// Path, index and the like in a file say nothing: where the file lies decides. kpt drops them, and so do we.
fn strip_places(item: &mut Item) -> Result<(), RenderError> {
    let ids = (item.annotation(item::ID), item.annotation(item::LEGACY_ID));
    if let (Some(id), Some(legacy)) = ids
        && id != legacy
    {
        return Err(RenderError::Unsavable(format!(
            "{} {} carries two annotations about its id that disagree: {id:?} and {legacy:?}",
            item.kind(),
            item.name()
        )));
    }
    item.strip_internal();
    Ok(())
}

/// Where a document stands between the separators around it.
fn segment(text: &str, span: Span) -> Segment {
    let start = span.start as usize;
    let has_separator = text[..start].ends_with("---") && (start == 3 || text.as_bytes()[start - 4] == b'\n');
    if !has_separator {
        return Segment { separator: span.start, body: span };
    }
    let line = text[start..].split_inclusive('\n').next().unwrap_or_default();
    let skip = if line.trim().is_empty() { line.len() as u32 } else { 0 };
    Segment { separator: span.start - 3, body: Span { start: span.start + skip, end: span.end } }
}

pub(super) fn read_kptfile(folder: &Path) -> Result<Node, RenderError> {
    let path = folder.join("Kptfile");
    if !path.is_file() {
        return Err(RenderError::NoKptfile(folder.to_owned()));
    }
    let text = read_text(&path)?;
    let refuse = |reason: String| RenderError::Kptfile { folder: folder.to_owned(), reason };
    let mut stream = Stream::parse(text).map_err(|error| refuse(error.to_string()))?;
    if stream.documents.is_empty() {
        return Err(refuse("it is empty".to_owned()));
    }
    let document = stream.documents.swap_remove(0);
    schema::check(document.root()).map_err(refuse)?;
    Ok(document.root)
}

pub(super) fn read_text(path: &Path) -> Result<String, RenderError> {
    let bytes = fs::read(path).map_err(|error| RenderError::Io { path: path.to_owned(), error })?;
    String::from_utf8(bytes).map_err(|error| RenderError::Io {
        path: path.to_owned(),
        error: io::Error::new(
            io::ErrorKind::InvalidData,
            format!("not UTF-8 (byte {})", error.utf8_error().valid_up_to()),
        ),
    })
}

#[derive(Clone, Copy)]
enum EntryKind {
    File,
    Folder,
}

/// The names in a folder in the order of their bytes. A link to a file counts as one; a link to a folder is not followed.
fn entries(folder: &Path) -> Result<Vec<(String, EntryKind)>, RenderError> {
    let io_error = |path: &Path| {
        let path = path.to_owned();
        move |error| RenderError::Io { path, error }
    };
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error(folder))? {
        let entry = entry.map_err(io_error(folder))?;
        let path = entry.path();
        // A name that is no text cannot be written into an annotation, so no such file can hold objects of a package.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let kind = entry.file_type().map_err(io_error(&path))?;
        if kind.is_dir() {
            entries.push((name, EntryKind::Folder));
        } else if kind.is_file() || kind.is_symlink() && fs::metadata(&path).map_err(io_error(&path))?.is_file() {
            entries.push((name, EntryKind::File));
        }
    }
    entries.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    Ok(entries)
}

fn holds_objects(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    name == "Kptfile" || matches!(extension, Some("yaml" | "yml" | "json"))
}

/// Joins two relative paths with a slash.
pub(super) fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", name) => name.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}
