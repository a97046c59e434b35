//! The certificates of a running hub: made when it starts, made anew before they end, without a restart.

use std::{path::Path, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use jiff::Timestamp;
use orrery_store::Store;
use rustls::ServerConfig;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Clock, Config, tls};
use crate::{
    authority::{Authorities, Issued, Subject, is_due},
    kubeconfig::{Entry, Kubeconfig},
};

/// The name under which the admin's access stands in a kubeconfig.
pub(crate) const ENTRY: &str = "orrery";

/// The certificates of a running hub, and who is told of new ones.
pub(super) struct Credentials {
    store: Store,
    clock: Clock,
    interval: Duration,
    names: Vec<String>,
    server: String,
    kubeconfig: PathBuf,
    serving: Issued,
    admin_expires: Timestamp,
    authorities: watch::Sender<Arc<Authorities>>,
    tls: watch::Sender<Arc<ServerConfig>>,
    expiries: watch::Sender<Vec<(&'static str, i64)>>,
}

impl Credentials {
    /// Makes what a hub needs: the authorities if there are none, a serving certificate, the admin kubeconfig.
    pub(super) async fn make(
        config: &Config,
        store: &Store,
        names: Vec<String>,
        server: &str,
        kubeconfig: &Path,
    ) -> anyhow::Result<Self> {
        let now = (config.clock)();
        let authorities = Arc::new(Authorities::open(store, now).await?);
        let serving = authorities.issue_serving(&names, now).context("cannot make the serving certificate")?;
        let tls = watch::Sender::new(tls::server_config(&authorities, &serving)?);
        let mut credentials = Self {
            store: store.clone(),
            clock: config.clock.clone(),
            interval: config.renewal_interval,
            names,
            server: server.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            serving,
            admin_expires: now,
            authorities: watch::Sender::new(authorities),
            tls,
            expiries: watch::Sender::default(),
        };
        credentials.write_kubeconfig(now)?;
        credentials.tell_expiries();
        Ok(credentials)
    }

    /// Who signs for this installation, now and later.
    pub(super) fn authorities(&self) -> watch::Receiver<Arc<Authorities>> {
        self.authorities.subscribe()
    }

    /// How connections are greeted, now and later.
    pub(super) fn tls(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.tls.subscribe()
    }

    /// When certificates end, in seconds since 1970, by what they are for.
    pub(super) fn expiries(&self) -> watch::Receiver<Vec<(&'static str, i64)>> {
        self.expiries.subscribe()
    }

    fn tell_expiries(&self) {
        let authority = self.authorities.borrow().expires();
        let all = [("authority", authority), ("serving", self.serving.expires), ("admin", self.admin_expires)];
        self.expiries.send_replace(all.map(|(name, time)| (name, time.as_second())).into());
    }

    /// Makes anew what is due, until told to stop.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.interval) => {}
            }
            let now = (self.clock)();
            if let Err(error) = self.renew(now).await {
                tracing::warn!("certificates cannot be made anew, they will be tried again: {error:#}");
            }
        }
    }

    /// Makes anew what is due at a time.
    async fn renew(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let authorities = Arc::new(Authorities::open(&self.store, now).await?);
        let changed = authorities.bundle() != self.authorities.borrow().bundle();
        if changed {
            self.authorities.send_replace(authorities.clone());
        }
        let due = is_due(self.serving.expires, now);
        if due {
            self.serving = authorities.issue_serving(&self.names, now)?;
            tracing::info!(until = day(self.serving.expires), "the serving certificate was made anew");
        }
        if due || changed {
            self.tls.send_replace(tls::server_config(&authorities, &self.serving)?);
        }
        if changed || is_due(self.admin_expires, now) {
            self.write_kubeconfig(now)?;
            tracing::info!(path = %self.kubeconfig.display(), "the admin kubeconfig was written anew");
        }
        self.tell_expiries();
        Ok(())
    }

    /// Writes the admin's access into the kubeconfig. What else is in the file stays.
    fn write_kubeconfig(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let authorities = self.authorities.borrow().clone();
        let issued = authorities.issue_client(&Subject::admin(), now)?;
        let mut kubeconfig = Kubeconfig::read(&self.kubeconfig)?;
        kubeconfig.set_entry(
            ENTRY,
            &Entry {
                server: &self.server,
                authority: &authorities.bundle(),
                certificate: &issued.certificate,
                key: &issued.key,
            },
        );
        kubeconfig.write(&self.kubeconfig)?;
        self.admin_expires = issued.expires;
        Ok(())
    }
}

