//! Container registries on sockets as a node sees them: registries, Entra and the machine's metadata, all under Azure's
//! own names behind one proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use azure_simulator::entra::{Application, Clock, Entra, EntraOptions};
use azure_simulator::imds::{self, MachineIdentities, ManagedIdentity};
use azure_simulator::registry::{Registries, Registry};
use azure_simulator::serve;
use azure_simulator::tunnel::Tunnels;
use certificate_authority::CertificateAuthority;
use tokio_util::sync::CancellationToken;

use crate::files::{HostError, Reader, certificates, listen, write};

/// The names in certificates beside those of registries.
const NAMES: [&str; 3] = ["login.microsoftonline.com", "localhost", "127.0.0.1"];
/// The secret of App Service's form of managed identities, which needs no address of its own.
const IDENTITY_HEADER: &str = "a-machine";

/// The registries, applications and identities to serve.
pub struct HostedRegistriesOptions {
    /// The tenant's id.
    pub tenant: String,
    /// The applications that may sign in.
    pub applications: Vec<Application>,
    /// The managed identities of the machine.
    pub identities: Vec<ManagedIdentity>,
    /// The registries, each under its own name on port 443.
    pub registries: Vec<Registry>,
    /// The wall clock of the token issuer.
    pub clock: Clock,
    /// The directory of the certificate authority's file.
    pub directory: PathBuf,
}

/// Served registries. They stop with the token that they were started with.
#[derive(Debug)]
pub struct HostedRegistries {
    /// The directory that issues tokens.
    pub entra: Entra,
    /// The registries.
    pub registries: Registries,
    /// The proxy to all of them.
    pub tunnels: Tunnels,
    /// The address of HTTPS, for any host name.
    pub https: SocketAddr,
    /// The URL of the machine's metadata, which is at 169.254.169.254 on a real one.
    pub metadata: String,
    /// The certificate authority, as PEM.
    pub certificate_authority: PathBuf,
}

impl HostedRegistries {
    /// Opens the listeners and writes the certificate authority's file.
    ///
    /// # Errors
    /// The first step that fails.
    pub async fn start(
        options: HostedRegistriesOptions,
        stop: &CancellationToken,
    ) -> Result<Self, HostError> {
        let directory = options.directory;
        let entra = Entra::new(EntraOptions {
            applications: options.applications,
            ..EntraOptions::new(options.tenant, options.clock)
        });
        let entra = entra.map_err(certificates)?;
        let registries = Registries::new(entra.clone()).map_err(certificates)?;
        let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
        for registry in options.registries {
            names.push(registry.login_server().to_owned());
            registries.add(registry);
        }
        let authority = CertificateAuthority::generate().map_err(certificates)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let tls = authority.server_config(&names).map_err(certificates)?;
        let certificate_authority = directory.join("ca.pem");
        write(&certificate_authority, authority.certificate_pem(), Reader::Everyone)?;

        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let routes = entra.router().merge(entra.binding_router()).merge(registries.router());
        let https = serve::serve(any, routes, Some(tls), stop.clone()).await.map_err(listen)?.address();
        let machine = MachineIdentities { entra: entra.clone(), identities: options.identities };
        let metadata =
            imds::router(machine.clone()).merge(imds::app_service_router(machine, IDENTITY_HEADER));
        let metadata = serve::serve(any, metadata, None, stop.clone()).await.map_err(listen)?;
        let tunnels = Tunnels::start(https, stop.clone())
            .await
            .map_err(|error| HostError::Listen(format!("cannot listen for tunnels: {error}")))?;
        Ok(Self { entra, registries, tunnels, https, metadata: metadata.url(), certificate_authority })
    }

    /// The environment variables that lead a program on this machine to these servers.
    pub fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("HTTPS_PROXY", format!("http://{}", self.tunnels.address())),
            ("NO_PROXY", String::new()),
            ("SSL_CERT_FILE", self.certificate_authority.display().to_string()),
            ("IDENTITY_ENDPOINT", format!("{}{}", self.metadata, imds::APP_SERVICE_PATH)),
            ("IDENTITY_HEADER", IDENTITY_HEADER.to_owned()),
        ]
    }
}
