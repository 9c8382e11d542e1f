//! The transport of requests: over TLS, or directly into a service in the same process.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Body;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tower::{Service, ServiceExt};

use crate::Error;
use crate::authorities;
use crate::proxy::{ProxyConnector, ProxySettings};
use crate::renewed_authorities::RenewedAuthorities;
use crate::resolver::Resolver;

/// No answer of Azure's is larger than 8 MB; more is not read into memory.
const MAX_BODY_BYTES: usize = 64 << 20;
/// The largest read of a connection. Otherwise each of dozens keeps a buffer of up to 400 kB.
const READ_BUFFER: usize = 64 << 10;

/// The number of idle connections that are kept. Each takes some hundred kilobytes; a burst opens more, and closes
/// them.
const MAX_IDLE_CONNECTIONS: usize = 8;

/// Makes `ring` the process's provider of cryptography. Call it first in `main`: libraries that create their own TLS
/// settings look for it. Calling it again changes nothing.
pub fn install_crypto_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// TLS's name for an untrusted authority.
const UNKNOWN_ISSUER: &str = "UnknownIssuer";

/// There was no answer. The text is one line, causes joined by colons.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct TransportError {
    reason: String,
}

impl TransportError {
    /// An error with this text.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !reason.contains(&text) {
                reason.push_str(": ");
                reason.push_str(&text);
            }
            source = cause.source();
        }
        if reason.contains(UNKNOWN_ISSUER) {
            reason.push_str(
                " (its certificate comes from an authority that is not trusted here: add the authority to the \
                 system's CA bundle, or name a PEM bundle that holds it with SSL_CERT_FILE)",
            );
        }
        Self { reason }
    }

    /// The text.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// How to reach Azure.
#[derive(Debug, Clone)]
pub struct TransportOptions {
    /// PEM texts of certificate authorities to trust besides the system's.
    pub extra_roots: Vec<String>,
    /// Whether to trust the system's authorities (or those that `SSL_CERT_FILE` names).
    pub system_roots: bool,
    /// The proxy.
    pub proxy: ProxySettings,
    /// The timeout of one request, including the answer's body.
    pub request_timeout: Duration,
    /// Whether to use HTTP/2 if the server offers it. A client that sends few requests one after the other gains
    /// nothing by it and saves its memory; it needs this crate's feature `http2`.
    pub http2: bool,
    /// Addresses of hosts for which the system's resolver is not used. The host keeps its name in TLS.
    pub addresses: Vec<(String, IpAddr)>,
    /// Where requests to a host are sent instead: `("169.254.169.254", "http://127.0.0.1:4000")`.
    pub redirects: Vec<(String, String)>,
}

impl Default for TransportOptions {
    /// The system's authorities, no proxy, 60 s for a request, HTTP/2 if this crate has it.
    fn default() -> Self {
        Self {
            extra_roots: Vec::new(),
            system_roots: true,
            proxy: ProxySettings::default(),
            request_timeout: Duration::from_secs(60),
            http2: true,
            addresses: Vec::new(),
            redirects: Vec::new(),
        }
    }
}

#[async_trait]
trait Exchange: Send + Sync {
    async fn exchange(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError>;
}

/// Sends requests. Clones share their connections.
#[derive(Clone)]
pub struct Transport {
    way: Arc<dyn Exchange>,
    timeout: Duration,
    redirects: Arc<[(String, Uri)]>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transport(timeout {:?})", self.timeout)
    }
}

