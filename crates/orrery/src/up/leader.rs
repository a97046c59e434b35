//! One hub of an installation runs the controllers: the one that holds a Lease in the management space.
//!
//! # Flow
//!
//! Every hub looks at the Lease every two seconds. The holder writes it anew. The others watch it change; when it has not
//! changed for its whole duration, by their own clock since they last saw it change, one of them takes it. Who stops in
//! order gives it back, so that nobody waits.
//!
//! # Guarantees
//!
//! - A hub that could not write the Lease for [`DEADLINE`] stops its controllers, before another may take over.
//! - Clocks of different hubs are never compared.

use std::{sync::Arc, time::Duration};

use http::Method;
use jiff::Timestamp;
use orrery_apiserver::{Controllers, Server, identity::User};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Clock;
use crate::{
    authority::Authorities,
    client::{Client, refused_with},
};

/// How long a Lease counts after it was last written.
const DURATION: Duration = Duration::from_secs(15);
/// How long a holder goes on when it cannot write the Lease.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often to look.
const INTERVAL: Duration = Duration::from_secs(2);

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const NAME: &str = "orrery-controllers";

/// A hub that runs the controllers whenever it holds the Lease.
pub(super) struct Candidate {
    server: Server,
    client: Client,
    clock: Clock,
    /// Controllers tell every namespace of them when they start.
    authorities: watch::Receiver<Arc<Authorities>>,
    /// Who this hub is among those of the installation.
    identity: String,
    /// What the Lease last said, and since when.
    seen: Option<(Value, Instant)>,
    leads: watch::Sender<bool>,
}

impl Candidate {
    /// A hub that does not lead yet.
    pub(super) fn new(
        server: Server,
        clock: Clock,
        authorities: watch::Receiver<Arc<Authorities>>,
        leads: watch::Sender<bool>,
    ) -> anyhow::Result<Self> {
        let client = Client::in_process(server.service(), User::admin());
        Ok(Self { server, client, clock, authorities, identity: identity()?, seen: None, leads })
    }

