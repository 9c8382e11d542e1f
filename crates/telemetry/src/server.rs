//! The HTTPS listener for health checks and metrics: `spec/config-and-cli.md` 4.5 and 5.2.
//!
//! It runs before and without leadership, so that standby replicas answer too.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::metrics::Metrics;

/// Why the listener could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; choose another --secure-port or --bind-address")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
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
    /// `/metrics` and `/metrics/v2`, for those whom `authorizer` lets in.
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
pub async fn serve(
    router: axum::Router,
    address: SocketAddr,
    certificate: &Certificate,
    stop: CancellationToken,
) -> Result<SocketAddr, ServeError> {
    let acceptor = TlsAcceptor::from(Arc::new(tls_config(certificate)?));
    let listener = TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
    let bound = listener.local_addr().map_err(|source| ServeError::Bind { address, source })?;
    tokio::spawn(async move {
        loop {
            let connection = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _peer)) = connection else { continue };
            let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let service = TowerToHyperService::new(router);
                tokio::select! {
                    () = stop.cancelled() => {}
                    _closed = builder.serve_connection(TokioIo::new(stream), service) => {}
                }
            });
        }
    });
    Ok(bound)
}

fn tls_config(certificate: &Certificate) -> Result<rustls::ServerConfig, ServeError> {
    let (chain, key) = match certificate {
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
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| ServeError::Tls(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
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
            health: Health::default(),
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
        let error = serve(axum::Router::new(), address, &Certificate::SelfSigned, CancellationToken::new())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(&address.to_string()) && error.contains("--secure-port"), "{error}");
        assert!(!error.contains('\n'));
    }

    #[tokio::test]
    async fn an_unreadable_certificate_is_named() {
        let files =
            Certificate::Files { certificate: "/nowhere/tls.crt".into(), key: "/nowhere/tls.key".into() };
        let error = serve(axum::Router::new(), ([127, 0, 0, 1], 0).into(), &files, CancellationToken::new())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("/nowhere/tls.crt"), "{error}");
    }
}
