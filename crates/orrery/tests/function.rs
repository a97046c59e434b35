//! `orrery fn` as people and kpt type it: exit codes, messages, and what is written.

use std::{
    fs,
    io::Write,
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, Output, Stdio},
};

const KPTFILE: &str = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: upf  # kept\n";
const LIST: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: kpt.dev/v1\n  kind: Kptfile\n  \
                    metadata:\n    name: upf  # kept\n";
const CLUSTER: &str = "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: c1\nspec:\n  clusterName: c1\n  \
                       cnis: [macvlan]\n  masterInterface: eth1\n";
const INTERFACE: &str = "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: n3 # third\n  annotations:\n    \
                         specializer.nephio.org/owner: workload.nephio.org/v1alpha1.NFDeployment.upf\nspec:\n  networkInstance:\n    \
                         name: vpc-ran\n  cniType: macvlan\n";

fn orrery(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orrery"));
    command.args(arguments);
    command
}

fn with_input(mut command: Command, input: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn package(pipeline: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in
        [("Kptfile", format!("{KPTFILE}{pipeline}")), ("c.yaml", CLUSTER.into()), ("n3.yaml", INTERFACE.into())]
    {
        fs::write(folder.path().join(name), text).expect("our folder");
    }
    folder
}

fn render(folder: &Path, more: &[&str]) -> (i32, String) {
    let output = orrery(&["fn", "render"]).arg(folder).args(more).output().expect("it starts");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_function_without_work_gives_back_its_input() {
    for name in ["interface", "ipam", "vlan", "nad"] {
        let output = with_input(orrery(&["fn", name]), LIST.as_bytes());
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), LIST), "{name}");
    }
}

#[test]
fn unreadable_input_gives_no_output() {
    for input in [&b""[..], b"\xff\xfe", b"kind: ResourceList\nitems: [\n"] {
        let output = with_input(orrery(&["fn", "interface"]), input);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let mut child =
        orrery(&["fn", "interface"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    child.stdin.take().expect("a pipe").write_all(LIST.as_bytes()).expect("it reads");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn images_of_our_functions_run_here_and_others_are_refused() {
    let known =
        package("pipeline:\n  mutators:\n  - image: nephio.org/interface-manager:v1\n  - image: nephio.org/vlan:v1\n");
    let (exit, said) = render(known.path(), &[]);
    assert_eq!(exit, 0, "{said}");
    assert!(fs::read_dir(known.path()).expect("our folder").count() > 3, "claims have files of their own");
    let unknown = package("pipeline:\n  mutators:\n  - image: example.com/vlan:v1\n");
    let (exit, said) = render(unknown.path(), &[]);
    assert_eq!(exit, 1);
    assert!(
        said.contains("pipeline.mutators[0].image") && said.contains("example.com/vlan:v1 is not built in"),
        "{said}"
    );
}

#[test]
fn only_files_that_change_are_written_and_a_second_run_writes_none() {
    let package = package("pipeline:\n  mutators:\n  - image: nephio.org/interface-manager:v1\n");
    let number = |name: &str| fs::metadata(package.path().join(name)).expect("it is there").ino();
    let (cluster, kptfile) = (number("c.yaml"), number("Kptfile"));
    assert_eq!(render(package.path(), &[]).0, 0);
    assert_eq!(number("c.yaml"), cluster, "it was not replaced");
    assert_ne!(number("Kptfile"), kptfile, "it was replaced as a whole");
    let text = fs::read_to_string(package.path().join("Kptfile")).expect("a text");
    assert!(text.starts_with(KPTFILE), "{text}");
    let (exit, said) = render(package.path(), &[]);
    assert_eq!(exit, 0);
    assert!(said.contains("0 files written, 0 removed"), "{said}");
    let names: Vec<_> =
        fs::read_dir(package.path()).expect("our folder").map(|entry| entry.expect("a name").file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with('.')), "nothing is left over: {names:?}");
}

#[test]
fn another_folder_is_written_whole_and_the_package_left_alone() {
    let package = package("pipeline:\n  mutators:\n  - image: nephio.org/interface-manager:v1\n");
    let target = tempfile::tempdir().expect("a temporary folder");
    let target = target.path().join("new/result");
    let (exit, said) = render(package.path(), &["--output", &target.to_string_lossy()]);
    assert_eq!(exit, 0, "{said}");
    assert_eq!(fs::read_to_string(target.join("c.yaml")).expect("all files are there"), CLUSTER);
    assert_eq!(fs::read_dir(package.path()).expect("our folder").count(), 3);
    let (exit, said) = render(package.path(), &["--output", &target.to_string_lossy()]);
    assert!(exit == 1 && said.contains("already exists"), "{said}");
}

#[test]
fn strict_makes_an_error_about_one_object_fail_the_run() {
    let package = package("pipeline:\n  mutators:\n  - image: nephio.org/interface-manager:v1\n");
    let wrong = INTERFACE.replace("cniType: macvlan", "cniType: unheard-of");
    fs::write(package.path().join("n3.yaml"), &wrong).expect("our folder");
    let results = package.path().join("results.txt");
    let (exit, said) = render(package.path(), &["--strict", "--results", &results.to_string_lossy()]);
    assert_eq!(exit, 1, "{said}");
    assert!(said.contains("strict mode") && said.contains("Nothing was written"), "{said}");
    let results = fs::read_to_string(results).expect("results are written all the same");
    assert!(results.contains("kind: FunctionResultList\n") && results.contains("severity: error\n"), "{results}");
    assert_eq!(
        fs::read_to_string(package.path().join("Kptfile")).expect("a text").lines().count(),
        7,
        "no condition was written"
    );
    assert_eq!(render(package.path(), &[]).0, 0, "and without it the run goes on");
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [&["fn"][..], &["fn", "nothing"], &["fn", "render", "--no-such-flag"]] {
        assert_eq!(orrery(arguments).output().expect("it starts").status.code(), Some(2), "{arguments:?}");
    }
}
