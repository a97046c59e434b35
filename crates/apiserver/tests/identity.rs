//! Who may do what: credentials are good where they were issued, and roles and bindings decide from the next request on.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use std::time::Duration;

use client::Client;
use orrery_apiserver::{
    Config,
    identity::{Issuer, User},
};
use orrery_store::Store;
use serde_json::{Value, json};

const SPACES: &str = "/apis/core.orrery.io/v1alpha1/logicalspaces";
const RBAC: &str = "apis/rbac.authorization.k8s.io/v1";

fn user(name: &str, groups: &[&str], issuer: Issuer) -> User {
    let groups = groups.iter().chain(&["system:authenticated"]).map(|group| (*group).to_owned()).collect();
    User { name: name.into(), groups, issuer, ..User::default() }
}

async fn make_space(client: &Client, name: &str) -> Issuer {
    let space = json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": name}});
    let (code, made) = client.post(SPACES, &space).await;
    assert_eq!(code, 201);
    Issuer::Space { name: name.into(), uid: made["metadata"]["uid"].as_str().unwrap().into() }
}

fn role(name: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"metadata": {"name": name}, "rules": [{"apiGroups": [""], "resources": [resource], "verbs": verbs}]})
}

fn binding(name: &str, kind: &str, role: &str, subject: &Value) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [subject],
    })
}

fn to_user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

#[tokio::test]
async fn a_credential_is_good_only_where_it_was_issued() {
    let client = Client::start().await;
    let (a, b) = (make_space(&client, "a").await, make_space(&client, "b").await);
    let namespaces = [
        "/api/v1/namespaces",
        "/spaces/a/api/v1/namespaces",
        "/spaces/b/api/v1/namespaces",
        "/spaces/*/api/v1/namespaces",
    ];
    let masters = ["system:masters"];
    for (user, expected) in [
        (user("root-admin", &masters, Issuer::Root), [200, 200, 200, 200]),
        (user("a-admin", &masters, a.clone()), [401, 200, 401, 401]),
        (user("b-admin", &masters, b.clone()), [401, 401, 200, 401]),
        (user("root-user", &[], Issuer::Root), [403, 401, 401, 403]),
        (user("a-user", &[], a.clone()), [401, 403, 401, 401]),
        (User::anonymous(), [403, 403, 403, 403]),
    ] {
        let as_user = client.acting_as(&user);
        for (path, code) in namespaces.into_iter().zip(expected) {
            assert_eq!(as_user.get(path).await.0, code, "{} at {path}", user.name);
        }
    }
    let (code, refusal) = client.acting_as(&user("a-admin", &masters, a.clone())).get(namespaces[0]).await;
    assert_eq!((code, &refusal["reason"], &refusal["message"]), (401, &json!("Unauthorized"), &json!("Unauthorized")));
    client.delete(&format!("{SPACES}/a")).await;
    client.until(&format!("{SPACES}/a"), |code, _| code == 404).await;
    let again = make_space(&client, "a").await;
    assert_ne!(a, again);
    assert_eq!(
        client.acting_as(&user("a-admin", &masters, a)).get(namespaces[1]).await.0,
        401,
        "another space of this name"
    );
    assert_eq!(client.acting_as(&user("a-admin", &masters, again)).get(namespaces[1]).await.0, 200);
}

#[tokio::test]
async fn anonymous_users_see_health_and_version_and_nothing_else() {
    let client = Client::start().await;
    make_space(&client, "a").await;
    let nobody = client.acting_as(&User::anonymous());
    for space in ["", "/spaces/a"] {
        for (path, expected) in [
            ("/healthz", 200),
            ("/livez", 200),
            ("/readyz", 200),
            ("/version", 200),
            ("/api", 403),
            ("/apis", 403),
            ("/openapi/v3", 403),
            ("/metrics", 403),
            ("/api/v1/namespaces/default", 403),
        ] {
            assert_eq!(nobody.get(&format!("{space}{path}")).await.0, expected, "{space}{path}");
        }
    }
    assert_eq!(nobody.get("/spaces/missing/api/v1/namespaces").await.0, 403, "nobody is told which spaces there are");
    let (code, _) = nobody.with_header("Authorization", "Bearer some-token").get("/healthz").await;
    assert_eq!(code, 401, "an unknown credential is not none");
}

