//! Rows of a preview as they are printed: a table, manifests, or differences.

use std::{collections::BTreeMap, io::Write};

use clap::ValueEnum;
use orrery_api::preview::{BindingPreviewStatus, PreviewChange, PreviewRow};
use orrery_apiserver::yaml;

use super::diff;

/// How rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A line for each object and cluster
    Table,
    /// The manifests that clusters would get
    Yaml,
    /// How they differ from what was sent last
    Diff,
}

/// Prints pages as they come.
pub(super) struct Show<W> {
    form: Form,
    out: W,
    /// How wide each column has become.
    widths: [usize; COLUMNS - 1],
    counts: BTreeMap<&'static str, usize>,
    withheld: usize,
    /// Whether a Binding holds changes back, whatever is shown of it.
    held_back: bool,
    moved_on: bool,
}

const COLUMNS: usize = 4;
const TITLES: [&str; COLUMNS] = ["POLICY", "OBJECT", "CLUSTER", "CHANGE"];

impl<W: Write> Show<W> {
    pub(super) fn new(form: Form, out: W) -> Self {
        let (widths, counts) = Default::default();
        Self { form, out, widths, counts, withheld: 0, held_back: false, moved_on: false }
    }

    /// Whether something cannot be rendered.
    pub(super) fn has_failures(&self) -> bool {
        self.held_back || self.counts.contains_key(word(PreviewChange::Failed))
    }

    /// What was printed is not of the same state as what comes.
    pub(super) fn moved_on(&mut self) {
        self.moved_on = true;
    }

    /// Prints a page.
    pub(super) fn page(&mut self, page: &BindingPreviewStatus) -> anyhow::Result<()> {
        for error in &page.errors {
            eprintln!("{error}");
            self.held_back = true;
        }
        match self.form {
            Form::Table => self.table(&page.rows)?,
            Form::Yaml => page.rows.iter().try_for_each(|row| self.out.write_all(manifest(row).as_bytes()))?,
            Form::Diff => page.rows.iter().try_for_each(|row| self.out.write_all(difference(row).as_bytes()))?,
        }
        self.out.flush()?;
        for row in &page.rows {
            *self.counts.entry(word(row.change)).or_default() += 1;
            self.withheld += usize::from(row.withheld);
        }
        Ok(())
    }

    /// Says what it was all in all, to whoever watches.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.out.flush()?;
        if self.counts.is_empty() {
            eprintln!("nothing would be sent: no policy that was asked about selects an object and a cluster");
        } else {
            let counts: Vec<String> = self.counts.iter().map(|(change, count)| format!("{count} {change}")).collect();
            eprintln!("{}", counts.join(", "));
        }
        if self.withheld > 0 {
            eprintln!("{} rows are of objects that you may not read: their contents are left out", self.withheld);
        }
        if self.moved_on {
            eprintln!("something changed while this was read: rows above may be from before; run it again to be sure");
        }
        if self.has_failures() {
            eprintln!(
                "error: something cannot be rendered: no change of its Binding would be sent, and clusters keep what they have"
            );
        }
        Ok(())
    }

    fn table(&mut self, rows: &[PreviewRow]) -> anyhow::Result<()> {
        let mut lines: Vec<[String; COLUMNS]> = rows.iter().map(cells).collect();
        if self.widths == [0; COLUMNS - 1] && !rows.is_empty() {
            lines.insert(0, TITLES.map(str::to_owned));
        }
        for (at, width) in self.widths.iter_mut().enumerate() {
            let widest = lines.iter().map(|cells| cells[at].chars().count()).max().unwrap_or_default();
            *width = widest.max(*width);
        }
        for cells in lines {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(self.widths) {
                line.push_str(&format!("{cell:<width$}   "));
            }
            line.push_str(&cells[COLUMNS - 1]);
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }
}

fn word(change: PreviewChange) -> &'static str {
    match change {
        PreviewChange::Added => "added",
        PreviewChange::Changed => "changed",
        PreviewChange::Unchanged => "unchanged",
        PreviewChange::Removed => "removed",
        PreviewChange::Failed => "failed",
    }
}

fn cells(row: &PreviewRow) -> [String; COLUMNS] {
    let change = match row.errors.split_first() {
        None => word(row.change).to_owned(),
        Some((first, [])) => format!("{}: {}", word(row.change), in_one_line(first)),
        Some((first, more)) => format!("{}: {} (and {} more)", word(row.change), in_one_line(first), more.len()),
    };
    [row.policy.clone(), object(row, ' '), row.cluster.clone(), change]
}

fn in_one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The object of a row: `deployments.apps shop/web`.
fn object(row: &PreviewRow, between: char) -> String {
    let object = &row.object;
    let group = if object.group.is_empty() { String::new() } else { format!(".{}", object.group) };
    let namespace = if object.namespace.is_empty() { String::new() } else { format!("{}/", object.namespace) };
    format!("{}{group}{between}{namespace}{}", object.resource, object.name)
}

/// The manifest of a row as a document, after a comment that says what it is.
fn manifest(row: &PreviewRow) -> String {
    let what = if row.withheld { "withheld, because you may not read it" } else { word(row.change) };
    let mut text = format!("---\n# policy {}, cluster {}, {}: {what}\n", row.policy, row.cluster, object(row, ' '));
    for line in row.errors.iter().flat_map(|error| error.lines()) {
        text.push_str(&format!("# {line}\n"));
    }
    if let Some(manifest) = &row.manifest {
        text.push_str(&String::from_utf8_lossy(&yaml::write(manifest)));
    }
    text
}

