//! What the published schemas leave out, read from the Go types of the Kubernetes API: order, pointers, `omitempty` and type names.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A type of one of the API packages.
pub(crate) enum Declared {
    /// A struct, in the order of its fields.
    Struct(Vec<Field>),
    /// A named form of another type.
    Named {
        /// The other type.
        of: Expr,
        /// Whether protobuf has a message of its own for it.
        message: bool,
    },
}

/// A field of a struct.
#[derive(Clone)]
pub(crate) struct Field {
    /// The name in JSON; none where the struct named by the type is inlined.
    pub(crate) json: Option<String>,
    pub(crate) omit_empty: bool,
    pub(crate) omit_zero: bool,
    pub(crate) expr: Expr,
    /// Its names in Go and numbers in protobuf, with those of the inlined structs it stands in before it; empty where protobuf leaves it out.
    pub(crate) protobuf: Vec<(String, u32)>,
}

/// A type as it is written.
#[derive(Clone)]
pub(crate) enum Expr {
    Pointer(Box<Expr>),
    List(Box<Expr>),
    Map(Box<Expr>),
    /// A built-in type of the language.
    Builtin(String),
    /// A declared type, by the import path of its package and its name.
    Declared {
        package: String,
        name: String,
    },
}

/// The packages read so far, by import path.
pub(crate) struct GoTypes {
    modules: PathBuf,
    /// What the versions of the modules begin with: the cache may hold others too.
    version: String,
    packages: HashMap<String, BTreeMap<String, Declared>>,
}

impl GoTypes {
    /// Reads from a directory that holds the modules of `k8s.io` as `<module>@<version>`: those of 1.34 are 0.34 there.
    pub(crate) fn new(modules: &Path, version: &str) -> Self {
        let version = format!("v0.{}.", version.strip_prefix("1.").unwrap_or(version));
        Self { modules: modules.to_path_buf(), version, packages: HashMap::new() }
    }

    /// Whether protobuf has a message for a type.
    pub(crate) fn has_message(&mut self, package: &str, name: &str) -> Result<bool> {
        let Some(directory) = self.directory(package)? else { return Ok(false) };
        let Ok(messages) = fs::read_to_string(directory.join("generated.proto")) else { return Ok(false) };
        Ok(messages.lines().any(|line| line == format!("message {name} {{")))
    }

    /// The declaration of a type, if its package is one of `k8s.io` and declares it.
    pub(crate) fn declared(&mut self, package: &str, name: &str) -> Result<Option<&Declared>> {
        if !self.packages.contains_key(package) {
            let read = self.read(package)?;
            self.packages.insert(package.to_owned(), read);
        }
        Ok(self.packages.get(package).and_then(|types| types.get(name)))
    }

    fn read(&self, package: &str) -> Result<BTreeMap<String, Declared>> {
        let mut types = BTreeMap::new();
        for file in self.files(package)? {
            let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            read_file(package, &text, &mut types);
        }
        Ok(types)
    }

    /// The files of a package that people wrote, sorted; none if it is not one of `k8s.io`.
    pub(crate) fn files(&self, package: &str) -> Result<Vec<PathBuf>> {
        let Some(directory) = self.directory(package)? else { return Ok(Vec::new()) };
        let mut files: Vec<PathBuf> =
            fs::read_dir(&directory)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.retain(|file| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated")
        });
        files.sort();
        Ok(files)
    }

    fn directory(&self, package: &str) -> Result<Option<PathBuf>> {
        let Some(rest) = package.strip_prefix("k8s.io/") else { return Ok(None) };
        let (module, below) = rest.split_once('/').unwrap_or((rest, ""));
        for entry in fs::read_dir(&self.modules).with_context(|| format!("reading {}", self.modules.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.split_once('@').is_some_and(|(name, at)| name == module && at.starts_with(&self.version)) {
                let directory = path.join(below);
                return Ok(directory.is_dir().then_some(directory));
            }
        }
        Ok(None)
    }
}

