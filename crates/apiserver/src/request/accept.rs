//! In which form a client wants its answer.

use crate::{discovery::Aggregated, status::Status};

/// The bytes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON, indented if a person asked for it.
    Json {
        /// Whether to indent.
        pretty: bool,
    },
    /// YAML.
    Yaml,
    /// Protobuf, which only built-in kinds have.
    Protobuf,
}

/// What of an object is in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All of it.
    Whole,
    /// A table for people.
    Table,
    /// One object's metadata alone.
    Metadata,
    /// The metadata of each object of a list.
    MetadataList,
}

/// A shape in one version of its own API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// What of an object is wanted.
    pub shape: Shape,
    /// Whether in the old version of tables and metadata.
    pub beta: bool,
}

/// The forms that objects of a kind have besides those that all have.
#[derive(Clone, Copy, Debug)]
pub struct Forms {
    /// Whether whole objects can be had in protobuf.
    pub protobuf: bool,
    /// Whether they can be shown as a table: what can only be made cannot.
    pub table: bool,
}

/// The answer a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The bytes.
    pub encoding: Encoding,
    /// What they say.
    pub form: Form,
}

/// The answer a client accepts about what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The bytes.
    pub encoding: Encoding,
    /// All at once, in one of the versions of that; or as it was before.
    pub aggregated: Option<Aggregated>,
}

/// The media type of protobuf.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What we have for objects.
pub const AVAILABLE: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// What we have for lists, which can be watched.
pub const AVAILABLE_LIST: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf, \
                                  application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

impl Accepted {
    /// Plain JSON.
    pub const JSON: Self =
        Self { encoding: Encoding::Json { pretty: false }, form: Form { shape: Shape::Whole, beta: false } };

    /// Chooses by an Accept header, as Kubernetes does: first whether any type in it is ours, then the best clause we can serve.
    pub fn negotiate(header: &str, available: &str, forms: Forms) -> Result<Self, Status> {
        if header.is_empty() {
            return Ok(Self::JSON);
        }
        check_known(header, available)?;
        let chosen = clauses(header).iter().find_map(|clause| clause.serve(forms));
        chosen.ok_or_else(|| Status::no_acceptable_form(AVAILABLE))
    }

    /// Chooses the form of an answer about what there is.
    pub fn discovery(header: &str) -> Result<Discovery, Status> {
        if !header.is_empty() {
            check_known(header, AVAILABLE)?;
        }
        Self::listed(header, true)
    }

    /// The form of the list of one version's resources.
    pub fn resources(header: &str) -> Result<Encoding, Status> {
        if !header.is_empty() {
            check_known(header, AVAILABLE)?;
        }
        Self::group(header)
    }

    /// The form of what is said of one group.
    pub fn group(header: &str) -> Result<Encoding, Status> {
        Self::listed(header, false).map(|form| form.encoding)
    }

    /// The form of a list; only that of all groups may hold everything at once.
    fn listed(header: &str, whole: bool) -> Result<Discovery, Status> {
        if header.is_empty() {
            return Ok(Discovery { encoding: Self::JSON.encoding, aggregated: None });
        }
        let chosen = clauses(header).iter().find_map(|clause| {
            let encoding = clause.encoding()?;
            let aggregated = match (clause.parameter("as"), clause.parameter("g"), clause.parameter("v")) {
                (None, ..) => None,
                _ if !whole => return None,
                (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => Some(Aggregated::V2),
                (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2beta1")) => {
                    Some(Aggregated::V2Beta1)
                }
                _ => return None,
            };
            Some(Discovery { encoding, aggregated })
        });
        chosen.ok_or_else(|| Status::no_acceptable_form(AVAILABLE))
    }

    /// The same, indented if that is wanted.
    #[must_use]
    pub fn pretty_if(self, wanted: bool) -> Self {
        match self.encoding {
            Encoding::Json { pretty } => Self { encoding: Encoding::Json { pretty: pretty || wanted }, ..self },
            Encoding::Yaml | Encoding::Protobuf => self,
        }
    }

    /// Refuses whoever does not take plain JSON, for what comes in no other form.
    pub fn json(header: &str) -> Result<(), Status> {
        let mut names = header.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim());
        let takes = header.is_empty() || names.any(|name| matches!(name, "*/*" | "application/json"));
        if takes { Ok(()) } else { Err(Status::no_acceptable_type("application/json")) }
    }

    /// The encoding for an error when the request could not be negotiated: the first we know, or JSON.
    pub fn for_errors(header: &str) -> Encoding {
        let clauses = clauses(header);
        // A failure has no other form than its own.
        let mut fitting = clauses.iter().filter(|clause| clause.is_plain());
        // Whoever accepts nothing we have is taken for a person.
        fitting.find_map(Clause::encoding).unwrap_or(Encoding::Json { pretty: !clauses.is_empty() })
    }
}

/// Refuses a header that names no type we have.
fn check_known(header: &str, available: &str) -> Result<(), Status> {
    let known = |name: &str| matches!(name, "*/*" | "application/json" | "application/yaml" | PROTOBUF);
    let mut names = header.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim());
    if names.any(known) { Ok(()) } else { Err(Status::no_acceptable_type(available)) }
}

impl Encoding {
    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json { .. } => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => PROTOBUF,
        }
    }
}

/// The clauses of a header, the best first.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|one, other| other.rank().total_cmp(&one.rank()));
    clauses
}

