//! What the query parameters of an operation are for: the documentation of the options that requests can have.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// The options whose fields are parameters.
const OPTIONS: [&str; 6] =
    ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"];

/// Of each kind of options: what each field is for.
pub(crate) fn of(modules: &Path, version: &str) -> Result<Value> {
    let module = format!("apimachinery@v0.{}.", version.rsplit('.').next().unwrap_or_default());
    let found = fs::read_dir(modules)?.flatten().find(|entry| entry.file_name().to_string_lossy().starts_with(&module));
    let module = found.with_context(|| format!("{} has no {module}*", modules.display()))?.path();
    let text = fs::read_to_string(module.join("pkg/apis/meta/v1/types_swagger_doc_generated.go"))?;
    let mut all = Map::new();
    for options in OPTIONS {
        let start = format!("var map_{options} = map[string]string{{");
        let lines = text.lines().skip_while(|line| *line != start).skip(1).take_while(|line| *line != "}");
        let field = |line: &str| -> Result<(String, Value)> {
            let (name, told) = line.trim().trim_end_matches(',').split_once(':').context("a field and its text")?;
            // What Go writes between quotes reads the same as JSON here.
            Ok((serde_json::from_str(name)?, serde_json::from_str(told.trim())?))
        };
        let fields = lines.map(field).collect::<Result<Map<String, Value>>>().context(options)?;
        all.insert(options.to_owned(), fields.into_iter().filter(|(name, _)| !name.is_empty()).collect());
    }
    Ok(all.into())
}
