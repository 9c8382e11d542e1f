//! Serving over sockets with TLS.

use std::net::SocketAddr;
use std::time::Duration;

use axum::{Extension, Router};
use certificate_authority::{CertificateAuthority, ClientCertificate, TlsError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::server::handle::Kubernetes;
use crate::server::own_service;

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No certificate could be created.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The names of an API server inside of clusters, and on its own machine.
const NAMES: [&str; 6] =
    ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"];

/// Timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// What kubeadm calls the certificate of an API server; KubeadmControlPlane finds it by that.
const PROGRAM: &str = "kube-apiserver";

/// How long open requests may take to end after the shutdown; watches never end by themselves.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// One HTTP/2 connection carries all of a client's watches, and one watch for each kind is common.
const MAX_STREAMS: u32 = 1000;

impl Kubernetes {
    /// Serves the API over HTTPS (HTTP/2 and HTTP/1.1) until `shutdown`. Returns the address that it listens on; if
    /// `address` has port 0, the system chooses the port.
    ///
    /// The certificate is signed by [`Kubernetes::authority`]. Its names are the address, `localhost`, the names of API
    /// servers inside of clusters, and [`Options::server_names`](crate::Options).
    ///
    /// # Errors
    /// The certificate cannot be created or the address cannot be listened on.
    pub async fn serve_https(
        &self,
        address: SocketAddr,
        shutdown: CancellationToken,
    ) -> Result<SocketAddr, ServeError> {
        let bound = address.ip().to_string();
        let mut names = NAMES.to_vec();
        if !address.ip().is_unspecified() && !names.contains(&bound.as_str()) {
            names.push(&bound);
        }
        names.extend(self.shared.options.server_names.iter().map(String::as_str));
        let authority = self.authority()?;
        let bound = self.serve_https_as(&authority, &names, address, shutdown).await?;
        // Further listeners serve the same server: the first one stays its address.
        if let Err(error) = self.create(own_service::slice(bound)) {
            tracing::debug!(%error, "the server's own Service has endpoints already");
        }
        Ok(bound)
    }

    /// The same with a certificate of another authority, for these names. Clients may use certificates of that
    /// authority, too.
    ///
    /// # Errors
    /// The certificate cannot be created or the address cannot be listened on.
    pub async fn serve_https_as(
        &self,
        authority: &CertificateAuthority,
        names: &[&str],
        address: SocketAddr,
        shutdown: CancellationToken,
    ) -> Result<SocketAddr, ServeError> {
        let acceptor = TlsAcceptor::from(authority.server_config_with_clients(names, PROGRAM)?);
        listen(address, Some(acceptor), self.router(), shutdown).await
    }
}

/// Serves a router until `shutdown`, with TLS or without. Returns the address that it listens on.
pub(crate) async fn listen(
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    shutdown: CancellationToken,
) -> Result<SocketAddr, ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    tokio::spawn(accept(listener, acceptor, router, shutdown));
    Ok(bound)
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    shutdown: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (acceptor, router, shutdown) = (acceptor.clone(), router.clone(), shutdown.clone());
                tokio::spawn(async move {
                    if let Err(error) = handshake(stream, acceptor, router, shutdown).await {
                        tracing::debug!(%peer, %error, "connection ended");
                    }
                });
            }
            Err(error) => {
                // Most likely no file descriptor is free: wait until others are closed.
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn handshake(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    match acceptor {
        None => serve(stream, router, shutdown).await,
        Some(acceptor) => {
            let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await??;
            let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let router = match shown.and_then(ClientCertificate::read) {
                Some(client) => router.layer(Extension(client)),
                None => router,
            };
            serve(stream, router, shutdown).await
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
    let connection =
        builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    match tokio::time::timeout(SHUTDOWN_TIMEOUT, connection).await {
        Ok(ended) => ended,
        Err(_) => Ok(()),
    }
}
