//! Runs the pipelines of a package and its subpackages, innermost first.

use std::collections::HashSet;

use super::{
    FunctionReport, Progress, RenderError, Request,
    handover::{self, Program, Role},
    package::{self, Files, Package},
    select,
    steps::{self, Action, Config, Step},
    write,
};
use crate::{Item, ResourceList, Value, function::run_strictly, yaml::Stream};

/// A run over a tree of packages.
pub(super) struct Run<'r> {
    request: &'r Request<'r>,
    progress: &'r mut dyn Progress,
    pub(super) functions: Vec<FunctionReport>,
    files: Files,
}

/// Where a step runs.
#[derive(Clone, Copy)]
struct Place<'p> {
    package: &'p Package,
    name: &'p str,
    role: Role,
}

impl<'r> Run<'r> {
    pub(super) fn new(request: &'r Request<'r>, progress: &'r mut dyn Progress) -> Self {
        Self { request, progress, functions: Vec::new(), files: Files::default() }
    }

    pub(super) fn package_tree(&mut self) -> Result<(Vec<Item>, Files, usize), RenderError> {
        let (package, files) = package::read(self.request.folder)?;
        self.files = files;
        let mut packages = 0;
        let items = self.package(package, &mut packages)?;
        Ok((items, std::mem::take(&mut self.files), packages))
    }

    fn package(&mut self, mut package: Package, packages: &mut usize) -> Result<Vec<Item>, RenderError> {
        *packages += 1;
        let mut items = Vec::new();
        for subpackage in std::mem::take(&mut package.subpackages) {
            items.extend(self.package(subpackage, packages)?);
        }
        items.append(&mut package.items);
        let mutators = steps::read(&package, "mutators", self.request.allow_exec)?;
        let validators = steps::read(&package, "validators", self.request.allow_exec)?;
        let base = self.request.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = package::join(&base, &package.folder);
        let place = Place { package: &package, name: &name, role: Role::Mutator };
        for step in mutators.iter().chain(&validators) {
            self.check_config(step, place)?;
        }
        self.progress.package(&name);
        for step in &mutators {
            items = self.step(step, place, items)?;
        }
        for step in &validators {
            // A validator may only object: what it gives back is checked and dropped.
            self.step(step, Place { role: Role::Validator, ..place }, items.clone())?;
        }
        Ok(items)
    }

    /// Runs one function on the items it may see, and merges what it gives back with the others.
    fn step(&mut self, step: &Step, place: Place<'_>, items: Vec<Item>) -> Result<Vec<Item>, RenderError> {
        let config = self.config(step, place, &items)?;
        if !step.is_selective() {
            return self.run(step, place, items, None, config);
        }
        let chosen = select::choose(&items, &step.selectors, &step.exclude);
        let given = chosen.iter().map(|&position| Item { slot: Some(position), ..items[position].clone() }).collect();
        let returned = self.run(step, place, given, Some(&chosen), config)?;
        Ok(merge(items, &chosen, returned))
    }

    fn run(
        &mut self,
        step: &Step,
        place: Place<'_>,
        given: Vec<Item>,
        chosen: Option<&[usize]>,
        config: Option<Item>,
    ) -> Result<Vec<Item>, RenderError> {
        self.progress.begin(&step.name, chosen.map(<[usize]>::len));
        let mut report = FunctionReport {
            name: step.name.clone(),
            named_by: step.named_by,
            package: place.name.to_owned(),
            exit: 0,
            stderr: String::new(),
            results: Vec::new(),
            problem: None,
        };
        let outcome = check_objects(&given, "it is given")
            .and_then(|()| match &step.action {
                Action::BuiltIn(_) => self.built_in(step, place, given, config, &mut report),
                Action::Program(words) => self.program(words, place, given, chosen, config.as_ref(), &mut report),
            })
            .and_then(|items| {
                check_objects(&items, "it gives back")?;
                check_places(&items)?;
                Ok(items)
            });
        if let Err(reason) = &outcome {
            report.problem = Some(reason.clone());
            if report.exit == 0 {
                report.exit = 1;
            }
        }
        self.progress.end(&report);
        self.functions.push(report);
        outcome.map_err(|reason| RenderError::Function { name: step.name.clone(), reason })
    }

    fn built_in(
        &self,
        step: &Step,
        place: Place<'_>,
        given: Vec<Item>,
        config: Option<Item>,
        report: &mut FunctionReport,
    ) -> Result<Vec<Item>, String> {
        let Action::BuiltIn(function) = &step.action else { return Ok(given) };
        let mut list = ResourceList::new(given, config);
        let outcome = run_strictly(*function, &mut list, self.request.context, self.request.strict);
        if let Value::List(results) = list.results.to_value() {
            report.results = results;
        }
        outcome.map_err(|error| error.to_string())?;
        list.items.iter_mut().for_each(|item| handover::settle(item, &place.package.folder));
        Ok(list.items)
    }

