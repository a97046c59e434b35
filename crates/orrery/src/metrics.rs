//! What `/metrics` shows, as Prometheus reads it. Labels name verbs, resources and codes, never spaces, objects or what was
//! defined in a space: the number of series is bounded by the number of kinds in the program.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use orrery_apiserver::About;
use orrery_store::Stats;

/// Upper bounds of the buckets of latencies, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Counts requests.
#[derive(Default)]
pub(crate) struct Requests {
    series: Mutex<BTreeMap<Labels, Series>>,
}

/// The group and resource under which all count that were defined in some space: anybody can define any number.
const DEFINED: &str = "custom";

/// What a request was about. Requests outside the resources have a verb alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    verb: &'static str,
    group: String,
    resource: String,
    subresource: String,
}

#[derive(Default)]
struct Series {
    codes: BTreeMap<u16, u64>,
    /// How many took at most as long as the bound of the same place says, and longer than the bound before.
    buckets: [u64; BUCKETS.len()],
    seconds: f64,
}

impl Requests {
    /// Counts a request that was answered.
    pub(crate) fn count(&self, method: &http::Method, about: Option<&About>, code: u16, took: Duration) {
        let labels = match about {
            Some(about) => {
                let (group, resource) = match &about.resource {
                    Some(resource) => (resource.group.clone(), resource.plural.clone()),
                    None => (DEFINED.to_owned(), DEFINED.to_owned()),
                };
                Labels { verb: about.verb, group, resource, subresource: about.subresource.clone().unwrap_or_default() }
            }
            None => Labels { verb: method_name(method), ..Labels::default() },
        };
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let series = all.entry(labels).or_default();
        *series.codes.entry(code).or_default() += 1;
        series.seconds += took.as_secs_f64();
        if let Some(bucket) = BUCKETS.iter().position(|bound| took.as_secs_f64() <= *bound) {
            series.buckets[bucket] += 1;
        }
    }

    fn write(&self, out: &mut Text) {
        let all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        out.begin("apiserver_request_total", "counter", "Requests by verb, resource and HTTP code.");
        for (labels, series) in all.iter() {
            for (code, count) in &series.codes {
                out.line("apiserver_request_total", &format!("{},code=\"{code}\"", labels.text()), *count);
            }
        }
        let name = "apiserver_request_duration_seconds";
        out.begin(name, "histogram", "Time until an answer began, by verb and resource.");
        for (labels, series) in all.iter() {
            let labels = labels.text();
            let mut counted = 0;
            for (bound, count) in BUCKETS.iter().zip(series.buckets) {
                counted += count;
                out.line(&format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), counted);
            }
            let total: u64 = series.codes.values().sum();
            out.line(&format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), total);
            out.line(&format!("{name}_sum"), &labels, series.seconds);
            out.line(&format!("{name}_count"), &labels, total);
        }
    }
}

impl Labels {
    fn text(&self) -> String {
        let Self { verb, group, resource, subresource } = self;
        format!("verb=\"{verb}\",group=\"{group}\",resource=\"{resource}\",subresource=\"{subresource}\"")
    }
}

/// Anybody can send any method: those that nobody uses count together.
fn method_name(method: &http::Method) -> &'static str {
    match *method {
        http::Method::GET => "get",
        http::Method::POST => "post",
        http::Method::PUT => "put",
        http::Method::PATCH => "patch",
        http::Method::DELETE => "delete",
        http::Method::HEAD => "head",
        http::Method::OPTIONS => "options",
        _ => "other",
    }
}

/// What one name shows, for each set of labels.
pub(crate) struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    values: Vec<(String, u64)>,
}

impl Metric {
    /// A number that goes up and down.
    pub(crate) fn gauge(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, kind: "gauge", help, values: vec![(String::new(), value)] }
    }

    /// A number that only grows.
    pub(crate) fn counter(name: &'static str, help: &'static str, value: u64) -> Self {
        Self::counters(name, help, vec![(String::new(), value)])
    }

    /// Numbers that only grow, by their labels.
    pub(crate) fn counters(name: &'static str, help: &'static str, values: Vec<(String, u64)>) -> Self {
        Self { name, kind: "counter", help, values }
    }
}

/// What a running hub knows of itself.
pub(crate) struct Snapshot<'a> {
    pub(crate) requests: &'a Requests,
    pub(crate) store: Stats,
    /// When certificates end, in seconds since 1970, by what they are for.
    pub(crate) expiries: Vec<(&'static str, i64)>,
    /// Whether this hub runs the controllers.
    pub(crate) leads: bool,
    /// What further parts know of themselves.
    pub(crate) further: Vec<Metric>,
}

