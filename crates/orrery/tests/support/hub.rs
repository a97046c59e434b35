//! What the tests of the program share: how it is started, and how it is asked.

use std::{
    path::Path,
    process::{Command, Output},
};

use orrery::{access::Access, client::Client};
use orrery_testkit::Program;
use serde_json::{Value, json};

/// The program under test.
pub(crate) const ORRERY: &str = env!("CARGO_BIN_EXE_orrery");

/// Starts a control plane in a directory.
pub(crate) fn up(data_dir: &Path, arguments: &[&str]) -> Program {
    Program::up(ORRERY, data_dir, arguments)
}

/// A command of the program that sees nothing of the environment of the test.
pub(crate) fn orrery(arguments: &[&str]) -> Command {
    let mut command = Command::new(ORRERY);
    command.args(arguments).env_clear();
    command
}

/// Runs a command until it ends.
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().expect("the program can be started")
}

/// What a command wrote to standard output, which must have succeeded.
pub(crate) fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A client with the access of a kubeconfig.
pub(crate) async fn connect(kubeconfig: &Path) -> Client {
    let access = Access::read(kubeconfig).expect("a kubeconfig");
    Client::connect(&access).await.unwrap_or_else(|error| panic!("{error:#}"))
}

/// A config map.
pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

/// Where config maps of the namespace `default` are.
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