    fn program(
        &self,
        words: &[String],
        place: Place<'_>,
        given: Vec<Item>,
        chosen: Option<&[usize]>,
        config: Option<&Item>,
        report: &mut FunctionReport,
    ) -> Result<Vec<Item>, String> {
        let root = self.request.folder;
        let sent = handover::list_text(&given, chosen, config, place.role, root, &self.files);
        let program = self.request.programs.run(words, &sent);
        let Program { stdout, stderr, exit } = program.map_err(|error| format!("it cannot be started: {error}"))?;
        report.stderr = stderr;
        report.exit = exit;
        let returned = handover::read_output(&stdout);
        if let Ok(returned) = &returned {
            report.results.clone_from(&returned.results);
        }
        if exit != 0 {
            return Err(format!("it ended with exit code {exit}"));
        }
        handover::absorb(returned?.items, &sent, &given, &place.package.folder, root)
    }

    /// A configPath must name a file with one object before anything runs.
    fn check_config(&self, step: &Step, place: Place<'_>) -> Result<(), RenderError> {
        let Config::Path(path) = &step.config else { return Ok(()) };
        let refuse = |reason: String| RenderError::Entry {
            field: format!("{}.configPath", step.field),
            package: place.name.to_owned(),
            reason: format!("{path:?} {reason}"),
        };
        let file = self.request.folder.join(&place.package.folder).join(path);
        let text = package::read_text(&file).map_err(|_| refuse("is no file of the package".to_owned()))?;
        let stream = Stream::parse(text).map_err(|error| refuse(format!("is not YAML: {error}")))?;
        let [document] = &stream.documents[..] else {
            return Err(refuse(format!("must hold one object and holds {}", stream.documents.len())));
        };
        check_object(&Item::from_document(document.clone())).map_err(refuse)
    }

    fn config(&self, step: &Step, place: Place<'_>, items: &[Item]) -> Result<Option<Item>, RenderError> {
        match &step.config {
            Config::None => Ok(None),
            Config::Map(entries) => {
                let data = Value::map(entries.iter().map(|(key, value)| (key, value)));
                let config = Value::object()
                    .with("apiVersion", "v1")
                    .with("kind", "ConfigMap")
                    .with("metadata", Value::map([("name", "function-input")]))
                    .with("data", data);
                let mut config = Item::new(&config);
                if let Some(data) = config.node_mut().get_mut("data") {
                    data.in_brackets();
                }
                Ok(Some(config))
            }
            Config::Path(path) => {
                let of_package = |item: &&Item| {
                    let file = item.file.as_deref();
                    file.is_some_and(|file| file.package == place.package.folder && file.path == *path)
                };
                let found = items.iter().find(of_package).cloned();
                found.map(Some).ok_or_else(|| RenderError::Entry {
                    field: format!("{}.configPath", step.field),
                    package: place.name.to_owned(),
                    reason: format!("{path:?} is no file with an object of this package"),
                })
            }
        }
    }
}

/// Every item that a function gets or gives needs a type and a name.
fn check_objects(items: &[Item], whose: &str) -> Result<(), String> {
    items.iter().try_for_each(|item| {
        check_object(item)
            .map_err(|reason| format!("{whose} an object in {}: it {reason}", item.path().unwrap_or("no file")))
    })
}

fn check_object(item: &Item) -> Result<(), String> {
    let missing = |field: &str| Err(format!("has no `{field}`"));
    if item.api_version().is_empty() {
        return missing("apiVersion");
    }
    if item.kind().is_empty() {
        return missing("kind");
    }
    // Kustomize does not ask for a name in its own files.
    if item.name().is_empty() && item.kind() != "Kustomization" {
        return missing("metadata.name");
    }
    Ok(())
}

/// No item may leave its package, and no two may stand in one place.
fn check_places(items: &[Item]) -> Result<(), String> {
    let mut taken = HashSet::new();
    for item in items {
        let Some(file) = item.file.as_deref() else { continue };
        let path = file.path.strip_prefix('/').unwrap_or(&file.path);
        if write::clean(path).starts_with("..") || path.starts_with("../") {
            return Err(format!("it puts {} {} outside of the package, at {:?}", item.kind(), item.name(), file.path));
        }
        if !taken.insert((&file.package, path, &file.index)) {
            let index = file.index.as_deref().unwrap_or("none");
            return Err(format!("it puts two objects in one place: the file {:?}, index {index}", file.path));
        }
    }
    Ok(())
}

/// What was not chosen stays where it was; what was chosen is replaced by what came back, or goes; new items go to the end.
fn merge(items: Vec<Item>, chosen: &[usize], returned: Vec<Item>) -> Vec<Item> {
    let chosen: HashSet<usize> = chosen.iter().copied().collect();
    let mut by_slot = std::collections::HashMap::new();
    let mut new = Vec::new();
    for item in returned {
        match item.slot {
            Some(slot) if chosen.contains(&slot) => drop(by_slot.insert(slot, item)),
            _ => new.push(item),
        }
    }
    let kept = items
        .into_iter()
        .enumerate()
        .filter_map(|(position, item)| if chosen.contains(&position) { by_slot.remove(&position) } else { Some(item) });
    kept.chain(new).map(|item| Item { slot: None, ..item }).collect()
}
