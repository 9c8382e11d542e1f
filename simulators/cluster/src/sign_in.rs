//! Access to the simulated Azure, and its certificates: Entra on a listener of its own, and one application with a
//! secret.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use azure_simulator::entra::{Application, Clock, Entra, EntraOptions, SigningKey};
use azure_simulator::registry::Registries;
use azure_simulator::serve::{self, Router, Server};
use azure_simulator::{Azure, Options};
use certificate_authority::CertificateAuthority;
use kubernetes_simulator::Token;
use tokio_util::sync::CancellationToken;

use crate::files::{HostError, certificates, kept_secret, listen};

/// The names in certificates.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];
/// Azure's own names of Resource Manager, Entra and Microsoft Graph, for clients that connect through a proxy.
const AZURES_NAMES: [&str; 3] = ["management.azure.com", "login.microsoftonline.com", "graph.microsoft.com"];

/// The application's name.
const APPLICATION: &str = "cerulean";

/// The application that may sign in.
pub(crate) struct Applicant<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) object_id: &'a str,
    /// Its secret; the one in the directory if `None`.
    pub(crate) secret: Option<Token>,
}

pub(crate) struct SignIn {
    pub(crate) entra: Entra,
    /// The application's secret.
    pub(crate) secret: String,
    /// Entra's URL. Azure names it in its responses.
    pub(crate) url: String,
    /// Kept in the directory over restarts.
    pub(crate) certificates: CertificateAuthority,
    clock: Arc<OnceLock<Clock>>,
    stop: CancellationToken,
}

impl SignIn {
    /// Opens Entra's listener. Tenants and time are those of the Azure that `azure` describes.
    pub(crate) async fn start(
        directory: &Path,
        azure: &Options,
        applicant: Applicant<'_>,
        address: SocketAddr,
        stop: &CancellationToken,
    ) -> Result<Self, HostError> {
        std::fs::create_dir_all(directory)
            .map_err(|source| HostError::File { path: directory.to_owned(), source })?;
        let authority =
            CertificateAuthority::load_or_generate(&directory.join("authority")).map_err(certificates)?;
        let secret = match applicant.secret {
            Some(secret) => secret,
            None => {
                kept_secret(&directory.join("authority").join("client-secret"), || Ok(Token::generate()))?
            }
        };
        let path = directory.join("authority").join("token-key");
        let unusable = |source| HostError::TokenKey { path: path.clone(), source };
        let key = kept_secret(&path, || SigningKey::generate_text().map(Token::new).map_err(unusable))?;
        let key = SigningKey::from_text(key.reveal()).map_err(unusable)?;
        let secret = secret.reveal().to_owned();
        // Both use one clock: tokens must be valid by the clock of the server that checks them.
        let clock: Arc<OnceLock<Clock>> = Arc::default();
        let (joined, start) = (clock.clone(), azure.start);
        let now = move || joined.get().map_or(start, |clock| clock());
        let mut options = EntraOptions::new(azure.tenant.clone(), Arc::new(now));
        options.signing_key = Some(key);
        options.tenants.extend(azure.subscription_tenants.values().cloned());
        let application = Application::new(applicant.client_id, applicant.object_id);
        options.applications = vec![application.named(APPLICATION).with_secret(&secret)];
        let entra = Entra::new(options).map_err(certificates)?;
        let tls = authority.server_config(&NAMES).map_err(certificates)?;
        let login =
            serve::serve(address, entra.authority_router(), Some(tls), stop.clone()).await.map_err(listen)?;
        Ok(Self { entra, secret, url: login.url(), certificates: authority, clock, stop: stop.clone() })
    }

    /// Makes Azure check tokens, Entra look up identities in Azure and use its clock, and both serve Azure's
    /// registries.
    pub(crate) fn join(&self, azure: &Azure, check_tokens: bool) -> Result<(), HostError> {
        // Azure's clock starts at its first use: now.
        let clock = azure.clock();
        clock();
        // After a second `join` the first clock stays.
        let _ = self.clock.set(clock);
        if check_tokens {
            azure.set_verifier(Arc::new(self.entra.clone()));
        }
        self.entra.look_up_in(Arc::new(azure.clone()));
        let registries = Registries::new(self.entra.clone()).map_err(certificates)?;
        registries.serve_those_of(azure);
        azure.serve_hosts(registries.hosts());
        Ok(())
    }

    /// Serves Resource Manager over HTTPS, also under Azure's own names and those of hosts with these suffixes. From
    /// now on tokens for its URL are issued.
    pub(crate) async fn serve(
        &self,
        address: SocketAddr,
        routes: Router,
        suffixes: &[String],
    ) -> Result<Server, HostError> {
        // A wildcard matches a single label.
        let hosts =
            suffixes.iter().flat_map(|suffix| [format!("*.{suffix}"), format!("*.privatelink.{suffix}")]);
        let hosts: Vec<String> = hosts.collect();
        let names = NAMES.iter().chain(&AZURES_NAMES).copied().chain(hosts.iter().map(String::as_str));
        let tls = self.certificates.server_config(&names.collect::<Vec<_>>()).map_err(certificates)?;
        let server = serve::serve(address, routes, Some(tls), self.stop.clone()).await.map_err(listen)?;
        self.entra.accept_audience(&server.url());
        Ok(server)
    }
}
