//! What has to be written: only files whose text changes, each of them as a whole.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    RenderError,
    package::{Files, SourceFile, join},
};
use crate::{Item, yaml::Span};

/// The changes that turn the folder into the outcome.
#[derive(Debug, Default)]
pub struct Plan {
    root: PathBuf,
    /// The new texts of files, by path.
    pub writes: BTreeMap<String, String>,
    /// Files that hold no object any more.
    pub removals: Vec<String>,
    /// All files of the outcome, by path, whether they change or not.
    outcome: BTreeMap<String, String>,
}

/// What was done to the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Files that were new or changed.
    pub written: usize,
    /// Files that were removed.
    pub removed: usize,
    /// Files with objects that stayed as they were.
    pub unchanged: usize,
}

/// Puts the items into files, in the order of their indexes.
pub(super) fn plan(items: &[Item], files: &Files) -> Result<Plan, RenderError> {
    let mut by_path: BTreeMap<String, Vec<&Item>> = BTreeMap::new();
    for item in items {
        by_path.entry(place(item)?).or_default().push(item);
    }
    let by_name: HashMap<&str, usize> =
        files.list.iter().enumerate().map(|(n, file)| (file.path.as_str(), n)).collect();
    let mut plan = Plan { root: files.root.clone(), ..Plan::default() };
    for (path, items) in by_path {
        if files.root.join(&path).is_dir() {
            return Err(RenderError::Unsavable(format!("{path} is a folder, and an item names it as its file")));
        }
        let source = by_name.get(path.as_str()).copied();
        let text = file_text(&in_order(items)?, source, files);
        if source.is_none_or(|number| *files.list[number].text != *text) {
            plan.writes.insert(path.clone(), text.clone());
        }
        plan.outcome.insert(path, text);
    }
    for file in files.list.iter().filter(|file| !file.documents.is_empty()) {
        if !plan.outcome.contains_key(&file.path) {
            plan.removals.push(file.path.clone());
        }
    }
    Ok(plan)
}

/// The file of an item, relative to the folder that is rendered.
fn place(item: &Item) -> Result<String, RenderError> {
    let file = item.file.as_ref();
    let path = file.map(|file| clean(&file.path)).unwrap_or_default();
    if path.is_empty() {
        return Err(RenderError::Unsavable(format!("{} {} has an empty path", item.kind(), item.name())));
    }
    Ok(join(file.map_or("", |file| &file.package), &path))
}

/// A relative path without `.` and doubled slashes; what leads out of the package has been refused before.
pub(super) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The items of one file in the order of their indexes. As in kpt, one without index takes the highest of the others, and
/// those with the same index stay in the order of the list.
fn in_order(items: Vec<&Item>) -> Result<Vec<&Item>, RenderError> {
    let index_of = |item: &Item| -> Result<Option<i64>, RenderError> {
        let text = item.file.as_ref().and_then(|file| file.index.as_deref());
        text.map(|text| {
            text.parse()
                .map_err(|_| RenderError::Unsavable(format!("the index {text:?} of {} is no number", item.name())))
        })
        .transpose()
    };
    let mut indexed = Vec::with_capacity(items.len());
    let mut highest = 0;
    for item in &items {
        highest = highest.max(index_of(item)?.unwrap_or(0));
    }
    for item in items {
        let index = index_of(item)?.unwrap_or_else(|| {
            highest += 1;
            highest - 1
        });
        indexed.push((index, item));
    }
    indexed.sort_by_key(|(index, _)| *index);
    Ok(indexed.into_iter().map(|(_, item)| item).collect())
}

