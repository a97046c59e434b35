//! StatusCollectors at work: tables out of what clusters report of an object.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;
use orrery_api::control::{
    Destination,
    collect::{
        Cell, ErrorInColumn, NamedExpression, NamedStatusCombination, RowEvaluationError, StatusCollectorSpec,
        StatusCombinationRow,
    },
};
use orrery_cel::{COST_LIMIT, Environment, Key, List, Map, Program, Type, Value, Work};
use serde_json::{Value as Json, json};

/// What all expressions of a StatusCollector may do for one object, as a cost: about a second. There may be thousands of clusters.
const RUN_LIMIT: u64 = 10 * COST_LIMIT;
/// How many rows a StatusCollector gives when it does not say.
const DEFAULT_LIMIT: usize = 20;

/// A StatusCollector that is ready to run.
#[derive(Debug)]
pub struct Collector {
    filter: Option<Program>,
    group_by: Vec<Column>,
    combined: Vec<Aggregation>,
    select: Vec<Column>,
    limit: usize,
}

#[derive(Debug)]
struct Column {
    name: String,
    program: Program,
}

#[derive(Debug)]
struct Aggregation {
    name: String,
    operation: Operation,
    subject: Option<Program>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
}

/// What one cluster reports, as expressions see it.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The cluster.
    pub cluster: &'a str,
    /// The object's status there.
    pub status: &'a Json,
    /// When it last changed.
    pub updated: Timestamp,
}

impl Collector {
    /// Compiles the expressions.
    ///
    /// # Errors
    /// All that is wrong, for the status of the StatusCollector.
    pub fn compile(spec: &StatusCollectorSpec) -> Result<Self, Vec<String>> {
        let shape = shape_errors(spec);
        if !shape.is_empty() {
            return Err(shape);
        }
        let mut compiler = Compiler { environment: environment(), errors: Vec::new() };
        let collector = Self {
            filter: spec.filter.as_ref().and_then(|text| compiler.program("filter expression", text)),
            group_by: compiler.columns("groupBy", &spec.group_by),
            combined: compiler.aggregations(spec),
            select: compiler.columns("select", &spec.select),
            limit: usize::try_from(spec.limit).ok().filter(|&limit| limit > 0).unwrap_or(DEFAULT_LIMIT),
        };
        if compiler.errors.is_empty() { Ok(collector) } else { Err(compiler.errors) }
    }

