//! The same object sent as JSON, YAML and protobuf is the same in the store.

use http::Method;
use orrery_apiserver::{
    protobuf,
    registry::{Registry, Resource},
    schema, yaml,
};
use serde_json::{Value, json};

use crate::client::Client;

/// A body as a client of Go's would send it: complete, with its kind.
fn sent(resource: &Resource, object: &Value) -> Value {
    let schemas = &resource.schemas;
    let mut object = schema::decode(schemas, resource.schema, object.to_string().as_bytes()).unwrap().object;
    schema::complete(schemas, resource.schema, &mut object);
    object["kind"] = resource.kind.clone().into();
    object["apiVersion"] = resource.api_version().into();
    object
}

fn objects() -> Vec<(&'static str, Value)> {
    let pod = json!({
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "containers": [{
                "name": "c", "image": "busybox", "command": ["sh", "-c", "echo \"hi\" && sleep 1"],
                "env": [{"name": "E", "value": "1"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "0.5"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "securityContext": {"runAsNonRoot": false, "capabilities": {"drop": ["ALL"]}},
            }],
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "configMap": {"name": "c", "optional": true}}],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 0, "effect": "NoExecute"}],
            "securityContext": {"supplementalGroups": [1, 2, 3]},
        },
    });
    let workload = json!({"metadata": {"name": "w"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pod, "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}}});
    vec![
        (
            "configmaps",
            json!({"metadata": {"name": "m", "annotations": {"a": "b\u{1}"}}, "data": {"k": "", "l": "<&>"}, "binaryData": {"b": "AAH/"}, "immutable": false}),
        ),
        ("secrets", json!({"metadata": {"name": "s"}, "stringData": {"x": "y"}, "data": {"empty": "", "k": "dg=="}})),
        (
            "services",
            json!({"metadata": {"name": "v"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"name": "h", "port": 80, "targetPort": "http"}, {"name": "n", "port": 81}]}}),
        ),
        ("serviceaccounts", json!({"metadata": {"name": "a"}, "automountServiceAccountToken": false})),
        ("pods", {
            let mut pod = pod.clone();
            pod["metadata"]["name"] = "p".into();
            pod
        }),
        ("apps/deployments", workload),
        (
            "rbac.authorization.k8s.io/roles",
            json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        (
            "coordination.k8s.io/leases",
            json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2024-01-02T03:04:05.678901Z", "renewTime": "2024-01-02T03:04:05.000000Z"}}),
        ),
        (
            "networking.k8s.io/networkpolicies",
            json!({"metadata": {"name": "n"}, "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}, {"port": "x"}]}, {}]}}),
        ),
        (
            "policy/poddisruptionbudgets",
            json!({"metadata": {"name": "d"}, "spec": {"minAvailable": 0, "selector": {"matchLabels": {"a": "b"}}}}),
        ),
        (
            "apps/controllerrevisions",
            json!({"metadata": {"name": "c"}, "revision": 3, "data": {"spec": {"b": [1, null], "a": "x"}}}),
        ),
    ]
}

#[tokio::test]
async fn three_forms_of_an_object_are_stored_alike() {
    let registry = Registry::kubernetes();
    for (name, object) in objects() {
        let (group, plural) = name.split_once('/').unwrap_or(("", name));
        let resource = registry.resource(group, "v1", plural).unwrap();
        let root = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
        let collection = format!("{root}/namespaces/default/{plural}");
        let body = sent(resource, &object);
        let json = body.to_string().into_bytes();
        let forms = [
            ("application/json", json.clone()),
            ("application/yaml", yaml::write(&body)),
            ("application/vnd.kubernetes.protobuf", protobuf::encode(&json).unwrap()),
        ];
        let mut stored = Vec::new();
        for (content_type, bytes) in forms {
            let client = Client::start().await;
            let (code, _, answer) = client.raw(Method::POST, &collection, content_type, bytes).await;
            assert_eq!(code, 201, "{name} as {content_type}: {}", String::from_utf8_lossy(&answer));
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            let text = client.stored(group, plural, "default", answer["metadata"]["name"].as_str().unwrap());
            // Chance and time are not of the form.
            let mut text = text.replace(answer["metadata"]["uid"].as_str().unwrap(), "UID");
            for time in ["/metadata/creationTimestamp", "/metadata/managedFields/0/time"] {
                text = text.replace(answer.pointer(time).and_then(Value::as_str).unwrap_or("none"), "TIME");
            }
            stored.push(text);
        }
        assert_eq!(stored[0], stored[1], "{name} as YAML");
        assert_eq!(stored[0], stored[2], "{name} as protobuf");
    }
}

#[tokio::test]
async fn an_update_in_another_form_changes_nothing() {
    let client = Client::start().await;
    let collection = "/api/v1/namespaces/default/configmaps";
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let (_, created) = client.post(collection, &map).await;
    let bytes = protobuf::encode(created.to_string().as_bytes()).unwrap();
    let path = format!("{collection}/a");
    let (code, _, answer) = client.raw(Method::PUT, &path, "application/vnd.kubernetes.protobuf", bytes).await;
    assert_eq!(code, 200);
    assert_eq!(serde_json::from_slice::<Value>(&answer).unwrap(), created);
}

#[tokio::test]
async fn options_of_a_deletion_are_read() {
    let client = Client::start().await;
    let collection = "/api/v1/namespaces/default/configmaps";
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    client.post(collection, &map).await;
    let delete = async |options: Value| {
        let bytes = protobuf::encode(options.to_string().as_bytes()).unwrap();
        let path = format!("{collection}/a");
        client.raw(Method::DELETE, &path, "application/vnd.kubernetes.protobuf", bytes).await.0
    };
    let options = |fields: Value| {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        options.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        options
    };
    assert_eq!(delete(options(json!({"preconditions": {"uid": "another"}}))).await, 409);
    assert_eq!(delete(options(json!({"dryRun": ["All"]}))).await, 200);
    assert_eq!(delete(options(json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"}))).await, 200);
    assert_eq!(client.get(&format!("{collection}/a")).await.0, 404);
}
