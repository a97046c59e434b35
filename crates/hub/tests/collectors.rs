//! StatusCollectors over the states that clusters report.

use jiff::Timestamp;
use orrery_api::control::collect::{Cell, NamedStatusCombination, StatusCollectorSpec};
use orrery_hub::status::combine::{Collector, Row};
use serde_json::{Value, json};

fn spec(yaml: &str) -> StatusCollectorSpec {
    serde_saphyr::from_str(yaml).expect("a StatusCollector")
}

fn run(yaml: &str, states: &[(&str, Value)]) -> NamedStatusCombination {
    let collector = Collector::compile(&spec(yaml)).unwrap_or_else(|errors| panic!("{errors:?}"));
    let object = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3}});
    let updated: Timestamp = "2026-11-16T10:00:00Z".parse().expect("a time");
    let rows: Vec<_> = states.iter().map(|(cluster, status)| Row { cluster, status, updated }).collect();
    collector.run("c", &object, &rows)
}

fn fleet() -> Vec<(&'static str, Value)> {
    vec![
        ("c1", json!({"ready": 3, "phase": "Up", "load": 0.5})),
        ("c2", json!({"ready": 1, "phase": "Down", "load": 1.5})),
        ("c3", json!({"ready": 2, "phase": "Up", "load": 1})),
    ]
}

/// Every aggregation: the clusters, and the sum, average, least and most of what is given for each.
fn aggregations(sum: &str, average: &str, least: &str, most: &str) -> String {
    let field = |name: &str, kind: &str, subject: &str| {
        format!("- {{name: {name}, type: {kind}, subject: returned.status.{subject}}}\n")
    };
    format!(
        "limit: 20\ncombinedFields:\n- {{name: count, type: COUNT}}\n{}{}{}{}",
        field("sum", "SUM", sum),
        field("avg", "AVG", average),
        field("min", "MIN", least),
        field("max", "MAX", most)
    )
}