impl Transport {
    /// A transport over the network: TLS 1.2 or later.
    pub fn connect(options: TransportOptions) -> Result<Self, Error> {
        let configuration = |reason: String| Error::Configuration { reason };
        let authorities = authorities(&options);
        let tls = tls_config(&options, &authorities)?;
        let to_proxy = options.proxy.needs_tls().then(|| tls.clone());
        let connecting = ProxyConnector::new(options.proxy, Resolver::new(options.addresses), to_proxy);
        let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let connector = match options.http2 {
            #[cfg(feature = "http2")]
            true => builder.enable_all_versions().wrap_connector(connecting),
            _ => builder.enable_http1().wrap_connector(connecting),
        };
        let mut client = Client::builder(TokioExecutor::new());
        client
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .http1_max_buf_size(READ_BUFFER);
        #[cfg(feature = "http2")]
        client
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(15));
        let client = client.build(connector);
        let redirects = options
            .redirects
            .iter()
            .map(|(host, to)| match to.parse::<Uri>() {
                Ok(uri) if uri.scheme().is_some() && uri.authority().is_some() => Ok((host.clone(), uri)),
                _ => Err(configuration(format!(
                    "requests to {host} cannot be redirected to `{to}`: it is not a URL"
                ))),
            })
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Self {
            way: Arc::new(Network { client, authorities }),
            timeout: options.request_timeout,
            redirects: redirects.into(),
        })
    }

    /// A transport into a service of this process, such as an `axum::Router`: no sockets, and time that tests can
    /// pause.
    pub fn in_process<S, B>(service: S) -> Self
    where
        S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self {
            way: Arc::new(InProcess(service)),
            timeout: TransportOptions::default().request_timeout,
            redirects: Arc::new([]),
        }
    }

    /// Sends a request with an absolute URI and reads the whole answer, whatever its status.
    pub async fn send(
        &self,
        mut request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        if !self.redirects.is_empty() {
            self.redirect(&mut request)?;
        }
        match tokio::time::timeout(self.timeout, self.way.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(TransportError::new(format!("no answer within {} s", self.timeout.as_secs()))),
        }
    }

    fn redirect(&self, request: &mut http::Request<Bytes>) -> Result<(), TransportError> {
        let host = request.uri().host().unwrap_or_default();
        if let Some((_, to)) = self.redirects.iter().find(|(from, _)| from == host) {
            let mut parts = request.uri().clone().into_parts();
            parts.scheme = to.scheme().cloned();
            parts.authority = to.authority().cloned();
            *request.uri_mut() =
                Uri::from_parts(parts).map_err(|error| TransportError::new(error.to_string()))?;
        }
        Ok(())
    }
}

/// Problems of the variables that name authorities, as a suffix for messages; empty if there are none.
fn authorities(options: &TransportOptions) -> String {
    if !options.system_roots {
        return String::new();
    }
    let problems = authorities::problems(|name| std::env::var_os(name));
    for problem in &problems {
        tracing::warn!("{problem}");
    }
    problems.iter().map(|problem| format!(" ({problem})")).collect()
}

/// TLS 1.2 or later, with the system's authorities and those that the options name.
fn tls_config(options: &TransportOptions, problems: &str) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let (system, extra, problems) = (options.system_roots, options.extra_roots.clone(), problems.to_owned());
    let files = if system { authorities::files(|name| std::env::var_os(name)) } else { Vec::new() };
    let load = Box::new(move || roots(system, &extra, &problems));
    let verifier = RenewedAuthorities::new(files, Arc::clone(&provider), load)?;
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Configuration { reason: format!("TLS cannot be set up: {error}") })?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// The system's authorities, if they count, and extra ones.
fn roots(system: bool, extra: &[String], problems: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if system {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for pem in extra {
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate =
                certificate.map_err(|error| format!("an extra certificate authority is no PEM: {error}"))?;
            roots
                .add(certificate)
                .map_err(|error| format!("an extra certificate authority is unusable: {error}"))?;
        }
    }
    if roots.is_empty() {
        return Err(format!(
            "no certificate authorities found{problems}: install the system's CA bundle or set SSL_CERT_FILE"
        ));
    }
    Ok(roots)
}

struct Network {
    client: Client<HttpsConnector<ProxyConnector>, Full<Bytes>>,
    /// Problems of the variables that name authorities.
    authorities: String,
}

#[async_trait]
impl Exchange for Network {
    async fn exchange(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
        let answer = self.client.request(request.map(Full::new)).await;
        let answer = answer.map_err(|error| {
            let mut error = TransportError::of(&error);
            if error.reason.contains(UNKNOWN_ISSUER) {
                error.reason.push_str(&self.authorities);
            }
            error
        })?;
        collect(answer).await
    }
}

struct InProcess<S>(S);

#[async_trait]
impl<S, B> Exchange for InProcess<S>
where
    S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    async fn exchange(
        &self,
        mut request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        // Over a network hyper sets it.
        let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        if let Some(host) = host {
            request.headers_mut().entry(http::header::HOST).or_insert(host);
        }
        let service = self.0.clone();
        let answer = service
            .oneshot(request.map(Full::new))
            .await
            .map_err(|error| TransportError::of(error.into().as_ref()))?;
        collect(answer).await
    }
}

async fn collect<B>(answer: http::Response<B>) -> Result<http::Response<Bytes>, TransportError>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = answer.into_parts();
    let mut body = std::pin::pin!(Limited::new(body, MAX_BODY_BYTES));
    // Frame by frame into one buffer: a list or a load balancer is megabytes, and would be held twice otherwise.
    let expected = body.size_hint().exact().and_then(|exact| usize::try_from(exact).ok());
    let mut whole = Vec::with_capacity(expected.unwrap_or_default().min(MAX_BODY_BYTES));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| TransportError::of(error.as_ref()))?;
        if let Ok(data) = frame.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(http::Response::from_parts(parts, Bytes::from(whole)))
}
