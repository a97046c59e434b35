//! What `orrery fn render` tells: progress, a table at the end, and a file with all results.

use std::{
    io::{IsTerminal, Write, stderr},
    time::{Duration, Instant},
};

use orrery_krm::{
    Item, Value,
    render::{FunctionReport, Progress, RenderError, Rendered, Summary},
};

/// Lines of a function's standard error that are shown while it passes; the rest is in the results.
const STDERR_LINES: usize = 4;

/// Tells people on standard error what happens; standard output belongs to the result.
pub(crate) struct Reporter {
    started: Instant,
    begun: Instant,
    /// How long each function took, in order.
    times: Vec<Duration>,
    colour: bool,
}

impl Reporter {
    pub(crate) fn new() -> Self {
        let colour = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { started: Instant::now(), begun: Instant::now(), times: Vec::new(), colour }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Says why the run failed.
    pub(crate) fn failed(&self, error: &RenderError) {
        say(&format!("{} {error}", self.paint("31", "error:")));
        say("Nothing was written.");
    }

    /// The table of all functions, and what was done to the folder.
    pub(crate) fn summary(&self, rendered: &Rendered, changes: Option<Summary>) {
        if !rendered.functions.is_empty() {
            let rows: Vec<[String; 4]> = rendered.functions.iter().zip(&self.times).map(row).collect();
            say("");
            table(&["FUNCTION", "PACKAGE", "RESULTS", "TIME"], &rows);
        }
        let (functions, packages) = (rendered.functions.len(), rendered.packages);
        let time = duration(self.started.elapsed());
        let mut line = format!("{} in {} took {time}", count(functions, "function"), count(packages, "package"));
        if let Some(Summary { written, removed, unchanged }) = changes {
            line += &format!(": {} written, {removed} removed, {unchanged} unchanged", count(written, "file"));
        }
        say(&line);
    }
}

impl Progress for Reporter {
    fn package(&mut self, name: &str) {
        say(&format!("{} {name}", self.paint("1", "package")));
    }

    fn begin(&mut self, function: &str, chosen: Option<usize>) {
        self.begun = Instant::now();
        if self.colour {
            let on = chosen.map(|chosen| format!(" on {}", count(chosen, "item"))).unwrap_or_default();
            let _ = write!(stderr(), "  running {function}{on}\r");
        }
    }

    fn end(&mut self, report: &FunctionReport) {
        let time = self.begun.elapsed();
        self.times.push(time);
        let passed = report.problem.is_none();
        let word = if passed { self.paint("32", "pass") } else { self.paint("31", "fail") };
        let clear = if self.colour { "\x1b[K" } else { "" };
        say(&format!("{clear}  {word}  {}  {}", report.name, duration(time)));
        for result in &report.results {
            say(&format!("        {}", result_line(result)));
        }
        let lines: Vec<&str> = report.stderr.lines().collect();
        let shown = if passed { lines.len().min(STDERR_LINES) } else { lines.len() };
        lines[..shown].iter().for_each(|line| say(&format!("        | {line}")));
        if shown < lines.len() {
            say(&format!("        | … {} more", count(lines.len() - shown, "line")));
        }
    }
}

/// Standard error may be closed: what it is told then is lost, and that is no reason to fail.
fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

fn row((report, time): (&FunctionReport, &Duration)) -> [String; 4] {
    let of = |severity: &str| report.results.iter().filter(|result| text(result, "severity") == severity).count();
    let mut words = Vec::new();
    for (severity, number) in [("error", of("error")), ("warning", of("warning")), ("info", of("info"))] {
        if number > 0 {
            words.push(format!("{number} {severity}"));
        }
    }
    let results = if words.is_empty() { "-".to_owned() } else { words.join(", ") };
    [report.name.clone(), report.package.clone(), results, duration(*time)]
}

fn table(head: &[&str; 4], rows: &[[String; 4]]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let line = |cells: [&str; 4]| {
        say(&format!(
            "{:a$}  {:b$}  {:c$}  {}",
            cells[0],
            cells[1],
            cells[2],
            cells[3],
            a = widths[0],
            b = widths[1],
            c = widths[2]
        ));
    };
    line(*head);
    rows.iter().for_each(|row| line([&row[0], &row[1], &row[2], &row[3]]));
}

fn result_line(result: &Value) -> String {
    let reference = result.get("resourceRef");
    let part = |key: &str| reference.map(|reference| text(reference, key)).unwrap_or_default();
    let about: Vec<String> =
        ["kind", "namespace", "name"].map(part).into_iter().filter(|part| !part.is_empty()).collect();
    let field = result.get("field").map(|field| text(field, "path")).unwrap_or_default();
    let place = [about.join("/"), field].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let severity = Some(text(result, "severity")).filter(|text| !text.is_empty()).unwrap_or("error".to_owned());
    let colon = if place.is_empty() { "" } else { ": " };
    format!("{severity}: {place}{colon}{}", text(result, "message"))
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn duration(time: Duration) -> String {
    if time.as_secs() >= 10 {
        format!("{} s", time.as_secs())
    } else if time.as_millis() >= 1000 {
        format!("{:.1} s", time.as_secs_f64())
    } else if time.as_micros() >= 10_000 {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    }
}

/// All results as kpt writes them: a FunctionResultList.
pub(crate) fn result_list(functions: &[FunctionReport], exit: i64) -> String {
    let items = functions.iter().map(|report| {
        let stderr = Some(&report.stderr).filter(|stderr| !stderr.is_empty());
        let results = Some(report.results.clone()).filter(|results| !results.is_empty());
        Value::object()
            .with(report.named_by, &report.name)
            .with_some("stderr", stderr)
            .with("exitCode", i64::from(report.exit))
            .with_some("results", results)
    });
    let list = Value::object()
        .with("apiVersion", "kpt.dev/v1")
        .with("kind", "FunctionResultList")
        .with("metadata", Value::map([("name", "fnresults")]))
        .with("exitCode", exit)
        .with_some("items", Some(items.collect::<Vec<_>>()).filter(|items| !items.is_empty()));
    Item::new(&list).to_text()
}