#[tokio::test]
async fn a_role_takes_effect_with_the_next_request() {
    let client = Client::start().await;
    for (space, issuer) in [("", Issuer::Root), ("/spaces/a", make_space(&client, "a").await)] {
        let joe = client.acting_as(&user("joe", &["team"], issuer));
        let maps = format!("{space}/api/v1/namespaces/default/configmaps");
        let roles = format!("{space}/{RBAC}/namespaces/default/roles");
        let bindings = format!("{space}/{RBAC}/namespaces/default/rolebindings");
        assert_eq!(joe.get(&maps).await.0, 403);
        assert_eq!(client.post(&roles, &role("reader", "configmaps", &["list"])).await.0, 201);
        assert_eq!(joe.get(&maps).await.0, 403, "a role alone gives nothing");
        let to_team = json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "team"});
        assert_eq!(client.post(&bindings, &binding("reader", "Role", "reader", &to_team)).await.0, 201);
        for _ in 0..20 {
            assert_eq!(joe.get(&maps).await.0, 200);
            assert_eq!(joe.post(&maps, &json!({"metadata": {"name": "x"}})).await.0, 403);
            assert_eq!(joe.get(&format!("{space}/api/v1/configmaps")).await.0, 403, "only in the one namespace");
            assert_eq!(client.put(&format!("{roles}/reader"), &role("reader", "configmaps", &["get"])).await.0, 200);
            assert_eq!(joe.get(&maps).await.0, 403);
            assert_eq!(client.put(&format!("{roles}/reader"), &role("reader", "configmaps", &["list"])).await.0, 200);
        }
        assert_eq!(client.delete(&format!("{roles}/reader")).await.0, 200);
        let (code, refusal) = joe.get(&maps).await;
        let message = "configmaps is forbidden: User \"joe\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\": RBAC: role.rbac.authorization.k8s.io \"reader\" not found";
        assert_eq!((code, &refusal["message"]), (403, &json!(message)));
    }
}

#[tokio::test]
async fn the_shared_roles_count_in_every_space_until_it_changes_them() {
    let client = Client::start().await;
    let (a, b) = (make_space(&client, "a").await, make_space(&client, "b").await);
    for space in ["a", "b"] {
        let bindings = format!("/spaces/{space}/{RBAC}/namespaces/default/rolebindings");
        assert_eq!(client.post(&bindings, &binding("view", "ClusterRole", "view", &to_user("joe"))).await.0, 201);
    }
    let pods = |space: &str| format!("/spaces/{space}/api/v1/namespaces/default/pods");
    let (in_a, in_b) = (client.acting_as(&user("joe", &[], a)), client.acting_as(&user("joe", &[], b)));
    assert_eq!((in_a.get(&pods("a")).await.0, in_b.get(&pods("b")).await.0), (200, 200));
    assert_eq!(client.delete(&format!("/spaces/a/{RBAC}/clusterroles/view")).await.0, 200);
    assert_eq!((in_a.get(&pods("a")).await.0, in_b.get(&pods("b")).await.0), (403, 200), "only where it was deleted");
    assert_eq!(in_a.get("/spaces/a/version").await.0, 200);
    let bindings = format!("/spaces/a/{RBAC}/clusterrolebindings");
    assert_eq!(client.delete(&format!("{bindings}/system:public-info-viewer")).await.0, 200);
    assert_eq!(client.acting_as(&User::anonymous()).get("/spaces/a/version").await.0, 403);
    assert_eq!(client.acting_as(&User::anonymous()).get("/spaces/b/version").await.0, 200);
}

#[tokio::test]
async fn a_binding_that_was_deleted_stays_so_when_its_history_is_forgotten() {
    let store = Store::memory(orrery_store::Config::default()).unwrap();
    let config = Config { history: Duration::from_millis(50), ..Config::default() };
    let client = Client::over(store, config).await;
    make_space(&client, "a").await;
    let bindings = format!("/spaces/a/{RBAC}/clusterrolebindings");
    assert_eq!(client.delete(&format!("{bindings}/system:public-info-viewer")).await.0, 200);
    let (_, list) = client.get(&bindings).await;
    let then = list["metadata"]["resourceVersion"].as_str().unwrap();
    client.until(&format!("{bindings}?resourceVersion={then}&resourceVersionMatch=Exact"), |code, _| code == 410).await;
    assert_eq!(client.acting_as(&User::anonymous()).get("/spaces/a/version").await.0, 403);
}

