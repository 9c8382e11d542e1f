//! The HTTPS listener for health checks and metrics.
//!
//! It runs before and without leadership, so that standby replicas answer too.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::metrics::Metrics;

/// Why the listener could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {reason}; choose another --secure-port or --bind-address")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system said.
        reason: io::Error,
    },
    /// A certificate or key file is unreadable or holds something else.
    #[error("cannot use {}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate could not be made or used.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Certificate {
    /// Made at start and kept in memory, for `localhost`.
    SelfSigned,
    /// PEM files.
    Files {
        /// The certificate and its chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

/// How the port speaks TLS.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// Where the certificate comes from.
    pub certificate: Certificate,
    /// Whether TLS 1.2 is refused.
    pub only_tls13: bool,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self { certificate: Certificate::SelfSigned, only_tls13: false, http2: true }
    }
}

/// How long a client may take to agree on TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to send the head of a request: what Kubernetes' own servers allow.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// How long nothing is accepted after the operating system refused, so that a process without free file
/// descriptors does not spin.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Decides who may read what is not open to everyone.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Whether the bearer of `token` may `get` `path`; `false` also where that cannot be found out.
    async fn may_get(&self, token: &str, path: &str) -> bool;
}

/// What is served.
#[derive(Clone)]
pub struct Endpoints {
    /// `/healthz` and `/readyz`, open to everyone.
    pub health: Health,
    /// `/metrics` and `/metrics/v2`, for callers that `authorizer` lets in.
    pub metrics: Metrics,
    /// Who may read metrics; nobody without one.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

impl Endpoints {
    /// All routes.
    pub fn router(&self) -> axum::Router {
        axum::Router::new()
            .route("/metrics", get(metrics))
            .route("/metrics/v2", get(metrics))
            .with_state(self.clone())
            .merge(self.health.router())
    }
}

async fn metrics(State(endpoints): State<Endpoints>, headers: HeaderMap) -> Response {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let (Some(token), Some(authorizer)) = (token, &endpoints.authorizer) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    if !authorizer.may_get(token, "/metrics").await {
        return StatusCode::FORBIDDEN.into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], endpoints.metrics.encode()).into_response()
}

/// Serves `router` over HTTPS until `stop`; returns the bound address at once.
///
/// # Errors
/// The certificate is unusable, or the address cannot be had.
pub async fn serve(
    router: axum::Router,
    address: SocketAddr,
    tls: &TlsOptions,
    stop: CancellationToken,
) -> Result<SocketAddr, ServeError> {
    let acceptor = TlsAcceptor::from(Arc::new(tls_config(tls)?));
    let refused = |reason| ServeError::Bind { address, reason };
    let listener = bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    let listener = Arc::new(listener);
    tokio::spawn(async move {
        let accepting = accept_all(
            || {
                let listener = Arc::clone(&listener);
                async move { listener.accept().await.map(|(stream, _peer)| stream) }
            },
            |stream| {
                let connection = serve_connection(stream, acceptor.clone(), router.clone());
                let stop = stop.clone();
                tokio::spawn(async move { stop.run_until_cancelled(connection).await });
            },
        );
        stop.run_until_cancelled(accepting).await;
    });
    Ok(bound)
}

/// A listener. The unspecified address of either family means all addresses of both, as it does for Go's
/// programs: kubelets of dual-stack and IPv6 clusters probe by IPv6.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip().is_unspecified() {
        match bind_both_families(address.port()) {
            // This machine speaks no IPv6, and the address asked for is another.
            Err(error) if address.is_ipv4() && error.kind() != io::ErrorKind::AddrInUse => {}
            done => return done,
        }
    }
    TcpListener::bind(address).await
}

fn bind_both_families(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_only_v6(false)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

/// Accepts for ever.
async fn accept_all<S, F>(mut accept: impl FnMut() -> F, mut serve: impl FnMut(S))
where
    F: Future<Output = io::Result<S>>,
{
    loop {
        match accept().await {
            Ok(stream) => serve(stream),
            // The client was gone before we came to it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections to health checks and metrics");
                sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, acceptor: TlsAcceptor, router: axum::Router) {
    let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await else { return };
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEADER_TIMEOUT);
    let service = TowerToHyperService::new(router);
    // However it ends, the client knows.
    let _ended = builder.serve_connection(TokioIo::new(stream), service).await;
}

fn tls_config(tls: &TlsOptions) -> Result<rustls::ServerConfig, ServeError> {
    let (chain, key) = match &tls.certificate {
        Certificate::SelfSigned => self_signed()?,
        Certificate::Files { certificate, key } => {
            let unusable =
                |path: &PathBuf, reason: String| ServeError::Certificate { path: path.clone(), reason };
            let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
                .and_then(Iterator::collect)
                .map_err(|error| unusable(certificate, error.to_string()))?;
            if chain.is_empty() {
                return Err(unusable(certificate, "it holds no certificate".to_owned()));
            }
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error.to_string()))?;
            (chain, key)
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions(tls.only_tls13))
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| ServeError::Tls(error.to_string()))?;
    if tls.http2 {
        config.alpn_protocols.push(b"h2".to_vec());
    }
    config.alpn_protocols.push(b"http/1.1".to_vec());
    Ok(config)
}