    /// Runs over the reports about one object, which are ordered by cluster.
    pub fn run(&self, name: &str, object: &Json, rows: &[Row<'_>]) -> NamedStatusCombination {
        let mut table = NamedStatusCombination { name: name.to_owned(), ..NamedStatusCombination::default() };
        let inventories: Vec<Json> = rows.iter().map(|row| json!({"name": row.cluster})).collect();
        let returned: Vec<Json> = rows.iter().map(|row| json!({"status": row.status})).collect();
        let work = Work::for_cost(RUN_LIMIT);
        let scopes = rows.iter().zip(&inventories).zip(&returned).map(|((row, inventory), returned)| Scope {
            cluster: row.cluster,
            work: &work,
            variables: [
                Some(Value::from_json(object)),
                Some(Value::from_json(returned)),
                Some(Value::from_json(inventory)),
                Some(propagation(row.updated)),
            ],
        });
        let mut errors = RowErrors::default();
        let passing: Vec<Scope<'_>> = scopes.filter(|scope| self.passes(scope, &mut errors)).collect();
        if self.combined.is_empty() {
            self.select_into(&mut table, &passing, &mut errors);
        } else {
            self.combine_into(&mut table, &passing, &mut errors);
        }
        table.rows.truncate(self.limit);
        table.row_errors = errors.first;
        table
    }

    fn passes(&self, scope: &Scope<'_>, errors: &mut RowErrors) -> bool {
        let Some(filter) = &self.filter else { return true };
        match scope.value(filter) {
            Ok(Value::Bool(holds)) => holds,
            Ok(Value::Null) => false,
            Ok(value) => {
                let what = kind(&value);
                errors.note(scope.cluster, "", format!("filter expression has type {what} but expected bool or null"));
                false
            }
            Err(error) => {
                errors.note(scope.cluster, "", error);
                false
            }
        }
    }

    fn select_into(&self, table: &mut NamedStatusCombination, scopes: &[Scope<'_>], errors: &mut RowErrors) {
        table.column_names = self.select.iter().map(|column| column.name.clone()).collect();
        if self.select.is_empty() {
            return;
        }
        for scope in scopes {
            let cell = |column: &Column| match scope.value(&column.program).and_then(|value| cell(&value)) {
                Ok(cell) => cell,
                Err(error) => {
                    errors.note(scope.cluster, &column.name, error);
                    Cell::null()
                }
            };
            let columns: Vec<Cell> = self.select.iter().map(cell).collect();
            // What is wrong with the others is told all the same.
            if table.rows.len() < self.limit {
                table.rows.push(StatusCombinationRow { columns });
            }
        }
    }

    fn combine_into(&self, table: &mut NamedStatusCombination, scopes: &[Scope<'_>], errors: &mut RowErrors) {
        let names = self.group_by.iter().map(|column| &column.name);
        table.column_names = names.chain(self.combined.iter().map(|combined| &combined.name)).cloned().collect();
        let mut groups: BTreeMap<Vec<GroupValue>, Vec<Sample<'_>>> = BTreeMap::new();
        if self.group_by.is_empty() {
            groups.insert(Vec::new(), Vec::new());
        }
        for scope in scopes {
            // A row with an error anywhere takes part in no aggregation.
            if let Some((group, sample)) = self.sample(scope, errors) {
                groups.entry(group).or_default().push(sample);
            }
        }
        for (group, samples) in groups {
            let mut columns: Vec<Cell> = group.into_iter().map(GroupValue::into_cell).collect();
            for (at, combined) in self.combined.iter().enumerate() {
                let (cell, error) = combined.over(samples.iter().map(|sample| (sample.cluster, &sample.subjects[at])));
                columns.push(cell);
                let known = |known: &ErrorInColumn| known.column_name == combined.name;
                if let Some(error) = error.filter(|_| !table.aggregation_errors.iter().any(known)) {
                    table.aggregation_errors.push(ErrorInColumn { column_name: combined.name.clone(), error });
                }
            }
            table.rows.push(StatusCombinationRow { columns });
        }
    }

    fn sample<'s>(&self, scope: &Scope<'s>, errors: &mut RowErrors) -> Option<(Vec<GroupValue>, Sample<'s>)> {
        let mut sound = true;
        let mut note = |column: &str, error: String| {
            errors.note(scope.cluster, column, error);
            sound = false;
        };
        let mut group = Vec::with_capacity(self.group_by.len());
        for column in &self.group_by {
            match scope.value(&column.program).and_then(|value| GroupValue::of(&value)) {
                Ok(value) => group.push(value),
                Err(error) => note(&column.name, error),
            }
        }
        let mut subjects = Vec::with_capacity(self.combined.len());
        for combined in &self.combined {
            match combined.subject.as_ref().map(|subject| scope.value(subject)).transpose() {
                Ok(value) => subjects.push(value.map(|value| number(&value)).unwrap_or(Ok(None))),
                Err(error) => note(&combined.name, error),
            }
        }
        sound.then_some((group, Sample { cluster: scope.cluster, subjects }))
    }
}

fn environment() -> Environment {
    let anything = || Type::map(Type::String, Type::Dyn);
    Environment::standard()
        .variable("obj", anything())
        .variable("returned", anything())
        .variable("inventory", Type::map(Type::String, Type::String))
        .variable("propagation", anything())
}

fn shape_errors(spec: &StatusCollectorSpec) -> Vec<String> {
    let mut errors = Vec::new();
    let combines = !spec.group_by.is_empty() || !spec.combined_fields.is_empty();
    if combines && !spec.select.is_empty() {
        errors.push("groupBy and combinedFields must be empty if select is not".to_owned());
    }
    if !spec.group_by.is_empty() && spec.combined_fields.is_empty() {
        errors.push("groupBy must be empty if combinedFields is".to_owned());
    }
    if spec.limit < 0 {
        errors.push("limit must not be negative".to_owned());
    }
    errors
}

struct Compiler {
    environment: Environment,
    errors: Vec<String>,
}

impl Compiler {
    fn program(&mut self, what: &str, text: &str) -> Option<Program> {
        let compiled = self.environment.compile(text).map_err(|error| error.to_string());
        match compiled.and_then(|program| program.unusable().map(str::to_owned).map_or(Ok(program), Err)) {
            Ok(program) => Some(program),
            Err(error) => {
                self.errors.push(format!("{what} invalid: {error}"));
                None
            }
        }
    }

    fn columns(&mut self, what: &str, expressions: &[NamedExpression]) -> Vec<Column> {
        let column = |expression: &NamedExpression| {
            let program = self.program(&format!("{what} expression ({})", expression.name), &expression.def)?;
            Some(Column { name: expression.name.clone(), program })
        };
        expressions.iter().filter_map(column).collect()
    }

    fn aggregations(&mut self, spec: &StatusCollectorSpec) -> Vec<Aggregation> {
        let mut found = Vec::new();
        for field in &spec.combined_fields {
            let what = format!("combinedField expression ({})", field.name);
            let operation = match field.r#type.as_str() {
                "COUNT" => Operation::Count,
                "SUM" => Operation::Sum,
                "AVG" => Operation::Average,
                "MIN" => Operation::Minimum,
                "MAX" => Operation::Maximum,
                other => {
                    self.errors.push(format!("{what} invalid: unsupported aggregation type {other}"));
                    continue;
                }
            };
            let subject = match (&field.subject, operation) {
                (Some(_), Operation::Count) => {
                    self.errors.push(format!("{what} invalid: subject must be nil for COUNT type"));
                    continue;
                }
                (None, Operation::Count) => None,
                (None, _) => {
                    self.errors.push(format!("{what} invalid: subject must be set"));
                    continue;
                }
                (Some(subject), _) => match self.program(&format!("{what} subject"), subject) {
                    Some(program) => Some(program),
                    None => continue,
                },
            };
            found.push(Aggregation { name: field.name.clone(), operation, subject });
        }
        found
    }
}

/// What expressions see of one cluster.
struct Scope<'v> {
    cluster: &'v str,
    /// What the expressions may still do, for this cluster and all others.
    work: &'v Work,
    variables: [Option<Value<'v>>; 4],
}

impl<'v> Scope<'v> {
    fn value(&self, program: &Program) -> Result<Value<'v>, String> {
        program.run_within(&self.variables, COST_LIMIT, self.work).value.map_err(|error| error.to_string())
    }
}

