//! `orrery preview` and `kubectl create` of a BindingPreview against a running control plane.

#[path = "support/hub.rs"]
mod hub;

use std::{fs, path::Path, process::Output};

use http::Method;
use hub::{CONFIG_MAPS, config_map, connect, orrery, run, stdout, up};
use orrery::client::Client;
use orrery_testkit::{
    kube_client,
    kubectl::{Kubectl, Version},
    watch_until,
};
use serde_json::{Value, json};

const CONTROL: &str = "/apis/control.kubestellar.io/v1alpha1";

fn preview(kubeconfig: &Path, arguments: &[&str]) -> Output {
    run(orrery(&[&["preview"], arguments].concat()).arg("--kubeconfig").arg(kubeconfig))
}

/// Runs `orrery preview`, which must fail in these words.
#[track_caller]
fn preview_fails(kubeconfig: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    let output = preview(kubeconfig, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

async fn post(client: &mut Client, path: &str, object: Value) {
    client.send(Method::POST, path, Some(&object)).await.unwrap_or_else(|error| panic!("{path}: {error:#}"));
}

/// Two clusters, a policy, and objects that it sends.
async fn furnish(kubeconfig: &Path) {
    let client = &mut connect(kubeconfig).await;
    for (name, region) in [("c1", "east"), ("c2", "west")] {
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": {"region": region}},
        });
        post(client, "/apis/cluster.open-cluster-management.io/v1/managedclusters", cluster).await;
    }
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "{{.region}}"},
        "metadata": {
            "name": "a", "labels": {"app": "x"}, "annotations": {"control.kubestellar.io/expand-templates": "true"},
        },
    });
    post(client, CONFIG_MAPS, map).await;
    post(client, CONFIG_MAPS, config_map("left-out")).await;
    post(client, &format!("{CONTROL}/bindingpolicies"), policy("web")).await;
    let ledgers = "/apis/core.orrery.io/v1alpha1/workledgers";
    watch_until(&kube_client(kubeconfig).await, ledgers, "web", "a name", |_| true).await;
}

fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": name},
        "spec": {
            "clusterSelectors": [{}],
            "downsync": [{"resources": ["configmaps"], "objectSelectors": [{"matchLabels": {"app": "x"}}]}],
        },
    })
}

const CHANGED: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {app: x}
  annotations: {control.kubestellar.io/expand-templates: 'true'}
data:
  text: '{{.region}}!'
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: default, labels: {app: x}}
data: {text: new}
";

