//! The session: its steps, what each printed at a real server, and whether it prints the same here.

use std::{fmt::Write, fs, path::PathBuf};

use orrery_testkit::{ControlPlane, kubectl::Kubectl};
use tokio::runtime::Runtime;

use crate::normal::normal;

const SESSION: &str = include_str!("session.sh");

struct Step {
    name: &'static str,
    script: &'static str,
}

fn steps() -> Vec<Step> {
    let parts = SESSION.split("\n## ").skip(1);
    parts.filter_map(|part| part.split_once('\n')).map(|(name, script)| Step { name, script }).collect()
}

/// What a step printed, and how it ended if not well.
fn run(kubectl: &Kubectl, step: &Step) -> String {
    // Both streams in the order in which they were written.
    let before = SESSION.split("\n## ").next().unwrap_or_default();
    let output = kubectl.sh(&format!("exec 2>&1\n{before}\n{}", step.script));
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let _ = writeln!(text, "{}", output.status);
    }
    text
}

fn expected_file(minor: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kubectl/expected/1.{minor}.txt"))
}

/// What each step is expected to print, by its name.
fn expected(minor: u32) -> Option<Vec<(String, String)>> {
    let text = fs::read_to_string(expected_file(minor)).ok()?;
    let parts = text.split("## ").skip(1).filter_map(|part| part.split_once('\n'));
    Some(parts.map(|(name, output)| (name.to_owned(), comparable(output))).collect())
}

fn comparable(output: &str) -> String {
    normal(output.trim_end()).trim_end().to_owned()
}

/// Runs the session at a real server and writes down what it printed.
pub(crate) fn record(kubectl: &Kubectl) {
    let mut text = String::new();
    for step in steps() {
        let _ = write!(text, "## {}\n{}\n", step.name, run(kubectl, &step));
    }
    let file = expected_file(kubectl.minor());
    fs::create_dir_all(file.parent().expect("it lies in a directory")).expect("a directory");
    fs::write(&file, text).expect("the file is written");
}

/// Runs the session in one space, beside another space that has objects of the same names.
pub(crate) fn replay(program: &std::path::Path) {
    let runtime = Runtime::new().expect("a runtime");
    let control_plane = runtime.block_on(ControlPlane::start());
    let kubectl = two_spaces(program, &runtime, &control_plane);
    kubectl.ok("kubectl --context beta create -f - <<'E'
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {from: beta}
E");

    let minor = kubectl.minor();
    let recorded = expected(minor);
    if recorded.is_none() {
        eprintln!("nothing was recorded with kubectl 1.{minor}: only how each step ends is compared");
    }
    let nearest = recorded.clone().or_else(|| (20..minor).rev().find_map(expected)).expect("1.20 was recorded");
    let mut differences = String::new();
    for (step, (name, expected)) in steps().iter().zip(nearest) {
        assert_eq!(step.name, name, "the session has changed since it was recorded");
        let printed = comparable(&run(&kubectl, step));
        let ended_alike = printed.lines().last().filter(|line| line.starts_with("exit status"))
            == expected.lines().last().filter(|line| line.starts_with("exit status"));
        if if recorded.is_some() { printed != expected } else { !ended_alike } {
            let _ = writeln!(differences, "── {name}\n{}", difference(&expected, &printed));
        }
    }
    assert!(differences.is_empty(), "kubectl 1.{minor} (- at a real server, + here):\n{differences}");

    let names = kubectl.ok("kubectl --context beta -n shop get cm,secret,deploy,svc,pod,job,role -o name");
    assert_eq!(names.lines().collect::<Vec<_>>(), ["configmap/kube-root-ca.crt", "configmap/settings"]);
    let from = kubectl.ok("kubectl --context beta -n shop get cm settings -o jsonpath='{.data}'");
    assert_eq!(from, r#"{"from":"beta"}"#);
    runtime.block_on(control_plane.stop());
}

/// A kubectl whose contexts are two spaces; the first is the current one.
fn two_spaces(program: &std::path::Path, runtime: &Runtime, control_plane: &ControlPlane) -> Kubectl {
    let spaces = ["alpha", "beta"].map(|name| runtime.block_on(control_plane.space(name)));
    let kubectl = Kubectl::with_kubeconfig(program, &spaces[0]);
    let [alpha, beta] = spaces.each_ref().map(|path| path.display());
    kubectl.ok(&format!(
        "for space in alpha=\"{alpha}\" beta=\"{beta}\"; do
           sed \"s/: test$/: ${{space%%=*}}/\" \"${{space#*=}}\" >\"../${{space%%=*}}\"
         done
         KUBECONFIG=../alpha:../beta kubectl config view --flatten >../kubeconfig
         kubectl config use-context alpha
         kubectl config get-contexts -o name | sort | tr '\\n' ' '"
    ));
    kubectl
}

/// The lines that are not the same, and some around them.
fn difference(expected: &str, printed: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), printed.lines().collect());
    let same_before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - same_before;
    let same_after = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let removed = old[same_before..old.len() - same_after].iter().map(|line| format!("- {line}"));
    let added = new[same_before..new.len() - same_after].iter().map(|line| format!("+ {line}"));
    removed.chain(added).collect::<Vec<_>>().join("\n")
}
