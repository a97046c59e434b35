//! What commands print: tables for people, JSON, YAML or names for programs.

use std::io::{self, Write};

use anyhow::Context;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use orrery_apiserver::yaml;
use serde_json::Value;

/// How something is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table.
    #[default]
    #[value(skip)]
    Table,
    /// A table with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names alone.
    Name,
}

/// The flag that says how something is shown.
#[derive(Args, Clone, Copy)]
pub(crate) struct OutputArgs {
    /// How to show it [default: a table]
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Output>,
}

impl OutputArgs {
    pub(crate) fn format(self) -> Output {
        self.output.unwrap_or_default()
    }
}

impl Output {
    /// Whether people are to read it.
    pub(crate) fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

/// A column of a table.
pub(crate) struct Column {
    title: &'static str,
    wide: bool,
    cell: Box<dyn Fn(&Value) -> String>,
}

impl Column {
    /// A column that is always shown.
    pub(crate) fn new(title: &'static str, cell: impl Fn(&Value) -> String + 'static) -> Self {
        Self { title, wide: false, cell: Box::new(cell) }
    }

    /// A column that only `-o wide` shows.
    pub(crate) fn wide(title: &'static str, cell: impl Fn(&Value) -> String + 'static) -> Self {
        Self { wide: true, ..Self::new(title, cell) }
    }
}

/// Prints a list of objects.
pub(crate) fn print_list(list: &Value, output: Output, columns: &[Column]) -> anyhow::Result<()> {
    let items: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
    print(&format(list, &items, output, columns)?)
}

/// Prints one object.
pub(crate) fn print_one(object: &Value, output: Output, columns: &[Column]) -> anyhow::Result<()> {
    print(&format(object, &[object], output, columns)?)
}

fn print(text: &[u8]) -> anyhow::Result<()> {
    match io::stdout().write_all(text) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the output"),
    }
}

fn format(whole: &Value, items: &[&Value], output: Output, columns: &[Column]) -> anyhow::Result<Vec<u8>> {
    Ok(match output {
        Output::Table | Output::Wide => table(items, columns, output == Output::Wide).into_bytes(),
        Output::Json => format!("{}\n", serde_json::to_string_pretty(whole)?).into_bytes(),
        Output::Yaml => yaml::write(whole),
        Output::Name => items.iter().map(|item| format!("{}\n", full_name(item))).collect::<String>().into_bytes(),
    })
}

/// An object's name as kubectl prints it: `kind.group/name`.
fn full_name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, version) = (text(&object["kind"]).to_lowercase(), text(&object["apiVersion"]));
    let name = text(&object["metadata"]["name"]);
    match version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// Rows under titles, each column as wide as its widest cell.
fn table(items: &[&Value], columns: &[Column], wide: bool) -> String {
    let columns: Vec<&Column> = columns.iter().filter(|column| wide || !column.wide).collect();
    let mut rows = vec![columns.iter().map(|column| column.title.to_owned()).collect::<Vec<_>>()];
    rows.extend(items.iter().map(|item| columns.iter().map(|column| (column.cell)(item)).collect()));
    let width = |index: usize| rows.iter().map(|row| row[index].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("   ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// How long ago a time was, in the largest unit that says something.
pub(crate) fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn show(output: Output) -> String {
        let item = |name: &str| json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": name, "uid": "1"}});
        let list = json!({"items": [item("a"), item("team-a")]});
        let columns = [
            Column::new("NAME", |item| item["metadata"]["name"].as_str().unwrap().to_owned()),
            Column::new("AGE", |_| "3d".to_owned()),
            Column::wide("UID", |item| item["metadata"]["uid"].as_str().unwrap().to_owned()),
        ];
        let items: Vec<&Value> = list["items"].as_array().unwrap().iter().collect();
        String::from_utf8(format(&list, &items, output, &columns).unwrap()).unwrap()
    }

    #[test]
    fn tables_are_aligned() {
        assert_eq!(show(Output::Table), "NAME     AGE\na        3d\nteam-a   3d\n");
        assert_eq!(show(Output::Wide), "NAME     AGE   UID\na        3d    1\nteam-a   3d    1\n");
    }

    #[test]
    fn names_are_those_kubectl_takes() {
        assert_eq!(show(Output::Name), "logicalspace.core.orrery.io/a\nlogicalspace.core.orrery.io/team-a\n");
    }

    #[test]
    fn ages_are_short() {
        let now: Timestamp = "2026-11-16T05:00:00Z".parse().unwrap();
        for (since, expected) in [
            ("2026-11-16T04:59:59Z", "1s"),
            ("2026-11-16T04:57:59Z", "2m"),
            ("2026-11-16T03:00:00Z", "2h"),
            ("2026-11-13T04:00:00Z", "3d"),
            ("2026-11-16T05:00:09Z", "0s"),
            ("yesterday", "<unknown>"),
        ] {
            assert_eq!(age(since, now), expected, "{since}");
        }
    }
}