/// How what a cluster would get differs from what it was sent last.
fn difference(row: &PreviewRow) -> String {
    let name = format!("{}/{}", row.cluster, object(row, '/'));
    let text = |manifest: &Option<serde_json::Value>| {
        manifest.as_ref().map(|manifest| String::from_utf8_lossy(&yaml::write(manifest)).into_owned())
    };
    let note = |words: &str| format!("# policy {}, {name}: {words}\n", row.policy);
    match row.change {
        PreviewChange::Unchanged => String::new(),
        PreviewChange::Failed => {
            row.errors.iter().map(|error| note(&format!("failed: {}", in_one_line(error)))).collect()
        }
        change if row.withheld => note(&format!("{}, but withheld, because you may not read it", word(change))),
        _ => {
            let header = |manifest: Option<&str>, when: &str| match manifest {
                Some(_) => format!("{name}\t{when}"),
                None => "/dev/null".to_owned(),
            };
            let (sent, wanted) = (text(&row.sent), text(&row.manifest));
            let from = header(sent.as_deref(), "sent last");
            let to = header(wanted.as_deref(), &format!("policy {}", row.policy));
            let hunks = diff::unified(sent.as_deref().unwrap_or_default(), wanted.as_deref().unwrap_or_default());
            format!("--- {from}\n+++ {to}\n{hunks}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(cluster: &str, change: &str, more: &serde_json::Value) -> PreviewRow {
        let mut row = json!({
            "policy": "web", "cluster": cluster, "change": change,
            "object": {"group": "apps", "version": "v1", "resource": "deployments", "namespace": "shop", "name": "web"},
        });
        for (name, value) in more.as_object().unwrap() {
            row[name] = value.clone();
        }
        serde_json::from_value(row).unwrap()
    }

    fn shown(form: Form, pages: &[&[PreviewRow]]) -> (String, bool) {
        let mut out = Vec::new();
        let mut show = Show::new(form, &mut out);
        for rows in pages {
            let page = BindingPreviewStatus { rows: rows.to_vec(), ..BindingPreviewStatus::default() };
            show.page(&page).unwrap();
        }
        let failed = show.has_failures();
        (String::from_utf8(out).unwrap(), failed)
    }

    fn rows() -> [PreviewRow; 5] {
        let (old, new) = (json!({"a": 1, "b": "x"}), json!({"a": 1, "b": "y"}));
        [
            row("c1", "Added", &json!({"manifest": new})),
            row("c2", "Changed", &json!({"manifest": new, "sent": old})),
            row("c3", "Unchanged", &json!({"manifest": new})),
            row("c4", "Removed", &json!({"sent": old})),
            row("c5-longer", "Failed", &json!({"sent": old, "errors": ["it is\n  wrong", "and more"]})),
        ]
    }

    #[test]
    fn a_table_is_aligned_as_far_as_it_is_known() {
        let rows = rows();
        let (text, failed) = shown(Form::Table, &[&rows[..4], &rows[4..]]);
        assert!(failed);
        assert_eq!(
            text,
            "POLICY   OBJECT                      CLUSTER   CHANGE\n\
             web      deployments.apps shop/web   c1        added\n\
             web      deployments.apps shop/web   c2        changed\n\
             web      deployments.apps shop/web   c3        unchanged\n\
             web      deployments.apps shop/web   c4        removed\n\
             web      deployments.apps shop/web   c5-longer   failed: it is wrong (and 1 more)\n"
        );
        assert_eq!(shown(Form::Table, &[&rows[..1], &rows[1..2]]).0.matches("POLICY").count(), 1);
        assert_eq!(shown(Form::Table, &[&[]]), (String::new(), false));
    }

    #[test]
    fn manifests_are_documents() {
        let (text, _) = shown(Form::Yaml, &[&rows()]);
        assert_eq!(
            text,
            "---\n# policy web, cluster c1, deployments.apps shop/web: added\na: 1\nb: \"y\"\n\
             ---\n# policy web, cluster c2, deployments.apps shop/web: changed\na: 1\nb: \"y\"\n\
             ---\n# policy web, cluster c3, deployments.apps shop/web: unchanged\na: 1\nb: \"y\"\n\
             ---\n# policy web, cluster c4, deployments.apps shop/web: removed\n\
             ---\n# policy web, cluster c5-longer, deployments.apps shop/web: failed\n# it is\n#   wrong\n# and more\n"
        );
    }

    #[test]
    fn differences_are_those_that_patch_reads() {
        let (text, _) = shown(Form::Diff, &[&rows()]);
        assert_eq!(
            text,
            "--- /dev/null\n+++ c1/deployments.apps/shop/web\tpolicy web\n@@ -0,0 +1,2 @@\n+a: 1\n+b: \"y\"\n\
             --- c2/deployments.apps/shop/web\tsent last\n+++ c2/deployments.apps/shop/web\tpolicy web\n\
             @@ -1,2 +1,2 @@\n a: 1\n-b: x\n+b: \"y\"\n\
             --- c4/deployments.apps/shop/web\tsent last\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a: 1\n-b: x\n\
             # policy web, c5-longer/deployments.apps/shop/web: failed: it is wrong\n\
             # policy web, c5-longer/deployments.apps/shop/web: failed: and more\n"
        );
    }

    #[test]
    fn what_may_not_be_read_is_said_to_be_withheld() {
        let rows = [row("c1", "Changed", &json!({"withheld": true}))];
        assert!(shown(Form::Yaml, &[&rows]).0.contains("withheld, because you may not read it"));
        assert!(shown(Form::Diff, &[&rows]).0.contains("changed, but withheld"));
    }
}
