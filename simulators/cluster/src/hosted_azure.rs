//! Azure alone on sockets: Resource Manager and Entra over HTTPS with their own certificate authority, and plain HTTP
//! for the page, the control API and the metadata of machines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use azure_simulator::entra::Entra;
use azure_simulator::imds::MetadataService;
use azure_simulator::packet::AlwaysHealthy;
use azure_simulator::page::{self, AzurePage, PageSource};
use azure_simulator::tunnel::Tunnels;
use azure_simulator::{Azure, Options, region_display_name, serve};
use kubernetes_simulator::Token;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::files::{HostError, Reader, listen, write};
use crate::shape::Shape;
use crate::sign_in::{Applicant, SignIn};

/// How Azure is served.
#[derive(Debug, Clone)]
pub struct HostedAzureOptions {
    /// Options of the simulated Azure; its authority and whether it checks tokens are set here.
    pub azure: Options,
    /// The application that may sign in.
    pub client_id: String,
    /// That application's object id.
    pub object_id: String,
    /// The application's secret; if `None`, it is generated at the first start and kept in the directory.
    pub client_secret: Option<Token>,
    /// The directory of the files; it keeps the certificate authority over restarts.
    pub directory: PathBuf,
    /// The port for plain HTTP; 0 for any.
    pub port: u16,
    /// The port for HTTPS; 0 for any.
    pub https_port: u16,
    /// The port of the authority; 0 for any.
    pub authority_port: u16,
    /// The port of the proxy; 0 for any.
    pub proxy_port: u16,
    /// A separate listener for the machines' metadata, such as 169.254.169.254:80 in a network namespace of its own.
    /// The listener for plain HTTP serves it in any case.
    pub metadata: Option<SocketAddr>,
    /// Whether requests need a token that the simulated Entra has issued.
    pub check_tokens: bool,
    /// The file to which exchanges with Resource Manager are written.
    pub record: Option<PathBuf>,
}

impl HostedAzureOptions {
    /// Azure with the subscription, region and application of a shape, on any ports, open to every client with a token.
    /// The rest is as in `azure`.
    pub fn of(shape: &Shape, azure: Options, directory: &Path) -> Self {
        Self {
            azure: as_named(shape, azure),
            client_id: shape.client_id.clone(),
            object_id: shape.object_id.clone(),
            client_secret: None,
            directory: directory.to_owned(),
            port: 0,
            https_port: 0,
            authority_port: 0,
            proxy_port: 0,
            metadata: None,
            check_tokens: true,
            record: None,
        }
    }
}

/// The same Azure with the subscription, tenant and region of a shape.
fn as_named(shape: &Shape, azure: Options) -> Options {
    Options {
        subscription: shape.subscription.clone(),
        tenant: shape.tenant.clone(),
        region: shape.region.clone(),
        region_display_name: region_display_name(&shape.region).to_owned(),
        ..azure
    }
}

/// A served Azure. It stops with the token that it was started with.
#[derive(Debug)]
pub struct HostedAzure {
    /// The simulated Azure.
    pub azure: Azure,
    /// The simulated Entra.
    pub entra: Entra,
    /// The URL of Resource Manager and Entra.
    pub https: String,
    /// The URL of the authority that Azure names.
    pub authority: String,
    /// The URL of Resource Manager without TLS, the page and the control API.
    pub http: String,
    /// Where `https` listens.
    pub https_address: SocketAddr,
    /// The URL of a proxy that leads to `https` for any of Azure's host names: the value for `HTTPS_PROXY`.
    pub proxy: String,
    /// The URL of machines' metadata alone, where it was asked for.
    pub metadata: Option<String>,
    /// The certificate authority, as PEM.
    pub certificate_authority: PathBuf,
    /// The secret of the application.
    pub(crate) client_secret: Token,
    /// Endpoint, authority, proxy, tenant, subscription, client id and secret, as JSON that only the owner may read.
    pub credentials: PathBuf,
}

impl HostedAzure {
    /// Opens both listeners and writes the files.
    ///
    /// # Errors
    /// The first step that fails.
    pub async fn start(options: HostedAzureOptions, stop: &CancellationToken) -> Result<Self, HostError> {
        Self::start_with_page(options, stop, |azure| Ok(AzurePage::new(azure.clone(), AlwaysHealthy))).await
    }

    /// The same with another page, and with what has to be in Azure before any client can reach it.
    pub(crate) async fn start_with_page<S: PageSource>(
        options: HostedAzureOptions,
        stop: &CancellationToken,
        prepare: impl FnOnce(&Azure) -> Result<S, HostError>,
    ) -> Result<Self, HostError> {
        let HostedAzureOptions {
            azure: options,
            client_id,
            object_id,
            client_secret,
            directory,
            port,
            https_port,
            authority_port,
            proxy_port,
            metadata: metadata_address,
            check_tokens,
            record,
        } = options;
        let (subscription, tenant) = (options.subscription.clone(), options.tenant.clone());
        // Azure's responses contain the authority's URL, and its port is known once it listens.
        let address = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let applicant = Applicant { client_id: &client_id, object_id: &object_id, secret: client_secret };
        let login = SignIn::start(&directory, &options, applicant, address(authority_port), stop).await?;
        let azure = Azure::new(Options {
            require_auth: check_tokens,
            owners: vec![object_id.clone()],
            authority: login.url.clone(),
            ..options
        });
        login.join(&azure, check_tokens)?;
        if let Some(path) = &record {
            azure.record(path).map_err(|source| HostError::File { path: path.clone(), source })?;
        }
        let page = page::router(Arc::new(prepare(&azure)?));
        let routes = azure.with_data_planes(azure.router().merge(login.entra.router()));
        let secure = login.serve(address(https_port), routes, &azure.host_suffixes()).await?;
        let tunnels = Tunnels::start_at(address(proxy_port), secure.address(), stop.clone())
            .await
            .map_err(|error| HostError::Listen(format!("cannot listen for tunnels: {error}")))?;
        let metadata = MetadataService::new(azure.clone()).with_tokens(login.entra.clone());
        let plain = serve::serve(
            address(port),
            azure.router().merge(page).merge(metadata.routes()),
            None,
            stop.clone(),
        );
        let plain = plain.await.map_err(listen)?;
        let alone = match metadata_address {
            None => None,
            Some(address) => {
                let server = serve::serve(address, metadata.router(), None, stop.clone());
                Some(server.await.map_err(listen)?.url())
            }
        };
        azure.watch_actors();
        login.entra.accept_audience(&plain.url());

        let hosted = Self {
            azure,
            entra: login.entra,
            https_address: secure.address(),
            proxy: format!("http://{}", tunnels.address()),
            https: secure.url(),
            authority: login.url,
            http: plain.url(),
            metadata: alone,
            client_secret: Token::new(&login.secret),
            certificate_authority: directory.join("ca.pem"),
            credentials: directory.join("credentials.json"),
        };
        let credentials = json!({
            "resourceManagerEndpoint": hosted.https,
            "authority": hosted.authority,
            "httpsProxy": hosted.proxy,
            "tenantId": tenant,
            "subscriptionId": subscription,
            "aadClientId": client_id,
            "aadClientSecret": hosted.client_secret.reveal(),
        });
        write(&hosted.certificate_authority, login.certificates.certificate_pem(), Reader::Everyone)?;
        write(&hosted.credentials, &format!("{credentials:#}\n"), Reader::Owner)?;
        Ok(hosted)
    }
}