#[tokio::test]
async fn a_forged_page_shows_nothing_that_was_not_selected() {
    let client = Client::start().await;
    let a = make_space(&client, "a").await;
    let secrets = "/spaces/a/api/v1/namespaces/default/secrets";
    for name in ["a", "b", "c"] {
        client.post(secrets, &json!({"metadata": {"name": name, "labels": {"is": name}}})).await;
    }
    let mut rule = role("one", "secrets", &["list"]);
    rule["rules"][0]["resourceNames"] = json!(["a"]);
    client.post(&format!("/spaces/a/{RBAC}/namespaces/default/roles"), &rule).await;
    let bindings = format!("/spaces/a/{RBAC}/namespaces/default/rolebindings");
    client.post(&bindings, &binding("one", "Role", "one", &to_user("joe"))).await;
    let joe = client.acting_as(&user("joe", &[], a));
    assert_eq!(joe.get(secrets).await.0, 403);
    // {"v":"meta.k8s.io/v1","rv":-1,"start":"b"}: from b on, and with it.
    let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYiJ9";
    let (code, page) = joe.get(&format!("{secrets}?fieldSelector=metadata.name%3Da&continue={token}")).await;
    assert_eq!((code, &page["items"]), (200, &json!([])));
    let names = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (_, page) = client.get(&format!("{secrets}?labelSelector=is+in+(a,c)&continue={token}")).await;
    assert_eq!(names(&page), ["c"]);
    // Whoever may see all goes on with it, in pages that are no larger than asked for.
    let (_, page) = client.get(&format!("{secrets}?limit=1&continue={token}")).await;
    assert_eq!((names(&page), &page["metadata"]["remainingItemCount"]), (vec!["b".to_owned()], &json!(1)));
    let next = page["metadata"]["continue"].as_str().unwrap();
    let (_, page) = client.get(&format!("{secrets}?limit=1&continue={next}")).await;
    assert_eq!((names(&page), page["metadata"].get("continue")), (vec!["c".to_owned()], None));
}

#[tokio::test]
async fn service_accounts_are_users_of_their_namespace() {
    let client = Client::start().await;
    let subject = json!({"kind": "ServiceAccount", "name": "bot", "namespace": "default"});
    let bindings = format!("/{RBAC}/namespaces/kube-public/rolebindings");
    client.post(&bindings, &binding("view", "ClusterRole", "view", &subject)).await;
    for (name, expected) in [("system:serviceaccount:default:bot", 200), ("system:serviceaccount:kube-public:bot", 403)]
    {
        let other = client.with_header("Impersonate-User", name);
        assert_eq!(other.get("/api/v1/namespaces/kube-public/configmaps").await.0, expected, "{name}");
    }
}

