//! The row of a pod: how far it is, in one word.

use serde_json::Value;

use super::view::{View, human};

/// The cells of a pod.
pub(super) fn pod(pod: &View<'_>) -> Option<Vec<Value>> {
    let progress = Progress::of(pod);
    let mut reason = progress.reason;
    if pod.at("/metadata/deletionTimestamp").is_some() {
        if pod.text("/status/reason") == "NodeLost" {
            reason = "Unknown".to_owned();
        } else if !matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
            reason = "Terminating".to_owned();
        }
    }
    let restarts = match progress.last_restart {
        Some(ago) if progress.restarts != 0 => format!("{} ({} ago)", progress.restarts, human(ago)),
        _ => progress.restarts.to_string(),
    };
    let gates = pod.list("/spec/readinessGates").len();
    let open = pod
        .views("/spec/readinessGates")
        .filter(|gate| {
            let condition = pod.condition("/status/conditions", gate.text("/conditionType"));
            condition.is_some_and(|condition| condition.text("/status") == "True")
        })
        .count();
    Some(vec![
        pod.name(),
        format!("{}/{}", progress.ready, progress.total).into(),
        reason.into(),
        restarts.into(),
        pod.age(),
        pod.text_or("/status/podIPs/0/ip", "<none>").into(),
        pod.text_or("/spec/nodeName", "<none>").into(),
        pod.text_or("/status/nominatedNodeName", "<none>").into(),
        if gates == 0 { "<none>".into() } else { format!("{open}/{gates}").into() },
    ])
}

/// What the containers of a pod say together.
struct Progress {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    /// Seconds since the last restart.
    last_restart: Option<i64>,
}

impl Progress {
    fn of(pod: &View<'_>) -> Self {
        let beside = |name: &str| {
            pod.views("/spec/initContainers")
                .any(|init| init.text("/name") == name && init.text("/restartPolicy") == "Always")
        };
        let restartable =
            pod.views("/spec/initContainers").filter(|init| init.text("/restartPolicy") == "Always").count();
        let mut reason = pod.text_or("/status/reason", pod.text("/status/phase")).to_owned();
        if let Some(scheduled) = pod.condition("/status/conditions", "PodScheduled")
            && scheduled.text("/reason") == "SchedulingGated"
        {
            reason = "SchedulingGated".to_owned();
        }
        let mut progress = Self {
            reason,
            ready: 0,
            total: pod.list("/spec/containers").len() + restartable,
            restarts: 0,
            last_restart: None,
        };
        let mut sidecars = Self { reason: String::new(), ready: 0, total: 0, restarts: 0, last_restart: None };
        let mut initializing = false;
        for (at, container) in pod.views("/status/initContainerStatuses").enumerate() {
            progress.restarted(&container);
            let is_beside = beside(container.text("/name"));
            if is_beside {
                sidecars.restarted(&container);
            }
            if container.at("/state/terminated").is_some() && container.number("/state/terminated/exitCode") == 0 {
                continue;
            }
            if is_beside && container.truth_or("/started", false) {
                progress.ready += usize::from(container.truth_or("/ready", false));
                continue;
            }
            progress.reason = init_reason(&container, at, pod.list("/spec/initContainers").len());
            initializing = true;
            break;
        }
        let initialized = pod
            .condition("/status/conditions", "Initialized")
            .is_some_and(|condition| condition.text("/status") == "True");
        if !initializing || initialized {
            progress.restarts = sidecars.restarts;
            progress.last_restart = sidecars.last_restart;
            progress.running(pod);
        }
        progress
    }

    fn running(&mut self, pod: &View<'_>) {
        let mut has_running = false;
        for container in pod.views("/status/containerStatuses").rev() {
            self.restarted(&container);
            if !container.text("/state/waiting/reason").is_empty() {
                self.reason = container.text("/state/waiting/reason").to_owned();
            } else if container.at("/state/terminated").is_some() {
                self.reason = ended(&container);
            } else if container.truth_or("/ready", false) && container.at("/state/running").is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && has_running {
            let ready = pod
                .condition("/status/conditions", "Ready")
                .is_some_and(|condition| condition.text("/status") == "True");
            self.reason = if ready { "Running" } else { "NotReady" }.to_owned();
        }
    }

    fn restarted(&mut self, container: &View<'_>) {
        self.restarts += container.number("/restartCount");
        if container.seconds("/lastState/terminated/finishedAt").is_some() {
            let ago = container.elapsed("/lastState/terminated/finishedAt");
            self.last_restart = Some(self.last_restart.map_or(ago, |last| last.min(ago)));
        }
    }
}

fn ended(container: &View<'_>) -> String {
    let reason = container.text("/state/terminated/reason");
    let signal = container.number("/state/terminated/signal");
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", container.number("/state/terminated/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn init_reason(container: &View<'_>, at: usize, all: usize) -> String {
    if container.at("/state/terminated").is_some() {
        return format!("Init:{}", ended(container));
    }
    match container.text("/state/waiting/reason") {
        "" | "PodInitializing" => format!("Init:{at}/{all}"),
        reason => format!("Init:{reason}"),
    }
}
