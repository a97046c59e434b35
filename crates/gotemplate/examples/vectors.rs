//! Reads JSON lines `{"template","data"}` and writes what each gives as `{"output","error"}`.
//!
//! The template is called `t`, and bytes that are not UTF-8 show as U+FFFD, so that the output can be compared with that of
//! real Go line by line.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Write};

use orrery_gotemplate::{Budget, Data, Template, to_text};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Input {
    template: String,
    data: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Output<'a> {
    output: &'a str,
    error: &'a str,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut answers = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let Input { template, data } = serde_json::from_str(&line?)?;
        let mut out = Vec::new();
        let error = expand(&template, &Data::from_iter(data), &mut out).err().unwrap_or_default();
        serde_json::to_writer(&mut answers, &Output { output: &to_text(&out), error: &error })?;
        answers.write_all(b"\n")?;
    }
    answers.flush()?;
    Ok(())
}

fn expand(template: &str, data: &Data, out: &mut Vec<u8>) -> Result<(), String> {
    let template = Template::parse("t", template).map_err(|error| error.to_string())?;
    template.execute(data, &mut Budget::default(), out).map_err(|error| error.to_string())
}