/// Reads the declarations of one file, as gofmt lays them out: a declaration starts and ends in the first column.
fn read_file(package: &str, text: &str, types: &mut BTreeMap<String, Declared>) {
    let imports = imports(text);
    let mut lines = text.lines();
    let mut message = false;
    while let Some(line) = lines.next() {
        let Some(declaration) = line.strip_prefix("type ") else {
            message = !line.is_empty() && (message || line == "// +protobuf.nullable=true");
            continue;
        };
        let message = std::mem::take(&mut message);
        let Some((name, rest)) = declaration.split_once(' ') else { continue };
        let scope = Scope { package, imports: &imports };
        if rest.trim_end() == "struct {" {
            let body = lines.by_ref().take_while(|line| *line != "}");
            types.insert(name.to_owned(), Declared::Struct(body.filter_map(|line| scope.field(line)).collect()));
        } else if rest.trim_end() == "struct{}" {
            types.insert(name.to_owned(), Declared::Struct(Vec::new()));
        } else if !rest.starts_with("interface") && !rest.starts_with("func") && !name.contains('(') {
            let written = rest.split("//").next().unwrap_or_default().trim();
            types.insert(name.to_owned(), Declared::Named { of: scope.expr(written), message });
        }
    }
}

fn imports(text: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for line in text.lines().take_while(|line| !line.starts_with("type ")) {
        let line = line.trim().trim_start_matches("import ");
        let mut quoted = line.split('"');
        let (Some(alias), Some(path)) = (quoted.next(), quoted.next()) else { continue };
        let last = path.rsplit('/').next().unwrap_or_default();
        let alias = if alias.trim().is_empty() { last } else { alias.trim() };
        found.insert(alias.to_owned(), path.to_owned());
    }
    found
}

struct Scope<'a> {
    package: &'a str,
    imports: &'a HashMap<String, String>,
}

impl Scope<'_> {
    fn field(&self, line: &str) -> Option<Field> {
        let line = line.trim();
        if line.starts_with("//") {
            return None;
        }
        let (declaration, tag) = line.split_once('`')?;
        let quoted = |key: &str| tag.split(key).nth(1)?.split('"').next();
        let number = quoted("protobuf:\"").and_then(|tag| tag.split(',').nth(1)?.parse().ok());
        let tag = quoted("json:\"")?;
        let (name, options) = tag.split_once(',').unwrap_or((tag, ""));
        let mut words = declaration.split_whitespace();
        let first = words.next()?;
        let written = words.collect::<Vec<_>>().join(" ");
        if name == "-" {
            return None;
        }
        let inline = name.is_empty();
        // An embedded struct has the name of its type.
        let own_name = first.rsplit('.').next().unwrap_or_default().trim_start_matches('*').to_owned();
        let written = if written.is_empty() { first } else { written.as_str() };
        Some(Field {
            json: (!inline).then(|| name.to_owned()),
            omit_empty: options.contains("omitempty"),
            omit_zero: options.contains("omitzero"),
            expr: self.expr(written),
            protobuf: number.map(|number| (own_name, number)).into_iter().collect(),
        })
    }

    fn expr(&self, written: &str) -> Expr {
        let written = written.trim().trim_start_matches("= ");
        if let Some(rest) = written.strip_prefix('*') {
            return Expr::Pointer(Box::new(self.expr(rest)));
        }
        if let Some(rest) = written.strip_prefix("[]") {
            return Expr::List(Box::new(self.expr(rest)));
        }
        if let Some(rest) = written.strip_prefix("map[") {
            return Expr::Map(Box::new(self.expr(rest.split_once(']').map_or("", |(_, value)| value))));
        }
        if let Some((alias, name)) = written.split_once('.') {
            let package = self.imports.get(alias).cloned().unwrap_or_else(|| alias.to_owned());
            return Expr::Declared { package, name: name.to_owned() };
        }
        if written.chars().next().is_some_and(char::is_lowercase) {
            return Expr::Builtin(written.to_owned());
        }
        Expr::Declared { package: self.package.to_owned(), name: written.to_owned() }
    }
}