/// The text of a file: documents that were in it stay with their separators and comments.
fn file_text(items: &[&Item], number: Option<usize>, files: &Files) -> String {
    let source = number.map(|number| &files.list[number]);
    let mut text = String::new();
    if let Some(source) = source {
        let first = source.documents.first().map_or(source.text.len() as u32, |segment| segment.separator);
        text.push_str(Span { start: 0, end: first }.of(&source.text));
    }
    for (position, item) in items.iter().enumerate() {
        let home = item.file.as_ref().and_then(|file| file.home).filter(|(file, _)| Some(*file) == number);
        let separator = home.zip(source).map(|((_, document), source)| {
            let segment = source.documents[document];
            Span { start: segment.separator, end: segment.body.start }.of(&source.text)
        });
        let body = files.text_of(item);
        let was_first = home.is_some_and(|(_, document)| document == 0);
        if position > 0 || was_first {
            if position > 0 && !text.is_empty() && !text.ends_with(['\n', '\r']) {
                text.push('\n');
            }
            let separator = separator.unwrap_or_default();
            text.push_str(if position > 0 && separator.is_empty() { "---\n" } else { separator });
        }
        text.push_str(&body);
        text.push_str(trailing(home, source));
    }
    text
}

/// Comments between a document and the next separator that stand in a document of their own.
fn trailing(home: Option<(usize, usize)>, source: Option<&SourceFile>) -> &str {
    let (Some((_, document)), Some(source)) = (home, source) else { return "" };
    let end = source.documents.get(document + 1).map_or(source.text.len() as u32, |next| next.separator);
    Span { start: source.documents[document].body.end, end }.of(&source.text)
}

impl Plan {
    /// Whether the folder already is the outcome.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.removals.is_empty()
    }

    /// What [`Plan::apply`] does, in numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            written: self.writes.len(),
            removed: self.removals.len(),
            unchanged: self.outcome.len() - self.writes.len(),
        }
    }

    /// Makes the changes in the folder. Every new text is on disk under another name before the first file is replaced, so
    /// that a full disk or a missing right leaves the package as it was.
    ///
    /// # Errors
    /// When a file or folder cannot be written.
    pub fn apply(&self) -> Result<(), RenderError> {
        let mut staged = Staged::default();
        for (path, text) in &self.writes {
            staged.add(&self.root.join(path), text)?;
        }
        staged.commit()?;
        for path in &self.removals {
            let path = self.root.join(path);
            fs::remove_file(&path).map_err(|error| RenderError::Io { path, error })?;
        }
        Ok(())
    }

    /// Writes all files of the outcome into a new folder.
    ///
    /// # Errors
    /// When a file or folder cannot be written.
    pub fn write_to(&self, folder: &Path) -> Result<(), RenderError> {
        let mut staged = Staged::default();
        make_folder(folder, &mut staged.folders)?;
        for (path, text) in &self.outcome {
            staged.add(&folder.join(path), text)?;
        }
        staged.commit()
    }
}

/// Files under temporary names; what is not committed is removed again.
#[derive(Default)]
struct Staged {
    files: Vec<(PathBuf, PathBuf)>,
    folders: Vec<PathBuf>,
}

impl Staged {
    fn add(&mut self, target: &Path, text: &str) -> Result<(), RenderError> {
        // A link is written through, as kpt does.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let folder = target.parent().unwrap_or(Path::new("."));
        make_folder(folder, &mut self.folders)?;
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Two paths may be links to one file, so the name alone is not enough.
        let temporary = folder.join(format!(".{name}.orrery-{}-{}", std::process::id(), self.files.len()));
        self.files.push((temporary.clone(), target.clone()));
        let write = || -> io::Result<()> {
            fs::write(&temporary, text)?;
            if let Ok(old) = fs::metadata(&target) {
                fs::set_permissions(&temporary, old.permissions())?;
            }
            Ok(())
        };
        write().map_err(|error| RenderError::Io { path: target, error })
    }

    fn commit(mut self) -> Result<(), RenderError> {
        self.folders.clear();
        for (temporary, target) in &self.files {
            fs::rename(temporary, target).map_err(|error| RenderError::Io { path: target.clone(), error })?;
        }
        self.files.clear();
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            let _ = fs::remove_file(temporary);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Makes a folder with all above it, and remembers which were new.
fn make_folder(folder: &Path, made: &mut Vec<PathBuf>) -> Result<(), RenderError> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above, made)?;
    }
    fs::create_dir(folder).map_err(|error| RenderError::Io { path: folder.to_owned(), error })?;
    made.push(folder.to_owned());
    Ok(())
}