/// One clause of an Accept header.
struct Clause<'a> {
    name: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';');
        let name = parts.next()?.trim();
        if name.is_empty() {
            return None;
        }
        let mut clause = Self { name, quality: 1.0, parameters: Vec::new() };
        for part in parts {
            let Some((key, value)) = part.split_once('=') else { continue };
            let (key, value) = (key.trim(), value.trim().trim_matches('"'));
            match key {
                "q" => clause.quality = value.parse().unwrap_or(1.0),
                _ => clause.parameters.push((key, value)),
            }
        }
        Some(clause)
    }

    /// Better clauses rank higher: by quality, then the more specific.
    fn rank(&self) -> f64 {
        let wildcards = self.name.matches('*').count();
        self.quality - f64::from(u8::try_from(wildcards).unwrap_or(u8::MAX)) * 1e-6
    }

    fn encoding(&self) -> Option<Encoding> {
        let pretty = self.parameter("pretty") == Some("1");
        match self.name {
            "application/json" | "*/*" | "application/*" => Some(Encoding::Json { pretty }),
            "application/yaml" => Some(Encoding::Yaml),
            PROTOBUF => Some(Encoding::Protobuf),
            _ => None,
        }
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Whether it asks for things as they are.
    fn is_plain(&self) -> bool {
        ["as", "g", "v"].iter().all(|name| self.parameter(name).is_none())
    }

    /// The answer this clause asks for, if it is one we can give.
    fn serve(&self, forms: Forms) -> Option<Accepted> {
        let encoding = self.encoding()?;
        let only_partly = encoding == Encoding::Protobuf && !forms.protobuf;
        if self.parameter("stream").is_some_and(|stream| stream != "watch") {
            return None;
        }
        let shape = match self.parameter("as") {
            None | Some("") if only_partly => return None,
            None | Some("") => return Some(Accepted { encoding, ..Accepted::JSON }),
            // Tables have no form in protobuf.
            Some("Table") if encoding == Encoding::Protobuf || !forms.table => return None,
            Some("Table") => Shape::Table,
            Some("PartialObjectMetadata") => Shape::Metadata,
            Some("PartialObjectMetadataList") => Shape::MetadataList,
            Some(_) => return None,
        };
        let beta = match (self.parameter("g"), self.parameter("v")) {
            (Some("meta.k8s.io"), Some("v1")) => false,
            (Some("meta.k8s.io"), Some("v1beta1")) => true,
            _ => return None,
        };
        Some(Accepted { encoding, form: Form { shape, beta } })
    }
}

impl Form {
    /// The API version of what is in this form, unless it is the whole object.
    pub fn api_version(self) -> &'static str {
        if self.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, expected: &str) {
        check_of(Forms { protobuf: true, table: true }, header, expected);
    }

    fn check_of(forms: Forms, header: &str, expected: &str) {
        let got = match Accepted::negotiate(header, AVAILABLE, forms) {
            Ok(Accepted { encoding, form }) => {
                format!("{encoding:?} {:?}{}", form.shape, if form.beta { " beta" } else { "" })
            }
            Err(status) => status.message().split([':', '\n']).next().unwrap_or_default().to_owned(),
        };
        assert_eq!(got, expected, "{header}");
    }

    #[test]
    fn the_best_clause_we_can_serve() {
        let json = "Json { pretty: false } Whole";
        check("", json);
        check("*/*", json);
        check("application/json; charset=utf-8", json);
        check("application/json;q=0", json);
        check("application/yaml;q=0.5,application/json;q=0.4", "Yaml Whole");
        check("application/json;pretty=1", "Json { pretty: true } Whole");
        check("application/json;as=Bogus;v=v1;g=meta.k8s.io,application/json", json);
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        check(table, "Json { pretty: false } Table");
        check("application/json;g=meta.k8s.io;as=Table;v=v1beta1", "Json { pretty: false } Table beta");
        check(&format!("application/json,{table}"), json);
    }

    #[test]
    fn what_can_only_be_made_has_no_table() {
        let forms = Forms { protobuf: true, table: false };
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        check_of(forms, table, "only the following media types are accepted");
        check_of(forms, &format!("{table},application/json"), "Json { pretty: false } Whole");
    }

    #[test]
    fn protobuf_is_for_what_has_it() {
        let json = "Json { pretty: false } Whole";
        let nothing = "only the following media types are accepted";
        check(PROTOBUF, "Protobuf Whole");
        check(&format!("{PROTOBUF},application/json"), "Protobuf Whole");
        check(&format!("{PROTOBUF};q=0.5,application/json"), json);
        check(&format!("{PROTOBUF};stream=watch"), "Protobuf Whole");
        let bare = Forms { protobuf: false, table: true };
        check_of(bare, PROTOBUF, nothing);
        check_of(bare, &format!("{PROTOBUF},application/json"), json);
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        check(&metadata, "Protobuf Metadata");
        check_of(bare, &metadata, "Protobuf Metadata");
        check(&format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"), nothing);
        let table = format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1");
        check(&table, "Json { pretty: false } Table");
    }

    #[test]
    fn errors_come_as_what_is_asked_for_plainly() {
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        for (header, encoding) in [
            (PROTOBUF, Encoding::Protobuf),
            (&format!("{metadata},application/json"), Encoding::Json { pretty: false }),
            (&format!("{metadata},{PROTOBUF}"), Encoding::Protobuf),
            (&metadata, Encoding::Json { pretty: true }),
            ("application/json;as=Table;g=meta.k8s.io;v=v1", Encoding::Json { pretty: true }),
            ("", Encoding::Json { pretty: false }),
        ] {
            assert_eq!(Accepted::for_errors(header), encoding, "{header}");
        }
    }

    #[test]
    fn what_we_cannot_serve() {
        check("text/html", "406");
        check("application/*", "406");
        check("Application/JSON", "406");
        check("application/json;stream=zzz", "only the following media types are accepted");
        check("application/json;as=Table;v=v2;g=meta.k8s.io", "only the following media types are accepted");
    }
}
