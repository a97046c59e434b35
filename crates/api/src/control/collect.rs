//! StatusCollector and CombinedStatus: queries over what clusters report of an object, and their results.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Destination;

/// The namespace of a CombinedStatus for an object that has none.
pub const REPORT_NAMESPACE: &str = "kubestellar-report";

/// Labels that say what a CombinedStatus is about.
pub mod label {
    /// The API group of the object.
    pub const API_GROUP: &str = "status.kubestellar.io/api-group";
    /// The resource of the object.
    pub const RESOURCE: &str = "status.kubestellar.io/resource";
    /// The namespace of the object.
    pub const NAMESPACE: &str = "status.kubestellar.io/namespace";
    /// The name of the object.
    pub const NAME: &str = "status.kubestellar.io/name";
    /// The name of the BindingPolicy.
    pub const BINDING_POLICY: &str = "status.kubestellar.io/binding-policy";
}

/// A query over what clusters report of an object, in the Common Expression Language.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusCollectorSpec {
    /// Rows for which this does not hold are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// What rows are grouped by before they are combined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_by: Vec<NamedExpression>,
    /// Aggregations over each group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combined_fields: Vec<NamedAggregator>,
    /// Values of each row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<NamedExpression>,
    /// The most rows of the result.
    #[serde(default)]
    pub limit: i64,
}

/// An expression and the name of the column it makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedExpression {
    /// The name.
    pub name: String,
    /// The expression.
    pub def: String,
}

/// An aggregation and the name of the column it makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedAggregator {
    /// The name.
    pub name: String,
    /// `COUNT`, `SUM`, `AVG`, `MIN` or `MAX`.
    pub r#type: String,
    /// What is aggregated; `COUNT` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// What is wrong with a StatusCollector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusCollectorStatus {
    /// The generation that was processed.
    #[serde(default)]
    pub observed_generation: i64,
    /// What is wrong with the expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// The table that one StatusCollector gave: an entry of the `results` of a CombinedStatus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedStatusCombination {
    /// The name of the StatusCollector.
    pub name: String,
    /// The names of the columns.
    pub column_names: Vec<String>,
    /// The rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<StatusCombinationRow>,
    /// Expressions that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub row_errors: Vec<RowEvaluationError>,
    /// Aggregations that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregation_errors: Vec<ErrorInColumn>,
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusCombinationRow {
    /// Its cells.
    pub columns: Vec<Cell>,
}

/// One value of one of six types.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// `String`, `Number`, `Bool`, `Null`, `Object` or `Array`.
    pub r#type: String,
    /// Set when the type is `String`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// Set when the type is `Number`: the number as text.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "float")]
    pub number: Option<String>,
    /// Set when the type is `Bool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bool: Option<bool>,
    /// Set when the type is `Object`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Json>,
    /// Set when the type is `Array`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Json>,
}

impl Cell {
    /// A text.
    pub fn string(text: impl Into<String>) -> Self {
        Self { r#type: "String".into(), string: Some(text.into()), ..Self::default() }
    }

    /// A number, as text.
    pub fn number(text: impl Into<String>) -> Self {
        Self { r#type: "Number".into(), number: Some(text.into()), ..Self::default() }
    }

    /// True or false.
    pub fn bool(value: bool) -> Self {
        Self { r#type: "Bool".into(), bool: Some(value), ..Self::default() }
    }

    /// Nothing.
    pub fn null() -> Self {
        Self { r#type: "Null".into(), ..Self::default() }
    }

    /// An object.
    pub fn object(value: Json) -> Self {
        Self { r#type: "Object".into(), object: Some(value), ..Self::default() }
    }

    /// A list.
    pub fn array(value: Json) -> Self {
        Self { r#type: "Array".into(), array: Some(value), ..Self::default() }
    }
}

/// An expression that failed for one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RowEvaluationError {
    /// The cluster.
    pub wec: Destination,
    /// The column; empty for the filter.
    pub column_name: String,
    /// Why.
    pub error: String,
}

/// An aggregation that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorInColumn {
    /// The column.
    pub column_name: String,
    /// Why.
    pub error: String,
}
