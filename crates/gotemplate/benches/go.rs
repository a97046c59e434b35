//! Parse and execute, ours against real Go on the same templates; and what hostile templates cost.
//!
//! `cargo bench -p orrery-gotemplate`. Without `go` on the PATH only our own figures are printed.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use orrery_gotemplate::{Budget, Data, Template};
use serde::Deserialize;

const ROUNDS: usize = 101;

#[derive(Deserialize)]
struct Vector {
    template: String,
    data: usize,
    error: String,
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let maps = fs::read_to_string(folder.join("data.json")).expect("testdata/data.json");
    let maps: Vec<BTreeMap<String, String>> = serde_json::from_str(&maps).expect("maps of strings");
    let vectors = fs::read_to_string(folder.join("vectors.jsonl")).expect("testdata/vectors.jsonl");
    let vectors: Vec<Vector> = vectors.lines().map(|line| serde_json::from_str(line).expect("a vector")).collect();
    let sound: Vec<&Vector> = vectors.iter().filter(|vector| vector.error.is_empty()).collect();

    println!("{} templates that give no error, the median of {ROUNDS} rounds", sound.len());
    let ours = measure_ours(&sound, &maps);
    print_row("ours", ours);
    if let Some(go) = measure_go(&sound, &maps) {
        print_row("Go", go);
        println!("Go / ours: {:.1} with parsing, {:.1} without", go.0 / ours.0, go.1 / ours.1);
    } else {
        println!("go is not on the PATH: nothing to compare with");
    }
    hostile();
}

fn print_row(who: &str, (whole, execution): (f64, f64)) {
    println!("{who:>5}: {whole:8.0} ns to parse and execute, {execution:8.0} ns to execute");
}

/// Nanoseconds per template: parsed and executed, and executed only.
fn measure_ours(vectors: &[&Vector], maps: &[BTreeMap<String, String>]) -> (f64, f64) {
    let maps: Vec<Data> = maps.iter().map(|map| Data::from_iter(map.clone())).collect();
    let execute = |template: &Template, vector: &Vector| {
        let mut out = Vec::new();
        black_box(template.execute(&maps[vector.data], &mut Budget::default(), &mut out).is_ok());
        black_box(out);
    };
    let parse = |vector: &Vector| Template::parse("t", &vector.template).expect("it parses");
    let parsed: Vec<Template> = vectors.iter().map(|vector| parse(vector)).collect();
    let whole = median(vectors.len(), || vectors.iter().for_each(|vector| execute(&parse(vector), vector)));
    let execution = median(vectors.len(), || parsed.iter().zip(vectors).for_each(|(t, v)| execute(t, v)));
    (whole, execution)
}

/// Nanoseconds per template in the median round.
fn median(count: usize, mut round: impl FnMut()) -> f64 {
    round();
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed()
        })
        .collect();
    rounds.sort();
    rounds[rounds.len() / 2].as_nanos() as f64 / count as f64
}

/// The same from the Go program in `interop/gotemplate/bench`.
fn measure_go(vectors: &[&Vector], maps: &[BTreeMap<String, String>]) -> Option<(f64, f64)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/gotemplate");
    let mut go = Command::new("go")
        .args(["run", "./bench", &ROUNDS.to_string()])
        .current_dir(source)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = go.stdin.take()?;
    for vector in vectors {
        let question = serde_json::json!({ "template": vector.template, "data": maps[vector.data] });
        writeln!(input, "{question}").ok()?;
    }
    drop(input);
    let output = go.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn hostile() {
    let nested = format!("{{{{{}1{}}}}}", "(".repeat(100), ")".repeat(100));
    let cases = [
        ("an endless range", "{{range 9223372036854775807}}{{end}}"),
        ("an endless range that calls", "{{range 9223372036854775807}}{{$x := print .}}{{end}}"),
        ("endless recursion", r#"{{define "a"}}{{template "a"}}{{end}}{{template "a"}}"#),
        ("doubling", r#"{{$x := "xxxxxxxxxxxxxxxx"}}{{range 60}}{{$x = print $x $x}}{{end}}"#),
        ("wide verbs", r#"{{range 100}}{{printf "%9999999d" 1}}{{end}}"#),
        ("comparing long strings", r#"{{$x := printf "%200000d" 1}}{{range 10000}}{{if eq $x $x}}{{end}}{{end}}"#),
        ("nested parentheses", &nested),
    ];
    println!("\nhostile templates, parsed and executed, best of 50:");
    for (name, text) in cases {
        let best = (0..50).map(|_| run_once(text)).min().unwrap_or_default();
        println!("{:>6} µs  {name}", best.as_micros());
    }
}

fn run_once(text: &str) -> Duration {
    let start = Instant::now();
    let mut out = Vec::new();
    let result = Template::parse("t", text).map(|t| t.execute(&Data::new(), &mut Budget::default(), &mut out).is_ok());
    black_box((result.is_ok(), out));
    start.elapsed()
}
