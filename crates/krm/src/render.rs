//! A Kptfile's whole pipeline in one process: reads a package, runs its functions, and says what to write.
//!
//! Subpackages come first, then the package around them, which sees their results. Within a package the mutators run in
//! order on one another's output; then every validator looks at the outcome and may only object. What no function changed
//! keeps every byte. Nothing is written by this module but through [`Plan::apply`], after everything has passed.

mod comments;
mod handover;
mod ignore;
mod image;
mod package;
mod pipeline;
mod schema;
mod select;
mod shell;
mod steps;
mod write;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use handover::Program;
pub use image::built_in_for_image;
pub use write::{Plan, Summary};

use crate::{Context, Item, Value, yaml::ParseError};

/// What to render, and what the renderer may use for it.
pub struct Request<'r> {
    /// The folder with the Kptfile.
    pub folder: &'r Path,
    /// Whether the pipeline may start other programs (`exec`).
    pub allow_exec: bool,
    /// Whether an error that a built-in function reports fails the run.
    pub strict: bool,
    /// What the built-in functions may know.
    pub context: &'r Context,
    /// Starts other programs.
    pub programs: &'r dyn Programs,
}

/// Starts the programs that a pipeline names.
pub trait Programs {
    /// Runs one with this text on its standard input.
    ///
    /// # Errors
    /// When it cannot be started.
    fn run(&self, arguments: &[String], input: &str) -> io::Result<Program>;
}

/// Is told what happens while a package is rendered.
pub trait Progress {
    /// The pipeline of a package begins.
    fn package(&mut self, name: &str);
    /// A function begins; the number of items if selectors chose some.
    fn begin(&mut self, function: &str, chosen: Option<usize>);
    /// The function that began last has ended.
    fn end(&mut self, report: &FunctionReport);
}

/// How one function ended.
#[derive(Clone, Debug)]
pub struct FunctionReport {
    /// As the pipeline names it.
    pub name: String,
    /// How the pipeline names it: `image` or `exec`.
    pub named_by: &'static str,
    /// The package whose pipeline it is part of.
    pub package: String,
    /// 0 if it passed.
    pub exit: i32,
    /// What it wrote to standard error.
    pub stderr: String,
    /// What it had to say, in the form of the specification.
    pub results: Vec<Value>,
    /// Why the run ended here, if that was not the function's own doing.
    pub problem: Option<String>,
}

/// A package after its pipeline.
#[derive(Debug)]
pub struct Rendered {
    /// Every function that ran, in order.
    pub functions: Vec<FunctionReport>,
    /// The number of packages.
    pub packages: usize,
    pub(crate) items: Vec<Item>,
    pub(crate) files: package::Files,
}

/// A run that came to no result. Nothing may be written.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub error: RenderError,
    /// Every function that ran, the failing one included.
    pub functions: Vec<FunctionReport>,
}

/// Why a package cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The folder is no package.
    #[error("no Kptfile in {0}: a package is a folder with one")]
    NoKptfile(PathBuf),
    /// A Kptfile has another form than kpt allows.
    #[error("the Kptfile in {folder} cannot be used: {reason}")]
    Kptfile {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file is no YAML.
    #[error("{file} is not YAML: {error}")]
    Yaml {
        /// The file.
        file: PathBuf,
        /// Where and why.
        error: ParseError,
    },
    /// A file is YAML, but holds no object.
    #[error("{file} holds no object: {reason}")]
    NotObject {
        /// The file.
        file: PathBuf,
        /// What it holds.
        reason: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// An entry of the pipeline cannot be run.
    #[error("{field} of the package {package}: {reason}")]
    Entry {
        /// Where it stands in the Kptfile.
        field: String,
        /// The package.
        package: String,
        /// Why.
        reason: String,
    },
    /// A function failed, or did what no function may do.
    #[error("the function {name:?} failed: {reason}")]
    Function {
        /// As the pipeline names it.
        name: String,
        /// Why.
        reason: String,
    },
    /// What the functions made cannot be put into files.
    #[error("the result cannot be saved: {0}")]
    Unsavable(String),
}

/// Runs the pipelines of a package and its subpackages.
///
/// # Errors
/// When the package cannot be read or a function fails; the reports of the functions that ran are part of the failure.
pub fn render(request: &Request<'_>, progress: &mut dyn Progress) -> Result<Rendered, Box<Failure>> {
    let mut run = pipeline::Run::new(request, progress);
    match run.package_tree() {
        Ok((items, files, packages)) => Ok(Rendered { functions: run.functions, packages, items, files }),
        Err(error) => Err(Box::new(Failure { error, functions: run.functions })),
    }
}

impl Rendered {
    /// What has to be written and removed so that the folder holds the outcome.
    ///
    /// # Errors
    /// When two items would stand in one place, or one has no place that a file can be.
    pub fn plan(&self) -> Result<Plan, RenderError> {
        write::plan(&self.items, &self.files)
    }

    /// The outcome as the items of a ResourceList, with their places as annotations.
    #[must_use]
    pub fn resource_list(&self) -> String {
        handover::final_list(&self.items, &self.files)
    }

    /// The outcome as documents.
    #[must_use]
    pub fn documents(&self) -> String {
        let texts: Vec<String> = self.items.iter().map(|item| self.files.text_of(item)).collect();
        texts.join("---\n")
    }
}
