//! Kubernetes alone on a socket, and a kubeconfig for it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use azure_simulator::Azure;
use kubernetes_simulator::{CertificateAuthority, Fault, Kubernetes, ServeError, Token};
use serde_json::Value;
use stand_ins::Controllers;
use tokio_util::sync::CancellationToken;

use crate::client::client_of;
use crate::files::{HostError, Reader, certificates, kept_secret, write};
use crate::managed_clusters;

/// How long Events stay, as in clusters (`--event-ttl`).
const EVENT_TTL: Duration = Duration::from_secs(60 * 60);

/// How Kubernetes is served.
#[derive(Debug, Clone, Default)]
pub struct HostedKubernetesOptions {
    /// Source of every UID, address and port.
    pub seed: u64,
    /// The directory of the files; it keeps the certificate authority over restarts.
    pub directory: PathBuf,
    /// The port; 0 for any.
    pub port: u16,
    /// Whether Services can have IPv6 addresses beside IPv4 ones.
    pub dual_stack: bool,
    /// The bearer token of clients; if `None`, it is generated at the first start and kept in the directory.
    pub token: Option<Token>,
    /// The time at the start.
    pub now: jiff::Timestamp,
    /// The port of the control API, over plain HTTP; 0 for any.
    pub control_port: u16,
    /// Faults that are in force from the start.
    pub faults: Vec<Fault>,
    /// The initial state, from [`Kubernetes::save`].
    pub state: Option<Value>,
}

/// A served Kubernetes. It stops with the token that it was started with.
#[derive(Debug)]
pub struct HostedKubernetes {
    /// The simulated Kubernetes.
    pub kubernetes: Kubernetes,
    /// Its URL.
    pub url: String,
    /// The URL of the control API.
    pub control: String,
    /// The kubeconfig, which only its owner may read.
    pub kubeconfig: PathBuf,
    /// The text of the kubeconfig.
    pub kubeconfig_text: String,
}

impl HostedKubernetes {
    /// Opens the listener and writes the kubeconfig.
    ///
    /// # Errors
    /// The first step that fails.
    pub async fn start(
        options: HostedKubernetesOptions,
        stop: &CancellationToken,
    ) -> Result<Self, HostError> {
        let HostedKubernetesOptions {
            seed,
            directory,
            port,
            dual_stack,
            token,
            now,
            control_port,
            faults,
            state,
        } = options;
        let authority = directory.join("authority-kubernetes");
        std::fs::create_dir_all(&authority)
            .map_err(|source| HostError::File { path: authority.clone(), source })?;
        let token = match token {
            Some(token) => token,
            None => kept_secret(&authority.join("token"), || Ok(Token::generate()))?,
        };
        let certificate = CertificateAuthority::load_or_generate(&authority).map_err(certificates)?;
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options {
            seed,
            dual_stack,
            start: now,
            event_ttl: Some(EVENT_TTL),
            root_certificate: Some(certificate.certificate_pem().to_owned()),
            tokens: vec![token],
            authority_dir: Some(authority),
            ..kubernetes_simulator::Options::default()
        });
        if let Some(state) = state {
            kubernetes.restore(state)?;
            // A restored slice has the address of the former listener; the new listener writes its own.
            let _ = kubernetes.delete("endpointslices", "default", "kubernetes");
        }
        faults.into_iter().for_each(|fault| kubernetes.inject(fault));
        let at = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let listen = |error: ServeError| HostError::Listen(error.to_string());
        let address = kubernetes.serve_https(at(port), stop.clone()).await.map_err(listen)?;
        let control = kubernetes.serve_control(at(control_port), stop.clone()).await.map_err(listen)?;
        let control = format!("http://{control}");
        let url = format!("https://{address}");
        let kubeconfig_text = kubernetes.kubeconfig(&url).map_err(certificates)?;
        let kubeconfig = directory.join("kubeconfig");
        write(&kubeconfig, &kubeconfig_text, Reader::Owner)?;
        Ok(Self { kubernetes, url, control, kubeconfig, kubeconfig_text })
    }

    /// Runs, until `stop`, the controllers that a cluster without nodes needs: they remove deleted claims and volumes.
    ///
    /// # Errors
    /// The kubeconfig is invalid.
    pub async fn spawn_stand_ins(&self, stop: &CancellationToken) -> Result<(), HostError> {
        let client = client_of(&self.kubeconfig_text).await?;
        // Dropping the handle does not end it; the token does.
        let _volumes = Controllers::spawn_for_volumes(client, self.kubernetes.clock(), stop.clone());
        Ok(())
    }

    /// Makes the kubeconfigs of all managed clusters of this Azure lead here.
    ///
    /// # Errors
    /// The kubeconfig is invalid.
    pub fn serve_managed_clusters(&self, azure: &Azure) -> Result<(), HostError> {
        managed_clusters::attach(azure, &self.kubeconfig_text)
    }
}