fn versions(only_tls13: bool) -> &'static [&'static rustls::SupportedProtocolVersion] {
    static ONLY_TLS13: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
    if only_tls13 { &ONLY_TLS13 } else { rustls::DEFAULT_VERSIONS }
}

fn self_signed() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ServeError> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made =
        rcgen::generate_simple_self_signed(names).map_err(|error| ServeError::Tls(error.to_string()))?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(|e| ServeError::Tls(e.to_owned()))?;
    Ok((vec![made.cert.der().clone()], key))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;
    use tower::ServiceExt;

    use super::*;

    struct OnlyPrometheus;

    #[async_trait]
    impl Authorizer for OnlyPrometheus {
        async fn may_get(&self, token: &str, _path: &str) -> bool {
            token == "prometheus"
        }
    }

    async fn status(endpoints: &Endpoints, token: Option<&str>) -> u16 {
        let mut request = Request::get("/metrics");
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        endpoints.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn metrics_are_for_those_who_may_read_them() {
        let mut endpoints = Endpoints {
            health: Health::new(Vec::new, &[]),
            metrics: Metrics::default(),
            authorizer: Some(Arc::new(OnlyPrometheus)),
        };
        assert_eq!(status(&endpoints, None).await, 401);
        assert_eq!(status(&endpoints, Some("someone")).await, 403);
        assert_eq!(status(&endpoints, Some("prometheus")).await, 200);
        endpoints.authorizer = None;
        assert_eq!(status(&endpoints, Some("prometheus")).await, 401);
    }

    #[tokio::test]
    async fn a_taken_port_is_said_in_one_line_with_the_remedy() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let error = serve(axum::Router::new(), address, &TlsOptions::default(), CancellationToken::new())
            .await
            .unwrap_err();
        assert!(
            std::error::Error::source(&error).is_none(),
            "the cause is in the text, and would be said twice"
        );
        let error = error.to_string();
        assert!(error.contains(&address.to_string()) && error.contains("--secure-port"), "{error}");
        assert!(!error.contains('\n'));
    }

    #[tokio::test]
    async fn an_unreadable_certificate_is_named() {
        let certificate =
            Certificate::Files { certificate: "/nowhere/tls.crt".into(), key: "/nowhere/tls.key".into() };
        let tls = TlsOptions { certificate, ..TlsOptions::default() };
        let error = serve(axum::Router::new(), ([127, 0, 0, 1], 0).into(), &tls, CancellationToken::new())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("/nowhere/tls.crt"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_without_free_file_descriptors_does_not_spin() {
        let (asked, mut served) = (std::cell::Cell::new(0), 0);
        let accept = || {
            asked.set(asked.get() + 1);
            let number = asked.get();
            async move {
                match number {
                    // EMFILE, "Too many open files".
                    1..=60 => Err(io::Error::from_raw_os_error(24)),
                    61..=70 => Ok(()),
                    _ => std::future::pending().await,
                }
            }
        };
        let began = tokio::time::Instant::now();
        let _ended = timeout(Duration::from_secs(100), accept_all(accept, |()| served += 1)).await;
        assert_eq!((asked.get(), served), (71, 10));
        assert!(began.elapsed() >= 60 * ACCEPT_RETRY_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_agrees_on_tls_is_let_go() {
        let stop = CancellationToken::new();
        let any = ([127, 0, 0, 1], 0).into();
        let bound = serve(axum::Router::new(), any, &TlsOptions::default(), stop.clone()).await.unwrap();
        let mut silent = TcpStream::connect(bound).await.unwrap();
        let mut byte = [0];
        // Without an end of the handshake this would wait for ever.
        let read = tokio::io::AsyncReadExt::read(&mut silent, &mut byte);
        assert_eq!(timeout(10 * HANDSHAKE_TIMEOUT, read).await.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn the_unspecified_address_means_both_families() {
        let Ok(_speaks_ipv6) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await else { return };
        for address in ["0.0.0.0:0", "[::]:0"] {
            let listener = bind(address.parse().unwrap()).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            for client in ["127.0.0.1", "::1"] {
                TcpStream::connect((client, port))
                    .await
                    .unwrap_or_else(|error| panic!("{address}, {client}: {error}"));
            }
        }
    }

    #[test]
    fn tls_is_as_old_and_http_as_new_as_asked_for() {
        let protocols = |http2| {
            let config = tls_config(&TlsOptions { http2, ..TlsOptions::default() }).unwrap();
            config.alpn_protocols
        };
        assert_eq!(protocols(true), [&b"h2"[..], &b"http/1.1"[..]]);
        assert_eq!(protocols(false), [&b"http/1.1"[..]]);
        assert_eq!(versions(true), [&rustls::version::TLS13]);
        assert_eq!(versions(false), [&rustls::version::TLS13, &rustls::version::TLS12]);
    }
}