impl Snapshot<'_> {
    /// All of it, as Prometheus reads it.
    pub(crate) fn to_text(&self) -> String {
        let mut out = Text(String::new());
        self.requests.write(&mut out);
        let store = &self.store;
        let gauges: [(&str, &str, u64); 6] = [
            ("orrery_store_objects", "Objects in the store.", store.objects as u64),
            ("orrery_store_revision", "The newest revision.", store.revision.get()),
            ("orrery_store_oldest_revision", "The oldest revision that can be read.", store.oldest_revision.get()),
            ("orrery_store_history_events", "Changes in the history.", store.history_events as u64),
            ("orrery_store_history_bytes", "Bytes of values in the history.", store.history_bytes as u64),
            ("orrery_store_watchers", "Watches under way, those of controllers included.", store.watchers as u64),
        ];
        for (name, help, value) in gauges {
            out.single(name, "gauge", help, value);
        }
        let counters: [(&str, &str, u64); 8] = [
            ("orrery_store_commits_total", "Batches committed.", store.commits),
            ("orrery_store_conflicts_total", "Batches refused because a key had changed.", store.conflicts),
            ("orrery_store_changes_total", "Changes made visible, those of other hubs included.", store.changes),
            ("orrery_store_delivered_total", "Changes handed to watches.", store.delivered),
            ("orrery_store_syncs_total", "Times the disk was asked to make writes durable.", store.syncs),
            ("orrery_store_written_bytes_total", "Bytes written to the log.", store.written_bytes),
            ("orrery_store_snapshots_total", "Snapshots written.", store.snapshots),
            ("orrery_store_reconnects_total", "Lost connections to etcd that were made anew.", store.reconnects),
        ];
        for (name, help, value) in counters {
            out.single(name, "counter", help, value);
        }
        let name = "orrery_certificate_expiry_seconds";
        out.begin(name, "gauge", "When a certificate ends, in seconds since 1970.");
        for (certificate, seconds) in &self.expiries {
            out.line(name, &format!("certificate=\"{certificate}\""), seconds);
        }
        out.single(
            "orrery_controllers_leading",
            "gauge",
            "Whether this hub runs the controllers.",
            u8::from(self.leads),
        );
        for Metric { name, kind, help, values } in &self.further {
            out.begin(name, kind, help);
            for (labels, value) in values {
                out.line(name, labels, value);
            }
        }
        if let Some(bytes) = resident_bytes() {
            out.single("process_resident_memory_bytes", "gauge", "Memory in use.", bytes);
        }
        out.0
    }
}

/// The memory that the system counts for this process, where it tells.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Text as Prometheus reads it.
struct Text(String);

impl Text {
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.begin(name, kind, help);
        self.line(name, "", value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_are_about() {
        let requests = Requests::default();
        let unusual = http::Method::from_bytes(b"BREW").unwrap();
        for (method, code, milliseconds) in [
            (http::Method::GET, 200, 1),
            (http::Method::GET, 200, 40),
            (http::Method::GET, 404, 60_000),
            (unusual, 405, 1),
        ] {
            requests.count(&method, None, code, Duration::from_millis(milliseconds));
        }
        let mut out = Text(String::new());
        requests.write(&mut out);
        let labels = r#"verb="get",group="",resource="",subresource="""#;
        for line in [
            format!(r#"apiserver_request_total{{{labels},code="200"}} 2"#),
            format!(r#"apiserver_request_total{{{labels},code="404"}} 1"#),
            format!(r#"apiserver_request_duration_seconds_bucket{{{labels},le="0.001"}} 1"#),
            format!(r#"apiserver_request_duration_seconds_bucket{{{labels},le="0.05"}} 2"#),
            format!(r#"apiserver_request_duration_seconds_bucket{{{labels},le="30"}} 2"#),
            format!(r#"apiserver_request_duration_seconds_bucket{{{labels},le="+Inf"}} 3"#),
            format!("apiserver_request_duration_seconds_sum{{{labels}}} 60.041"),
            format!("apiserver_request_duration_seconds_count{{{labels}}} 3"),
            r#"apiserver_request_total{verb="other",group="",resource="",subresource="",code="405"} 1"#.to_owned(),
        ] {
            assert!(out.0.lines().any(|found| found == line), "{line} is not in\n{}", out.0);
        }
    }
}
