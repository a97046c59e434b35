//! What a function has to say about a package, in the form that kpt and its peers read.

use crate::{item::Item, yaml::Node, yaml::Value};

/// How much a result matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something is wrong.
    Error,
    /// Something may be wrong.
    Warning,
    /// Good to know.
    Info,
}

impl Severity {
    /// As it is written in results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// The object that a result is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRef {
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`, if it has one.
    pub namespace: Option<String>,
}

/// One remark.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionResult {
    /// For people.
    pub message: String,
    /// How much it matters.
    pub severity: Severity,
    /// The object it is about.
    pub resource: Option<ResourceRef>,
    /// The field it is about, such as `spec.cniType`.
    pub field: Option<String>,
    /// The file of the package, and the document in it.
    pub file: Option<(String, i64)>,
    /// Further words for programs.
    pub tags: Vec<(String, String)>,
}

impl FunctionResult {
    /// A result about nothing in particular.
    pub fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self { message: message.into(), severity, resource: None, field: None, file: None, tags: Vec::new() }
    }

    /// The same about an item: names the object and, if it has one, its file.
    #[must_use]
    pub fn about(mut self, item: &Item) -> Self {
        self.resource = Some(item.resource_ref());
        self.file = item.path().map(|path| (path.to_owned(), item.index().unwrap_or(0)));
        self
    }

    /// The same about a field of the item.
    #[must_use]
    pub fn at_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// The same with a tag.
    #[must_use]
    pub fn tagged(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.push((key.into(), value.into()));
        self
    }

    /// In the form of the specification.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let reference = self.resource.as_ref().map(|resource| {
            Value::object()
                .with("apiVersion", &resource.api_version)
                .with("kind", &resource.kind)
                .with("name", &resource.name)
                .with_some("namespace", resource.namespace.as_ref())
        });
        let field = self.field.as_ref().map(|path| Value::object().with("path", path));
        let file = self.file.as_ref().map(|(path, index)| Value::object().with("path", path).with("index", *index));
        let tags = (!self.tags.is_empty()).then(|| Value::map(self.tags.iter().map(|(key, value)| (key, value))));
        Value::object()
            .with("message", &self.message)
            .with("severity", self.severity.as_str())
            .with_some("resourceRef", reference)
            .with_some("field", field)
            .with_some("file", file)
            .with_some("tags", tags)
    }

    /// Reads what a function wrote, older shapes included.
    #[must_use]
    pub fn from_node(node: &Node) -> Self {
        let text = |path: &[&str]| node.text(path).map(str::to_owned);
        let severity = match node.text(&["severity"]) {
            Some("warning") => Severity::Warning,
            Some("info") => Severity::Info,
            _ => Severity::Error,
        };
        let resource = node.get("resourceRef").map(|_| ResourceRef {
            api_version: text(&["resourceRef", "apiVersion"]).unwrap_or_default(),
            kind: text(&["resourceRef", "kind"]).unwrap_or_default(),
            name: text(&["resourceRef", "name"])
                .or_else(|| text(&["resourceRef", "metadata", "name"]))
                .unwrap_or_default(),
            namespace: text(&["resourceRef", "namespace"]).or_else(|| text(&["resourceRef", "metadata", "namespace"])),
        });
        let index = node.at(&["file", "index"]).and_then(Node::as_int).unwrap_or(0);
        let tags = node.get("tags").into_iter().flat_map(Node::entries);
        Self {
            message: text(&["message"]).unwrap_or_default(),
            severity,
            resource,
            field: text(&["field", "path"]),
            file: text(&["file", "path"]).map(|path| (path, index)),
            tags: tags.filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned()))).collect(),
        }
    }
}

/// All remarks of one run of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    list: Vec<FunctionResult>,
}

impl Results {
    /// Adds a result.
    pub fn push(&mut self, result: FunctionResult) {
        self.list.push(result);
    }

    /// Adds an error about an item.
    pub fn error(&mut self, item: &Item, message: impl Into<String>) {
        self.push(FunctionResult::new(Severity::Error, message).about(item));
    }

    /// Adds a warning about an item.
    pub fn warning(&mut self, item: &Item, message: impl Into<String>) {
        self.push(FunctionResult::new(Severity::Warning, message).about(item));
    }

    /// Adds a note about nothing in particular.
    pub fn info(&mut self, message: impl Into<String>) {
        self.push(FunctionResult::new(Severity::Info, message));
    }

    /// In the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &FunctionResult> {
        self.list.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether one of them is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|result| result.severity == Severity::Error)
    }

    /// In the form of the specification.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::List(self.list.iter().map(FunctionResult::to_value).collect())
    }

    /// Reads what a function wrote; the older shape, a map with `items`, too.
    #[must_use]
    pub fn from_node(node: &Node) -> Self {
        let list = node.get("items").unwrap_or(node);
        Self { list: list.elements().map(FunctionResult::from_node).collect() }
    }
}