    /// Runs the controllers until told to stop, for whoever is the only hub.
    pub(super) async fn run_alone(mut self, stop: CancellationToken) {
        self.leads.send_replace(true);
        loop {
            let _controllers = self.server.start_controllers();
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed(&mut self.authorities) => {}
            }
        }
    }

    /// Runs the controllers whenever this hub leads, until told to stop.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut controllers: Option<Controllers> = None;
        let mut renewed = Instant::now();
        loop {
            let started = Instant::now();
            // An attempt that takes longer than the deadline is of no use: others may have taken over before its answer.
            match timeout(DEADLINE.saturating_sub(renewed.elapsed()).max(INTERVAL), self.attempt()).await {
                Ok(Ok(true)) => {
                    renewed = started;
                    if controllers.is_none() {
                        tracing::info!(identity = self.identity, "this hub runs the controllers now");
                        controllers = Some(self.server.start_controllers());
                    }
                }
                Ok(Ok(false)) => renewed = started.checked_sub(DEADLINE).unwrap_or(started),
                Ok(Err(error)) => tracing::warn!("the Lease of the controllers cannot be written: {error:#}"),
                Err(_) => tracing::warn!("the Lease of the controllers cannot be written in time"),
            }
            if controllers.is_some() && renewed.elapsed() >= DEADLINE {
                tracing::warn!(identity = self.identity, "this hub does not run the controllers any more");
                controllers = None;
            }
            self.leads.send_replace(controllers.is_some());
            tokio::select! {
                () = stop.cancelled() => break,
                () = changed(&mut self.authorities) => controllers = controllers.map(|_| self.server.start_controllers()),
                () = sleep(INTERVAL) => {}
            }
        }
        if controllers.take().is_some()
            && let Ok(Err(error)) = timeout(INTERVAL, self.release()).await
        {
            tracing::warn!("the Lease of the controllers cannot be given back: {error:#}");
        }
        self.leads.send_replace(false);
    }

    /// Takes the Lease or writes it anew, if it may be. Says whether this hub holds it.
    async fn attempt(&mut self) -> anyhow::Result<bool> {
        let existing = self.client.get_opt(&format!("{LEASES}/{NAME}")).await?;
        let (now, time) = (Instant::now(), (self.clock)());
        let waited = existing.as_ref().map(|lease| self.unchanged_for(lease, now));
        let Some(wanted) = next(existing, &self.identity, waited.unwrap_or_default(), time) else { return Ok(false) };
        match self.write(&wanted).await {
            Ok(written) => {
                self.seen = Some((written, now));
                Ok(true)
            }
            // Another hub was faster.
            Err(error) if refused_with(&error, 409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// For how long this hub has seen the Lease say the same.
    fn unchanged_for(&mut self, lease: &Value, now: Instant) -> Duration {
        match &self.seen {
            Some((seen, since)) if seen["spec"] == lease["spec"] => now.duration_since(*since),
            _ => {
                self.seen = Some((lease.clone(), now));
                Duration::ZERO
            }
        }
    }

    async fn write(&mut self, lease: &Value) -> anyhow::Result<Value> {
        match lease["metadata"].get("resourceVersion") {
            Some(_) => self.client.send(Method::PUT, &format!("{LEASES}/{NAME}"), Some(lease)).await,
            None => self.client.send(Method::POST, LEASES, Some(lease)).await,
        }
    }

    /// Gives the Lease back, if this hub holds it.
    async fn release(&mut self) -> anyhow::Result<()> {
        let Some(mut lease) = self.client.get_opt(&format!("{LEASES}/{NAME}")).await? else { return Ok(()) };
        if lease["spec"]["holderIdentity"] == *self.identity {
            lease["spec"]["holderIdentity"] = json!("");
            lease["spec"]["leaseDurationSeconds"] = json!(1);
            self.write(&lease).await?;
        }
        Ok(())
    }
}

/// Waits for other authorities. When nobody is left to change them, they stay.
async fn changed(authorities: &mut watch::Receiver<Arc<Authorities>>) {
    if authorities.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A name for this hub that no other hub of the installation has, nor this one when it is started again.
fn identity() -> anyhow::Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(format!("{machine}_{:08x}", u32::from_le_bytes(random)))
}

/// What the Lease should say next if this hub may hold it; `None` if another holds it.
fn next(existing: Option<Value>, identity: &str, unchanged_for: Duration, now: Timestamp) -> Option<Value> {
    let time = format!("{now:.6}");
    let mut lease = existing.unwrap_or_else(|| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME, "namespace": "kube-system"}, "spec": {}})
    });
    let spec = &mut lease["spec"];
    let holder = spec["holderIdentity"].as_str().unwrap_or_default().to_owned();
    if holder != identity {
        let duration = Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default());
        if !holder.is_empty() && unchanged_for < duration {
            return None;
        }
        let transitions = spec["leaseTransitions"].as_u64().map_or(0, |count| count + 1);
        spec["leaseTransitions"] = json!(transitions);
        spec["holderIdentity"] = json!(identity);
        spec["acquireTime"] = json!(time);
    }
    spec["leaseDurationSeconds"] = json!(DURATION.as_secs());
    spec["renewTime"] = json!(time);
    Some(lease)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-16T05:00:00Z".parse().unwrap()
    }

    fn held_by(holder: &str) -> Value {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3, "renewTime": "x", "acquireTime": "y"});
        json!({"metadata": {"resourceVersion": "7"}, "spec": spec})
    }

    #[test]
    fn a_lease_that_nobody_holds_is_taken() {
        let first = next(None, "me", Duration::ZERO, now()).unwrap();
        let expected = json!({
            "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-11-16T05:00:00.000000Z", "renewTime": "2026-11-16T05:00:00.000000Z",
        });
        assert_eq!(first["spec"], expected);
        let given_back = next(Some(held_by("")), "me", Duration::ZERO, now()).unwrap();
        assert_eq!(
            (&given_back["spec"]["holderIdentity"], &given_back["spec"]["leaseTransitions"]),
            (&json!("me"), &json!(4))
        );
    }

    #[test]
    fn a_lease_that_another_holds_is_taken_only_when_it_did_not_change_for_its_duration() {
        for (waited, taken) in [(0, false), (14_999, false), (15_000, true), (60_000, true)] {
            let next = next(Some(held_by("other")), "me", Duration::from_millis(waited), now());
            assert_eq!(next.is_some(), taken, "{waited} ms");
            assert!(next.is_none_or(|lease| lease["metadata"]["resourceVersion"] == "7"));
        }
    }

    #[test]
    fn who_holds_the_lease_writes_it_anew() {
        let again = next(Some(held_by("me")), "me", Duration::ZERO, now()).unwrap();
        let expected = json!({
            "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": "y", "renewTime": "2026-11-16T05:00:00.000000Z",
        });
        assert_eq!(again["spec"], expected);
    }
}
