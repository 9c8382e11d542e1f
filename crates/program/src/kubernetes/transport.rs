//! The transport of requests to the Kubernetes API: HTTP/1 over TLS, through a proxy if configured, with the configured
//! credential.
//!
//! kube's own transport also supports cloud providers' logins that Kubernetes has removed, with a query language and
//! regular expressions, and a client for each kind of proxy: a tenth of a program that runs on every node.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use arm::{ProxyConnector, ProxySettings};
use http::Request;
use http::header::AUTHORIZATION;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use rustls_pki_types::ServerName;
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt as _};

use super::credential::Credential;
use super::tls;

/// Maximum number of idle connections. Each takes some forty kilobytes; a burst opens more and closes them again.
const MAX_IDLE_CONNECTIONS: usize = 8;
/// Maximum that a connection reads at a time while lists arrive.
const READ_BUFFER: usize = 64 << 10;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Counts requests to the API.
pub trait RequestObserver: Send + Sync + 'static {
    /// Records the response of a host to a request with this method; `None` if there was no response. `took` is the time
    /// until the head of the response.
    fn answered(&self, method: &str, host: &str, status: Option<u16>, took: Duration);
}

/// A client as configured; `timeout` limits each connection attempt, including TLS and the proxy.
///
/// # Errors
/// Credentials, authorities or names that cannot be used: one line that names the place in the configuration.
pub(super) async fn client(
    config: &Config,
    proxy: ProxySettings,
    timeout: Duration,
    observer: Option<Arc<dyn RequestObserver>>,
) -> anyhow::Result<Client> {
    let credential = Credential::new(&config.auth_info).await?;
    let tls = tls::config_of(config, credential.identity())?;
    let connecting = ProxyConnector::with_system_resolver(proxy, &tls);
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let builder = match &config.tls_server_name {
        Some(name) => {
            let name = ServerName::try_from(name.clone())
                .with_context(|| format!("tls-server-name {name:?} is not a server name"))?;
            builder.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => builder,
    };
    let connector = builder.enable_http1().wrap_connector(connecting);
    let connector = connector.map_future(move |connecting| {
        Box::pin(async move {
            let connected = tokio::time::timeout(timeout, connecting).await;
            connected.unwrap_or_else(|_| Err(format!("no connection within {} s", timeout.as_secs()).into()))
        })
    });
    let network = HttpClient::builder(TokioExecutor::new())
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .http1_max_buf_size(READ_BUFFER)
        .build::<_, Body>(connector);
    let credential = Arc::new(credential);
    let authorized = tower::service_fn(move |mut request: Request<Body>| {
        let (network, credential) = (network.clone(), Arc::clone(&credential));
        let observer = observer.clone();
        async move {
            if let Some(value) = credential.header().await? {
                request.headers_mut().insert(AUTHORIZATION, value);
            }
            let Some(observer) = observer else {
                return network.request(request).await.map_err(BoxError::from);
            };
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let sent = Instant::now();
            let answer = network.request(request).await;
            let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            let host = uri.authority().map_or("", |host| host.as_str());
            observer.answered(method.as_str(), host, status, sent.elapsed());
            answer.map_err(BoxError::from)
        }
    });
    let headers = config.extra_headers_layer().map_err(|error| anyhow!("headers of the user: {error}"))?;
    let service = ServiceBuilder::new().layer(config.base_uri_layer()).layer(headers).service(authorized);
    Ok(Client::new(service, config.default_namespace.clone()))
}
