//! The entries of a pipeline, read from a Kptfile and made ready to run.

use super::{RenderError, image, package::Package, schema, select::Selector, shell};
use crate::{Function, functions, yaml::Node};

/// One function of a pipeline.
pub(super) struct Step {
    /// As the pipeline names it.
    pub(super) name: String,
    pub(super) named_by: &'static str,
    /// Where it stands, such as `pipeline.mutators[0]`.
    pub(super) field: String,
    pub(super) action: Action,
    pub(super) config: Config,
    pub(super) selectors: Vec<Selector>,
    pub(super) exclude: Vec<Selector>,
}

pub(super) enum Action {
    BuiltIn(&'static dyn Function),
    Program(Vec<String>),
}

pub(super) enum Config {
    None,
    Map(Vec<(String, String)>),
    /// A file of the package.
    Path(String),
}

impl Step {
    pub(super) fn is_selective(&self) -> bool {
        !self.selectors.is_empty() || !self.exclude.is_empty()
    }
}

/// The entries of `mutators` or `validators` of a package.
pub(super) fn read(package: &Package, list: &'static str, allow_exec: bool) -> Result<Vec<Step>, RenderError> {
    let entries = package.kptfile.at(&["pipeline", list]).into_iter().flat_map(Node::elements);
    entries
        .enumerate()
        .map(|(index, entry)| {
            let field = format!("pipeline.{list}[{index}]");
            read_step(entry, &field, allow_exec).map_err(|(field, reason)| RenderError::Entry {
                field,
                package: package.kptfile.text(&["metadata", "name"]).unwrap_or_default().to_owned(),
                reason,
            })
        })
        .collect()
}

type Refusal = (String, String);

fn read_step(entry: &Node, field: &str, allow_exec: bool) -> Result<Step, Refusal> {
    let refuse = |reason: &str| Err((field.to_owned(), reason.to_owned()));
    let text = |key: &str| entry.text(&[key]).filter(|text| !text.is_empty());
    let (name, named_by, action) = match (text("image"), text("exec")) {
        (Some(_), Some(_)) => return refuse("it names both an image and a program (`exec`)"),
        (None, None) => return refuse("it names neither an image nor a program (`exec`)"),
        (Some(image), None) => (image, "image", image_action(image, field)?),
        (None, Some(exec)) => (exec, "exec", exec_action(exec, field, allow_exec)?),
    };
    let map = entry.get("configMap").filter(|map| !map.is_null() && !map.is_empty_collection());
    let config = match (map, text("configPath")) {
        (Some(_), Some(_)) => return refuse("it has both a configMap and a configPath"),
        (Some(map), None) => {
            Config::Map(map.entries().map(|(key, value)| (key.to_owned(), schema::text_of(value))).collect())
        }
        (None, Some(path)) => Config::Path(checked_path(path, field)?),
        (None, None) => Config::None,
    };
    let selectors = |key: &str| entry.get(key).into_iter().flat_map(Node::elements).map(Selector::read).collect();
    Ok(Step {
        name: name.to_owned(),
        named_by,
        field: field.to_owned(),
        action,
        config,
        selectors: selectors("selectors"),
        exclude: selectors("exclude"),
    })
}

fn image_action(image: &str, field: &str) -> Result<Action, Refusal> {
    let found = image::built_in_for_image(image).and_then(functions::find);
    found.map(Action::BuiltIn).ok_or_else(|| {
        let known: Vec<&str> = functions::all().iter().map(|function| function.name()).collect();
        let reason = format!(
            "the image {image} is not built in, and no containers are run here: use `exec` with a program, run the package \
             with kpt, or name one of the built-in functions ({})",
            known.join(", ")
        );
        (format!("{field}.image"), reason)
    })
}

/// A program; `orrery fn NAME` is the built-in function and needs no consent.
fn exec_action(exec: &str, field: &str, allow_exec: bool) -> Result<Action, Refusal> {
    let refuse = |reason: String| (format!("{field}.exec"), reason);
    let words =
        shell::split(exec).map_err(|reason| refuse(format!("{exec:?} cannot be split into words: {reason}")))?;
    if let [program, "fn", name] = words.iter().map(String::as_str).collect::<Vec<_>>()[..]
        && program.rsplit('/').next() == Some("orrery")
        && let Some(function) = functions::find(name)
    {
        return Ok(Action::BuiltIn(function));
    }
    if words.is_empty() {
        return Err(refuse("it names no program".to_owned()));
    }
    if !allow_exec {
        return Err(refuse(format!("{exec:?} is a program on this machine: allow it with --allow-exec")));
    }
    Ok(Action::Program(words))
}

fn checked_path(path: &str, field: &str) -> Result<String, Refusal> {
    let refuse = |reason: &str| Err((format!("{field}.configPath"), format!("{path:?} {reason}")));
    let clean = super::write::clean(path);
    if path.starts_with('/') {
        return refuse("must be relative to the package");
    }
    if clean.starts_with("..") {
        return refuse("is outside of the package");
    }
    Ok(clean)
}