#[tokio::test]
async fn an_aggregated_role_follows_what_it_is_made_of() {
    let client = Client::start().await;
    let issuer = make_space(&client, "a").await;
    let roles = format!("/spaces/a/{RBAC}/clusterroles");
    let bindings = format!("/spaces/a/{RBAC}/clusterrolebindings");
    client.post(&bindings, &binding("joe", "ClusterRole", "view", &to_user("joe"))).await;
    let joe = client.acting_as(&user("joe", &[], issuer));
    let secrets = "/spaces/a/api/v1/secrets";
    assert_eq!(joe.get(secrets).await.0, 403);
    let mut more = role("more", "secrets", &["list"]);
    more["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    assert_eq!(client.post(&roles, &more).await.0, 201);
    joe.until(secrets, |code, _| code == 200).await;
    assert_eq!(client.delete(&format!("{roles}/more")).await.0, 200);
    joe.until(secrets, |code, _| code == 403).await;
}

#[tokio::test]
async fn nobody_hands_out_what_they_do_not_have() {
    let client = Client::start().await;
    let issuer = make_space(&client, "a").await;
    let place = format!("/spaces/a/{RBAC}/namespaces/default");
    client.post(&format!("{place}/rolebindings"), &binding("joe", "ClusterRole", "admin", &to_user("joe"))).await;
    let joe = client.acting_as(&user("joe", &[], issuer));
    assert_eq!(joe.post(&format!("{place}/roles"), &role("a", "secrets", &["get"])).await.0, 201);
    let (code, refusal) = joe.post(&format!("{place}/roles"), &role("b", "nodes", &["get"])).await;
    let message = "roles.rbac.authorization.k8s.io \"b\" is forbidden: user \"joe\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\"]}";
    assert_eq!((code, &refusal["message"]), (403, &json!(message)));
    assert_eq!(joe.put(&format!("{place}/roles/a"), &role("a", "nodes", &["get"])).await.0, 403);
    let granted = binding("b", "ClusterRole", "view", &to_user("ann"));
    assert_eq!(joe.post(&format!("{place}/rolebindings"), &granted).await.0, 201);
    let too_much = binding("c", "ClusterRole", "cluster-admin", &to_user("joe"));
    assert_eq!(joe.post(&format!("{place}/rolebindings"), &too_much).await.0, 403);
    let missing = binding("d", "ClusterRole", "missing", &to_user("joe"));
    assert_eq!(joe.post(&format!("{place}/rolebindings"), &missing).await.0, 404);
}

#[tokio::test]
async fn whoever_acts_as_another_needs_the_right_to() {
    let client = Client::start().await;
    let issuer = make_space(&client, "a").await;
    let path = "/spaces/a/api/v1/namespaces/default/pods";
    let joe = client.acting_as(&user("joe", &[], issuer));
    let (code, refusal) = joe.with_header("Impersonate-User", "ann").get(path).await;
    let message = "users \"ann\" is forbidden: User \"joe\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
    assert_eq!((code, &refusal["message"]), (403, &json!(message)));
    let impersonator = json!({"metadata": {"name": "i"}, "rules": [{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["ann"]}]});
    client.post(&format!("/spaces/a/{RBAC}/clusterroles"), &impersonator).await;
    client
        .post(&format!("/spaces/a/{RBAC}/clusterrolebindings"), &binding("i", "ClusterRole", "i", &to_user("joe")))
        .await;
    client
        .post(&format!("/spaces/a/{RBAC}/clusterrolebindings"), &binding("v", "ClusterRole", "view", &to_user("ann")))
        .await;
    assert_eq!(joe.get(path).await.0, 403);
    assert_eq!(joe.with_header("Impersonate-User", "ann").get(path).await.0, 200);
    assert_eq!(joe.with_header("Impersonate-User", "bob").get(path).await.0, 403);
    let groups = joe.with_header("Impersonate-User", "ann").with_header("Impersonate-Group", "system:masters");
    assert_eq!(groups.get(path).await.0, 403, "a group needs a right of its own");
}

#[tokio::test]
async fn readiness_tells_what_failed_to_all_and_why_to_those_who_may_know() {
    let store = Store::memory(orrery_store::Config::default()).unwrap();
    let client = Client::over(store.clone(), Config::default()).await;
    let nobody = client.acting_as(&User::anonymous());
    let ask = async |client: &Client, path: &str| {
        let (code, kind, body) = client.raw(http::Method::GET, path, "", Vec::new()).await;
        let text = String::from_utf8(body).unwrap();
        assert!(code == 403 || kind == "text/plain; charset=utf-8", "{path}: {kind}: {text}");
        (code, text)
    };
    let ok = || (200, "ok".to_owned());
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(ask(&nobody, path).await, ok());
    }
    let verbose = "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n\
                   warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n";
    assert_eq!(ask(&nobody, "/livez?verbose&exclude=b&exclude=etcd&exclude=a").await, (200, verbose.to_owned()));
    assert_eq!(ask(&client, "/livez/informer-sync").await.0, 404);
    assert_eq!(ask(&client, "/readyz/informer-sync").await, ok());

    client.stop();
    assert_eq!(
        ask(&client, "/readyz/shutdown").await,
        (500, "internal server error: process is shutting down\n".to_owned())
    );
    assert_eq!(ask(&nobody, "/livez").await, ok());
    store.close().await;
    let failed = "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\n\
                  [+]informer-sync ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n";
    assert_eq!(ask(&nobody, "/readyz").await, (500, failed.to_owned()));
    assert_eq!(ask(&nobody, "/readyz/etcd").await.0, 403);
    let why = "internal server error: store stopped: it was closed\n";
    assert_eq!(ask(&client, "/healthz/etcd").await, (500, why.to_owned()));
    assert_eq!(ask(&nobody, "/livez?exclude=etcd").await, ok());
}