fn text(cell: &Cell) -> String {
    match (&cell.string, &cell.number, cell.bool) {
        (Some(text), _, _) => format!("{text:?}"),
        (_, Some(number), _) => number.clone(),
        (_, _, Some(value)) => value.to_string(),
        _ if cell.r#type == "Null" => "null".into(),
        _ => format!("{}:{}", cell.r#type, cell.object.as_ref().or(cell.array.as_ref()).expect("a value")),
    }
}

fn check(yaml: &str, states: &[(&str, Value)], columns: &[&str], rows: &[&str]) -> NamedStatusCombination {
    let table = run(yaml, states);
    assert_eq!(table.column_names, columns);
    let found: Vec<String> =
        table.rows.iter().map(|row| row.columns.iter().map(text).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(found, rows, "{yaml}");
    table
}

#[test]
fn every_variable_can_be_selected() {
    let yaml = "
select:
- {name: cluster, def: inventory.name}
- {name: share, def: 'double(returned.status.ready) / double(obj.spec.replicas)'}
- {name: late, def: 'propagation.lastReturnedUpdateTimestamp > timestamp(\"2026-01-01T00:00:00Z\")'}
- {name: when, def: propagation.lastReturnedUpdateTimestamp}
- {name: all, def: returned.status}
- {name: list, def: '[1, returned.status.ready]'}
- {name: nothing, def: 'null'}
limit: 20";
    let columns = ["cluster", "share", "late", "when", "all", "list", "nothing"];
    let row = r#""c1" 1 true "2026-11-16T10:00:00Z" Object:{"load":0.5,"phase":"Up","ready":3} Array:[1,3] null"#;
    check(yaml, &fleet()[..1], &columns, &[row]);
}

#[test]
fn many_clusters_share_what_the_expressions_may_do() {
    let numbers: Vec<usize> = (0..400).collect();
    let names: Vec<String> = (0..1000).map(|number| format!("c{number:04}")).collect();
    let states: Vec<(&str, Value)> = names.iter().map(|name| (name.as_str(), json!({ "list": numbers }))).collect();
    let heavy = "returned.status.list.all(x, returned.status.list.exists(y, y == x))";
    let table = run(
        &format!("select:\n- {{name: heavy, def: '{heavy}'}}\n- {{name: n, def: inventory.name}}\nlimit: 3"),
        &states,
    );
    let rows: Vec<String> =
        table.rows.iter().map(|row| row.columns.iter().map(text).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(rows, [r#"true "c0000""#, r#"true "c0001""#, r#"true "c0002""#]);
    let error = &table.row_errors[0];
    assert_eq!(
        (error.column_name.as_str(), error.error.as_str()),
        ("heavy", "operation cancelled: actual cost limit exceeded")
    );
    assert!(
        error.wec.cluster_id.as_str() > "c0010" && error.wec.cluster_id.as_str() < "c0200",
        "{}",
        error.wec.cluster_id
    );
}

#[test]
fn groups_are_combined_in_order() {
    let yaml = format!(
        "groupBy: [{{name: phase, def: returned.status.phase}}]\n{}",
        aggregations("ready", "load", "ready", "ready")
    );
    let columns = ["phase", "count", "sum", "avg", "min", "max"];
    let table = check(&yaml, &fleet(), &columns, &[r#""Down" 1 1 1.5 1 1"#, r#""Up" 2 5 0.75 2 3"#]);
    assert!(table.row_errors.is_empty() && table.aggregation_errors.is_empty());
}

#[test]
fn the_combination_of_nothing() {
    let yaml = aggregations("ready", "ready", "ready", "ready");
    let table = check(&yaml, &[], &["count", "sum", "avg", "min", "max"], &["0 0 NaN +Inf -Inf"]);
    assert_eq!(table.aggregation_errors.len(), 1);
    assert_eq!(table.aggregation_errors[0].error, "no values to average");
    check(
        "groupBy: [{name: g, def: inventory.name}]\ncombinedFields: [{name: n, type: COUNT}]\nlimit: 20",
        &[],
        &["g", "n"],
        &[],
    );
}

#[test]
fn a_filter_leaves_rows_out() {
    let select = "select: [{name: c, def: inventory.name}]\nlimit: 20\nfilter: ";
    check(&format!("{select}returned.status.ready > 1"), &fleet(), &["c"], &["\"c1\"", "\"c3\""]);
    check(&format!("{select}'null'"), &fleet(), &["c"], &[]);
    let table = check(&format!("{select}'dyn(1)'"), &fleet(), &["c"], &[]);
    assert_eq!(table.row_errors.len(), 1, "one error of a column is enough");
    assert_eq!((table.row_errors[0].wec.cluster_id.as_str(), table.row_errors[0].column_name.as_str()), ("c1", ""));
    assert_eq!(table.row_errors[0].error, "filter expression has type int but expected bool or null");
    let table = check(&format!("{select}returned.status.absent"), &fleet(), &["c"], &[]);
    assert_eq!(table.row_errors[0].error, "no such key: absent");
}

#[test]
fn the_limit_is_enforced() {
    check("select: [{name: c, def: inventory.name}]\nlimit: 2", &fleet(), &["c"], &["\"c1\"", "\"c2\""]);
    let many: Vec<(String, Value)> = (10..40).map(|n| (format!("c{n}"), json!({}))).collect();
    let many: Vec<(&str, Value)> = many.iter().map(|(name, status)| (name.as_str(), status.clone())).collect();
    assert_eq!(run("select: [{name: c, def: inventory.name}]\nlimit: 0", &many).rows.len(), 20);
}

#[test]
fn a_row_with_an_error_takes_part_in_no_aggregation() {
    let states = [("c1", json!({"n": 1})), ("c2", json!({"other": 2})), ("c3", json!({"n": "4.5"}))];
    let yaml = "
combinedFields:
- {name: count, type: COUNT}
- {name: sum, type: SUM, subject: returned.status.n}
limit: 20";
    let table = check(yaml, &states, &["count", "sum"], &["2 5.5"]);
    assert_eq!(table.row_errors.len(), 1);
    assert_eq!((table.row_errors[0].wec.cluster_id.as_str(), table.row_errors[0].column_name.as_str()), ("c2", "sum"));
}

#[test]
fn what_is_no_number_is_told_and_left_out() {
    let states =
        [("c1", json!({"n": 1})), ("c2", json!({"n": "many"})), ("c3", json!({"n": null})), ("c4", json!({"n": [1]}))];
    let yaml = "combinedFields: [{name: avg, type: AVG, subject: returned.status.n}]\nlimit: 20";
    let table = check(yaml, &states, &["avg"], &["1"]);
    let error = "for WEC c2, failed to parse combinedField subject as a float: \"many\"";
    assert_eq!(table.aggregation_errors.iter().map(|error| error.error.as_str()).collect::<Vec<_>>(), [error]);
}

#[test]
fn only_atoms_can_be_grouped_by() {
    let states =
        [("c1", json!({"g": [1]})), ("c2", json!({"g": 2})), ("c3", json!({"g": 2.0})), ("c4", json!({"g": -0.5}))];
    let yaml = "groupBy: [{name: g, def: returned.status.g}]\ncombinedFields: [{name: n, type: COUNT}]\nlimit: 20";
    let table = check(yaml, &states, &["g", "n"], &["2 2", "-0.5 1"]);
    assert_eq!(table.row_errors[0].error, "groupBy expression has type list but expected an atomic value");
}

#[test]
fn an_error_in_a_selected_cell_is_told_and_not_shown_as_a_value() {
    let states = [("c1", json!({"n": 1})), ("c2", json!({}))];
    let table = check("select: [{name: n, def: returned.status.n}]\nlimit: 20", &states, &["n"], &["1", "null"]);
    assert_eq!(table.row_errors.len(), 1);
    assert_eq!(table.row_errors[0].wec.cluster_id, "c2");
}

/// KubeStellar's code puts rows in a random order.
#[test]
fn rows_have_one_order() {
    let select = "select: [{name: c, def: inventory.name}]\nlimit: 20";
    let group = "groupBy: [{name: g, def: returned.status.ready}]\ncombinedFields: [{name: n, type: COUNT}]\nlimit: 20";
    for _ in 0..5 {
        check(select, &fleet(), &["c"], &["\"c1\"", "\"c2\"", "\"c3\""]);
        check(group, &fleet(), &["g", "n"], &["1 1", "2 1", "3 1"]);
    }
}

/// KubeStellar's code calls both an object.
#[test]
fn a_list_is_an_array_and_a_map_an_object() {
    let yaml = "select: [{name: l, def: '[1]'}, {name: m, def: '{\"a\": 1}'}]\nlimit: 20";
    check(yaml, &fleet()[..1], &["l", "m"], &[r#"Array:[1] Object:{"a":1}"#]);
}

/// KubeStellar's guide says that `obj` has no status, its code leaves it in: expressions that use it work.
#[test]
fn the_object_has_its_status() {
    let collector =
        Collector::compile(&spec("select: [{name: s, def: obj.status.phase}]\nlimit: 20")).expect("it compiles");
    let (object, status) = (json!({"status": {"phase": "Up"}}), json!({}));
    let row = Row { cluster: "c1", status: &status, updated: Timestamp::UNIX_EPOCH };
    let table = collector.run("c", &object, &[row]);
    assert_eq!(table.rows[0].columns, [Cell::string("Up")]);
}

#[test]
fn what_is_wrong_with_a_collector() {
    for (yaml, error) in [
        (
            "select: [{name: a, def: '1'}]\ncombinedFields: [{name: n, type: COUNT}]",
            "groupBy and combinedFields must be empty if select is not",
        ),
        ("groupBy: [{name: a, def: '1'}]", "groupBy must be empty if combinedFields is"),
        ("limit: -1", "limit must not be negative"),
        (
            "combinedFields: [{name: n, type: MEDIAN}]",
            "combinedField expression (n) invalid: unsupported aggregation type MEDIAN",
        ),
        ("combinedFields: [{name: n, type: SUM}]", "combinedField expression (n) invalid: subject must be set"),
        (
            "combinedFields: [{name: n, type: COUNT, subject: '1'}]",
            "combinedField expression (n) invalid: subject must be nil for COUNT type",
        ),
        ("filter: '1 +'", "filter expression invalid: ERROR: <input>:1:4: Syntax error"),
        (
            "select: [{name: a, def: nobody.x}]",
            "select expression (a) invalid: ERROR: <input>:1:1: undeclared reference to 'nobody'",
        ),
    ] {
        let errors = Collector::compile(&spec(yaml)).expect_err(yaml);
        assert!(errors[0].starts_with(error), "{yaml}: {errors:?}");
    }
}

#[test]
fn hostile_expressions_end() {
    let list = json!({"l": (0..2000).collect::<Vec<i32>>()});
    let table = run(
        "select: [{name: x, def: 'returned.status.l.map(a, returned.status.l.map(b, a*b)).size()'}]\nlimit: 20",
        &[("c1", list)],
    );
    assert!(table.row_errors[0].error.contains("cost limit exceeded"), "{:?}", table.row_errors);
}