fn propagation(updated: Timestamp) -> Value<'static> {
    let name: Arc<str> = "lastReturnedUpdateTimestamp".into();
    let entry = (Value::text(Arc::clone(&name)), Value::Timestamp(updated.as_nanosecond()));
    Value::Map(Map::Owned(Arc::new(BTreeMap::from([(Key::String(name), entry)]))))
}

/// The first error of each column.
#[derive(Default)]
struct RowErrors {
    first: Vec<RowEvaluationError>,
    columns: HashSet<String>,
}

impl RowErrors {
    fn note(&mut self, cluster: &str, column: &str, error: String) {
        if !self.columns.contains(column) {
            self.columns.insert(column.to_owned());
            let wec = Destination { cluster_id: cluster.to_owned() };
            self.first.push(RowEvaluationError { wec, column_name: column.to_owned(), error });
        }
    }
}

/// One row on its way into aggregations.
struct Sample<'v> {
    cluster: &'v str,
    /// For each aggregation what it takes from this row: a number, nothing, or why there is none.
    subjects: Vec<Result<Option<f64>, String>>,
}

impl Aggregation {
    fn over<'s>(
        &self,
        samples: impl Iterator<Item = (&'s str, &'s Result<Option<f64>, String>)> + Clone,
    ) -> (Cell, Option<String>) {
        if self.operation == Operation::Count {
            return (Cell::number(samples.count().to_string()), None);
        }
        let failed = samples
            .clone()
            .find_map(|(cluster, subject)| subject.as_ref().err().map(|error| format!("for WEC {cluster}, {error}")));
        let values: Vec<f64> = samples.filter_map(|(_, subject)| subject.as_ref().ok().copied().flatten()).collect();
        let sum = || values.iter().fold(0.0, |sum, value| sum + value);
        let result = match self.operation {
            Operation::Count => values.len() as f64,
            Operation::Sum => sum(),
            Operation::Average if values.is_empty() => {
                return (Cell::number("NaN"), failed.or_else(|| Some("no values to average".to_owned())));
            }
            Operation::Average => sum() / values.len() as f64,
            Operation::Minimum => values.iter().copied().fold(f64::INFINITY, f64::min),
            Operation::Maximum => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        };
        (Cell::number(float_text(result)), failed)
    }
}

