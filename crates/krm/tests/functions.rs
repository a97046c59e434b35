//! Each folder in `testdata/functions` is a package before and after one function or several.
//!
//! `in.yaml` is the ResourceList, `out.yaml` what comes out, `pools.yaml` what `--pools` would name. The function is that of
//! the folder, unless the file `steps` names others. With `UPDATE_GOLDEN=1` the results are written instead of compared.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use orrery_krm::{Context, Item, Outcome, functions, process};

/// What one run of all steps gives: the text, the messages and the exit code of the last step that ran.
fn run(steps: &[String], input: &str, context: &Context) -> Outcome {
    let mut outcome = Outcome { stdout: input.to_owned(), stderr: String::new(), exit: 0 };
    for step in steps {
        let function = functions::find(step).unwrap_or_else(|| panic!("no function {step}"));
        outcome = process(function, outcome.stdout.as_bytes(), context);
        if outcome.exit != 0 {
            break;
        }
    }
    outcome
}

fn cases(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries.into_iter().filter(|entry| entry.is_dir()) {
        if entry.join("in.yaml").exists() {
            found.push(entry);
        } else {
            cases(&entry, found);
        }
    }
}

fn check(folder: &Path, root: &Path) -> Result<(), String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let input = read("in.yaml").expect("a case has an input");
    let pools = read("pools.yaml").map_or(Vec::new(), |text| Item::parse_all(&text).expect("pools are YAML"));
    let context = Context { now: "2026-11-16T02:00:00Z".to_owned(), pools };
    let own = folder.strip_prefix(root).unwrap().iter().next().unwrap().to_str().unwrap();
    let steps = read("steps").unwrap_or_else(|| own.to_owned());
    let steps: Vec<String> = steps.split_whitespace().map(str::to_owned).collect();

    let outcome = run(&steps, &input, &context);
    let mut actual = outcome.stdout.clone();
    if outcome.exit != 0 {
        actual = format!("# exit {}: {}{actual}", outcome.exit, outcome.stderr);
    }
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(folder.join("out.yaml"), &actual).unwrap();
    }
    if read("out.yaml").as_ref() != Some(&actual) {
        return Err(format!("out.yaml differs:\n{actual}"));
    }
    let again = run(&steps, &outcome.stdout, &context);
    if again != outcome {
        return Err(format!("a second run is not the same:\n{}{}", again.stderr, again.stdout));
    }
    Ok(())
}

#[test]
fn packages_before_and_after() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/functions");
    let mut folders = Vec::new();
    cases(&root, &mut folders);
    assert!(folders.len() > 80, "only {} cases were found", folders.len());
    let failures: Vec<String> = folders
        .iter()
        .filter_map(|folder| check(folder, &root).err().map(|error| format!("{}: {error}", folder.display())))
        .collect();
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), folders.len(), failures.join("\n"));
}