/// The day of a time.
pub(super) fn day(time: Timestamp) -> String {
    time.to_string().chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::SignedDuration;
    use serde_json::Value;

    use super::*;
    use crate::authority::expiry;

    fn day(number: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap() + SignedDuration::from_hours(24 * number)
    }

    struct Hub {
        credentials: Credentials,
        _directory: tempfile::TempDir,
    }

    /// The credentials of a hub that was started on day 0.
    async fn started() -> Hub {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { clock: Arc::new(|| day(0)), ..Config::new(directory.path()) };
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let (names, kubeconfig) = (vec!["localhost".to_owned()], directory.path().join("admin.kubeconfig"));
        let made = Credentials::make(&config, &store, names, "https://localhost:6443", &kubeconfig).await;
        Hub { credentials: made.unwrap(), _directory: directory }
    }

    /// What the kubeconfig holds, decoded.
    fn in_kubeconfig(credentials: &Credentials, of: fn(&Kubeconfig) -> Option<&Value>, field: &str) -> String {
        let kubeconfig = Kubeconfig::read(&credentials.kubeconfig).unwrap();
        let data = of(&kubeconfig).unwrap()[field].as_str().unwrap().to_owned();
        let decoded = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
        String::from_utf8(decoded).unwrap()
    }

    fn admin_expiry(credentials: &Credentials) -> Timestamp {
        expiry(&in_kubeconfig(credentials, |file| file.user(ENTRY), "client-certificate-data")).unwrap()
    }

    #[tokio::test]
    async fn certificates_are_made_anew_before_they_end_and_not_earlier() {
        let Hub { mut credentials, _directory } = started().await;
        let (mut tls, written) = (credentials.tls(), fs::read(&credentials.kubeconfig).unwrap());
        credentials.renew(day(200)).await.unwrap();
        assert!(!tls.has_changed().unwrap());
        assert_eq!(fs::read(&credentials.kubeconfig).unwrap(), written);
        assert_eq!((credentials.serving.expires, admin_expiry(&credentials)), (day(365), day(365)));

        credentials.renew(day(250)).await.unwrap();
        assert!(tls.has_changed().unwrap());
        tls.mark_unchanged();
        assert_eq!((credentials.serving.expires, admin_expiry(&credentials)), (day(615), day(615)));
        let told = credentials.expiries().borrow().clone();
        let expected = [("authority", day(3650)), ("serving", day(615)), ("admin", day(615))];
        assert_eq!(told, expected.map(|(name, time)| (name, time.as_second())));
        credentials.renew(day(251)).await.unwrap();
        assert!(!tls.has_changed().unwrap());
    }

    #[tokio::test]
    async fn a_second_authority_is_told_to_everybody() {
        let Hub { mut credentials, _directory } = started().await;
        let first = credentials.authorities().borrow().bundle();
        credentials.renew(day(3000)).await.unwrap();
        let both = credentials.authorities().borrow().bundle();
        assert!(both.len() > first.len() && both.starts_with(&first));
        assert_eq!(in_kubeconfig(&credentials, |file| file.cluster(ENTRY), "certificate-authority-data"), both);
        // Another hub of the installation, which looks later, finds the same two.
        let other = Authorities::open(&credentials.store, day(3001)).await.unwrap();
        assert_eq!(other.bundle(), both);
    }

    #[tokio::test]
    async fn a_kubeconfig_that_was_damaged_meanwhile_is_left_alone() {
        let Hub { mut credentials, _directory } = started().await;
        fs::write(&credentials.kubeconfig, "{").unwrap();
        let refused = credentials.renew(day(250)).await.unwrap_err();
        assert!(format!("{refused:#}").contains("is not a kubeconfig"), "{refused:#}");
        assert_eq!(fs::read(&credentials.kubeconfig).unwrap(), b"{");
        // What clients connect with was made anew all the same.
        assert_eq!(credentials.serving.expires, day(615));
    }
}
