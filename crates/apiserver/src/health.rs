//! Whether the server lives and can be used: `/livez`, `/readyz`, `/healthz`, and each of their checks.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Response;

use crate::{answer, body::Body, gotext, request::Query, server::Shared, status::Status};

/// What the server knows of itself.
#[derive(Default)]
pub(crate) struct Health {
    stopping: AtomicBool,
}

impl Health {
    /// From now on the server is not ready.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }
}

/// What is looked at, in order, and whether only readiness depends on it. What no part of this server stands behind is there
/// because clients ask for it.
const CHECKS: [(&str, bool); 6] = [
    ("ping", false),
    ("log", false),
    (STORE, false),
    (STORE_READINESS, true),
    ("informer-sync", true),
    (SHUTDOWN, true),
];
/// Whichever store it is: monitoring knows it by this name.
const STORE: &str = "etcd";
const STORE_READINESS: &str = "etcd-readiness";
const SHUTDOWN: &str = "shutdown";

/// What was found of one check.
enum Finding {
    Well,
    /// It was not looked at.
    Excluded,
    Failed(String),
}

/// Answers for one of the three addresses, or for one check below it.
pub(crate) async fn answer(
    shared: &Shared,
    kind: &str,
    check: &[&str],
    query: &Query,
) -> Result<Response<Body>, Status> {
    let names = CHECKS.iter().filter(|(_, readiness)| !readiness || kind == "readyz").map(|(name, _)| *name);
    if check.is_empty() {
        let mut excluded: Vec<&str> = query.all("exclude").collect();
        let wanted = |name: &str| !excluded.contains(&name);
        let names: Vec<&str> = names.collect();
        let store = match names.iter().any(|name| is_of_store(name) && wanted(name)) {
            true => store(shared).await,
            false => Ok(()),
        };
        let finding = |name: &str| if wanted(name) { found(shared, name, &store) } else { Finding::Excluded };
        let findings: Vec<(&str, Finding)> = names.iter().map(|name| (*name, finding(name))).collect();
        for (check, finding) in &findings {
            if let Finding::Failed(why) = finding {
                tracing::warn!(check, why, "{kind} check failed");
            }
        }
        excluded.retain(|name| !names.contains(name));
        return Ok(summary(kind, &findings, excluded, query.get("verbose").is_some()));
    }
    let path = check.join("/");
    let name = names.into_iter().find(|name| *name == path).ok_or_else(Status::no_such_page)?;
    let store = if is_of_store(name) { store(shared).await } else { Ok(()) };
    Ok(match found(shared, name, &store) {
        // Roles give this address to those who may know.
        Finding::Failed(why) => text(500, format!("internal server error: {why}\n")),
        Finding::Well | Finding::Excluded => text(200, "ok".to_owned()),
    })
}

fn is_of_store(name: &str) -> bool {
    matches!(name, STORE | STORE_READINESS)
}

fn found(shared: &Shared, name: &str, store: &Result<(), String>) -> Finding {
    match name {
        SHUTDOWN if shared.health.stopping.load(Ordering::Acquire) => {
            Finding::Failed("process is shutting down".to_owned())
        }
        name if is_of_store(name) => match store {
            Ok(()) => Finding::Well,
            Err(why) => Finding::Failed(why.clone()),
        },
        _ => Finding::Well,
    }
}

/// Whether the store can tell what is newest, within a moment.
async fn store(shared: &Shared) -> Result<(), String> {
    let patience = shared.config.health_timeout;
    match tokio::time::timeout(patience, shared.store.catch_up()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("the store did not answer within {patience:?}")),
    }
}

/// All checks as an answer. Anybody may see it, so that it tells what failed but not why.
fn summary(kind: &str, findings: &[(&str, Finding)], mut unknown: Vec<&str>, verbose: bool) -> Response<Body> {
    let line = |(name, finding): &(&str, Finding)| match finding {
        Finding::Well => format!("[+]{name} ok\n"),
        Finding::Excluded => format!("[+]{name} excluded: ok\n"),
        Finding::Failed(_) => format!("[-]{name} failed: reason withheld\n"),
    };
    let mut lines: String = findings.iter().map(line).collect();
    if !unknown.is_empty() {
        unknown.sort_unstable();
        unknown.dedup();
        let names: Vec<String> = unknown.into_iter().map(gotext::quote).collect();
        lines += &format!("warn: some health checks cannot be excluded: no matches for {}\n", names.join(","));
    }
    if findings.iter().any(|(_, finding)| matches!(finding, Finding::Failed(_))) {
        return text(500, format!("{lines}{kind} check failed\n"));
    }
    text(200, if verbose { format!("{lines}{kind} check passed\n") } else { "ok".to_owned() })
}

fn text(code: u16, text: String) -> Response<Body> {
    answer::respond(code, "text/plain; charset=utf-8", Body::whole(text))
}