#[tokio::test]
async fn everything_is_shown_before_it_happens() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    let admin = hub.kubeconfig();
    let mut client = connect(admin).await;
    let empty = preview(admin, &[]);
    assert!(String::from_utf8_lossy(&empty.stderr).contains("nothing would be sent"));
    assert_eq!((empty.status.code(), empty.stdout.as_slice()), (Some(0), b"".as_slice()));
    furnish(admin).await;
    assert_eq!(
        stdout(&preview(admin, &["web"])),
        "POLICY   OBJECT                 CLUSTER   CHANGE\n\
         web      configmaps default/a   c1        unchanged\n\
         web      configmaps default/a   c2        unchanged\n"
    );
    let file = directory.path().join("changed.yaml");
    fs::write(&file, CHANGED).unwrap();
    let file = file.to_str().unwrap();
    let output = preview(admin, &["--cluster", "c2", "-f", file]);
    assert_eq!(
        stdout(&output),
        "POLICY   OBJECT                 CLUSTER   CHANGE\n\
         web      configmaps default/a   c2        changed\n\
         web      configmaps default/b   c2        added\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "1 added, 1 changed\n");
    let text = stdout(&preview(admin, &["-o", "yaml", "--cluster", "c1", "-f", file]));
    let documents: Vec<&str> = text.split("---\n").skip(1).collect();
    assert_eq!(documents.len(), 2, "{text}");
    assert!(
        documents[0].starts_with("# policy web, cluster c1, configmaps default/a: changed\napiVersion: v1\n"),
        "{text}"
    );
    assert!(documents[0].contains("\n  text: east!\n") && documents[1].contains("\n  text: new\n"), "{text}");
    let text = stdout(&preview(admin, &["-o", "diff", "--cluster", "c1", "-f", file]));
    assert!(
        text.starts_with(
            "--- c1/configmaps/default/a\tsent last\n+++ c1/configmaps/default/a\tpolicy web\n@@ -1,6 +1,6 @@\n"
        ),
        "{text}"
    );
    assert!(text.contains("\n-  text: east\n+  text: east!\n"), "{text}");
    assert!(text.contains("\n--- /dev/null\n+++ c1/configmaps/default/b\tpolicy web\n@@ -0,0 +1,"), "{text}");

    // What a policy would do that is not there yet, and in another space.
    stdout(&run(orrery(&["space", "create", "team", "--wait", "--kubeconfig"]).arg(admin)));
    let new = directory.path().join("new.json");
    fs::write(&new, policy("new").to_string()).unwrap();
    let new = new.to_str().unwrap();
    assert_eq!(stdout(&preview(admin, &["-f", new])).matches("new      configmaps default/a   c").count(), 2);
    // There an older policy of another space sends something else under the same name.
    let output = preview(admin, &["--space", "team", "-f", new, file]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), text.matches(" added").count()), (Some(1), 2), "{text}");
    assert!(text.contains("other content is sent by Binding web of space root, which is older and keeps it"), "{text}");
    assert_eq!(stdout(&preview(admin, &["--space", "root", "web", "-f", new])).matches(" unchanged").count(), 2);
    assert!(client.get_opt(&format!("{CONTROL}/bindingpolicies/new")).await.unwrap().is_none());
    assert!(client.get_opt(&format!("{CONFIG_MAPS}/b")).await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_wrong_is_told_and_ends_in_1() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(&directory.path().join("data"), &[]);
    let admin = hub.kubeconfig();
    furnish(admin).await;
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let failing = write("failing.yaml", &CHANGED.replace("{{.region}}!", "{{.nope}}"));
    let output = preview(admin, &["-f", &failing]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.matches("failed: ").count(), 2, "{text}");
    assert!(text.contains("map has no entry for key \"nope\""), "{text}");
    assert_eq!(text.matches(" added").count(), 2, "the rest is shown too: {text}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("2 added, 2 failed") && said.contains("clusters keep what they have"), "{said}");

    preview_fails(admin, &["nobody"], 1, &["bindingpolicies.control.kubestellar.io \"nobody\" not found"]);
    preview_fails(admin, &["-f", "/nowhere.yaml"], 1, &["cannot read /nowhere.yaml"]);
    let broken = write("broken.yaml", "apiVersion: v1\nkind: ConfigMap\ndata: [\n");
    preview_fails(admin, &["-f", &broken], 1, &["broken.yaml", "yaml: line"]);
    let mut wrong = policy("web");
    wrong["spec"]["downsync"][0] = json!({"createOnly": true});
    let wrong = write("wrong.yaml", &wrong.to_string());
    let words =
        ["wrong.yaml: BindingPolicy \"web\": BindingPolicy.control.kubestellar.io \"web\" is invalid", "(code 422)"];
    preview_fails(admin, &["-f", &wrong], 1, &words);
    preview_fails(admin, &["-o", "xml"], 2, &["table", "yaml", "diff"]);
    preview_fails(admin, &["--space", "../x"], 2, &["--space"]);
    preview_fails(admin, &["--space", "nobody"], 1, &["there is no space at ", "/spaces/nobody", "orrery space list"]);
}

#[tokio::test]
async fn kubectl_creates_a_preview() {
    let directory = tempfile::tempdir().unwrap();
    let hub = up(directory.path(), &[]);
    furnish(hub.kubeconfig()).await;
    let found: Vec<_> = Version::ALL.iter().filter(|version| version.is_wanted()).filter_map(|it| it.find()).collect();
    assert!(!found.is_empty(), "no kubectl: run ./test, which fetches some");
    for program in found {
        let kubectl = Kubectl::with_kubeconfig(&program, hub.kubeconfig());
        let question = r#"
cat >question.yaml <<'EOF'
apiVersion: control.orrery.io/v1alpha1
kind: BindingPreview
metadata: {name: now}
spec: {policies: [web], clusters: [c2]}
EOF
"#;
        let answer = kubectl.ok(&format!("{question} kubectl create -f question.yaml -o yaml"));
        for line in ["change: Unchanged\n", "cluster: c2\n", "        text: west\n"] {
            assert!(answer.contains(line), "{line:?} is not in {answer}");
        }
        assert!(!answer.contains("c1"), "{answer}");
        let kinds = kubectl.ok("kubectl api-resources --api-group control.orrery.io");
        assert!(kinds.contains("bindingpreviews") && kinds.contains("BindingPreview"), "{kinds}");
        let output = kubectl
            .sh(&format!("{question} sed -i s/clusters/clutters/ question.yaml; kubectl create -f question.yaml"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("clutters"), "{said}");
    }
    let first = Version::ALL.iter().filter(|version| version.is_wanted()).find_map(|version| version.find());
    let kubectl = Kubectl::with_kubeconfig(&first.expect("there is one"), hub.kubeconfig());
    let text = kubectl.ok("kubectl explain bindingpreview.spec");
    assert!(text.contains("given") && text.contains("Objects as they might be"), "{text}");
    let output = kubectl.sh("kubectl get bindingpreviews");
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("MethodNotAllowed"));
}