/// What an aggregation can count with. Nothing stays out of it; a text counts if it is a number.
fn number(value: &Value<'_>) -> Result<Option<f64>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Int(value) => Ok(Some(*value as f64)),
        Value::Uint(value) => Ok(Some(*value as f64)),
        Value::Double(value) => Ok(Some(*value)),
        Value::String(text) => match text.as_ref().parse::<f64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("failed to parse combinedField subject as a float: {:?}", text.as_ref())),
        },
        other => Err(format!("combinedField subject has unexpected type {}", kind(other))),
    }
}

/// A value to group by, ordered by its type, then by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupValue {
    Null,
    Bool(bool),
    Int(i128),
    /// A number with a fraction, by an order of bits that is that of numbers.
    Double(i64),
    Text(String),
}

impl GroupValue {
    fn of(value: &Value<'_>) -> Result<Self, String> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(i128::from(*value)),
            Value::Uint(value) => Self::Int(i128::from(*value)),
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 2_f64.powi(100) => Self::Int(*value as i128),
            Value::Double(value) => {
                let bits = value.to_bits() as i64;
                Self::Double(bits ^ (((bits >> 63) as u64) >> 1) as i64)
            }
            Value::String(text) => Self::Text(text.as_ref().to_owned()),
            Value::Timestamp(_) | Value::Duration(_) => match value.to_json() {
                Some(Json::String(text)) => Self::Text(text),
                _ => Self::Null,
            },
            other => return Err(format!("groupBy expression has type {} but expected an atomic value", kind(other))),
        })
    }

    fn into_cell(self) -> Cell {
        match self {
            Self::Null => Cell::null(),
            Self::Bool(value) => Cell::bool(value),
            Self::Int(value) => Cell::number(value.to_string()),
            Self::Double(ordered) => {
                let bits = ordered ^ (((ordered >> 63) as u64) >> 1) as i64;
                Cell::number(float_text(f64::from_bits(bits as u64)))
            }
            Self::Text(text) => Cell::string(text),
        }
    }
}

fn cell(value: &Value<'_>) -> Result<Cell, String> {
    Ok(match value {
        Value::Null => Cell::null(),
        Value::Bool(value) => Cell::bool(*value),
        Value::Int(value) => Cell::number(value.to_string()),
        Value::Uint(value) => Cell::number(value.to_string()),
        Value::Double(value) => Cell::number(float_text(*value)),
        Value::String(text) => Cell::string(text.as_ref()),
        other => match other.to_json() {
            Some(Json::String(text)) => Cell::string(text),
            Some(list @ Json::Array(_)) => Cell::array(list),
            Some(map @ Json::Object(_)) => Cell::object(map),
            _ => return Err(format!("a value of type {} cannot be shown", kind(other))),
        },
    })
}

/// A number in JavaScript Object Notation where that has one, otherwise as Go writes it.
fn float_text(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".into() } else { "-Inf".into() }
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        Json::from(value).to_string()
    }
}

fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Uint(_) => "uint",
        Value::Double(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::List(List::Json(..) | List::Owned(_)) => "list",
        Value::Map(_) => "map",
        Value::Duration(_) => "duration",
        Value::Timestamp(_) => "timestamp",
        _ => "other",
    }
}
