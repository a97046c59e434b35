//! Signs the certificates of clients for the API, with the installation's authority.

use std::sync::Arc;

use jiff::SignedDuration;
use orrery_apiserver::{Credential, Signer, SigningRequest};
use tokio::sync::watch;

use super::Clock;
use crate::authority::{Authorities, Subject, expiry};

/// What signs, and what clients are told besides.
pub(super) struct HubSigner {
    pub(super) authorities: watch::Receiver<Arc<Authorities>>,
    pub(super) clock: Clock,
    pub(super) server: String,
    pub(super) in_cluster_server: String,
}

impl Signer for HubSigner {
    fn sign(&self, request: &SigningRequest) -> Result<Credential, String> {
        let authorities = self.authorities.borrow().clone();
        let subject =
            Subject { name: request.username.clone(), groups: request.groups.clone(), place: request.place.clone() };
        let lifetime = SignedDuration::from_secs(request.seconds);
        let signed = authorities.sign_client(&request.request, &subject, lifetime, (self.clock)());
        let certificate = signed.map_err(|error| format!("{error:#}"))?;
        Ok(Credential {
            expires: expiry(&certificate).map_err(|error| format!("{error:#}"))?,
            certificate,
            authority: authorities.bundle(),
            server: self.server.clone(),
            in_cluster_server: self.in_cluster_server.clone(),
        })
    }
}
