//! Generated templates, answered by us and by real Go when `go` is on the PATH.
//!
//! `ORRERY_GOTEMPLATE_ROUNDS` sets how many (2,000 unless set), `ORRERY_GOTEMPLATE_SEED` repeats a run.

mod generate;

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use generate::Generator;
use orrery_gotemplate::{Budget, Data, Template, to_text};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Question {
    template: String,
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Answer {
    output: String,
    error: String,
    #[serde(default)]
    endless: bool,
}

#[test]
fn generated_templates_agree_with_go() {
    let Some(oracle) = build_oracle() else {
        eprintln!("go is not on the PATH: generated templates were not compared with real Go");
        return;
    };
    let rounds: usize = number("ORRERY_GOTEMPLATE_ROUNDS").unwrap_or(2000) as usize;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("ORRERY_GOTEMPLATE_SEED").unwrap_or(now.as_nanos() as u64);
    println!("ORRERY_GOTEMPLATE_SEED={seed} ORRERY_GOTEMPLATE_ROUNDS={rounds}");
    let mut generator = Generator::new(seed);
    let questions: Vec<Question> =
        (0..rounds).map(|_| Question { data: generator.data(), template: generator.template() }).collect();

    let answers = ask(&oracle, &questions);
    assert_eq!(answers.len(), questions.len());
    let mut tally = Tally::default();
    for (question, go) in questions.iter().zip(&answers) {
        tally.compare(question, go);
    }
    println!("{tally:?}");
    // A generator that makes only valid or only broken templates would prove little.
    let floor = rounds / 20;
    assert!(tally.succeeded >= floor && tally.failed_parsing >= floor && tally.failed_executing >= floor, "{tally:?}");
    assert_eq!(tally.disagreed, 0, "seed {seed}: {tally:?}");
}

#[derive(Debug, Default)]
struct Tally {
    succeeded: usize,
    failed_parsing: usize,
    failed_executing: usize,
    /// Endless in Go, beyond our limits, or with an address in the output.
    incomparable: usize,
    disagreed: usize,
}

impl Tally {
    fn compare(&mut self, question: &Question, go: &Answer) {
        let (output, error) = answer(question);
        let limited = error.contains("is exceeded") || error.contains("exceeded maximum template depth");
        if go.endless || limited || go.output.contains("0xc0") || go.error.contains("0xc0") {
            self.incomparable += 1;
            return;
        }
        match &go.error {
            error if error.is_empty() => self.succeeded += 1,
            error if error.contains(": executing ") => self.failed_executing += 1,
            _ => self.failed_parsing += 1,
        }
        if (&output, &error) != (&go.output, &go.error) {
            self.disagreed += 1;
            if self.disagreed <= 20 {
                let question = serde_json::to_string(question).expect("a question is JSON");
                println!("{question}\n  Go:   {:?} {:?}\n  ours: {output:?} {error:?}", go.output, go.error);
            }
        }
    }
}

fn answer(question: &Question) -> (String, String) {
    let data = Data::from_iter(question.data.clone());
    let mut out = Vec::new();
    let error = match Template::parse("t", &question.template) {
        Ok(template) => template.execute(&data, &mut Budget::default(), &mut out).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    (to_text(&out).into_owned(), error.unwrap_or_default())
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

/// The Go program that answers, built; `None` without Go.
fn build_oracle() -> Option<PathBuf> {
    let found = env::split_paths(&env::var_os("PATH")?).any(|folder| folder.join("go").is_file());
    if !found {
        return None;
    }
    let oracle = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gotemplate-oracle");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/gotemplate");
    let built = Command::new("go")
        .args(["build", "-o"])
        .args([oracle.as_os_str(), "./oracle".as_ref()])
        .current_dir(source)
        .status()
        .expect("go can be started");
    assert!(built.success(), "go build failed");
    Some(oracle)
}

fn ask(oracle: &Path, questions: &[Question]) -> Vec<Answer> {
    let go = Command::new(oracle).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut go = go.expect("the oracle starts");
    let mut stdin = BufWriter::new(go.stdin.take().expect("it has an input"));
    let stdout = BufReader::new(go.stdout.take().expect("it has an output"));
    let answers = std::thread::scope(|scope| {
        scope.spawn(move || {
            for question in questions {
                serde_json::to_writer(&mut stdin, question).expect("the oracle reads");
                stdin.write_all(b"\n").expect("the oracle reads");
            }
        });
        let answers = stdout.lines().map(|line| line.expect("the oracle writes lines"));
        answers.map(|line| serde_json::from_str(&line).expect("each line is an answer")).collect()
    });
    assert!(go.wait().expect("the oracle ends").success());
    answers
}
