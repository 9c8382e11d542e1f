//! Serving a router over HTTPS or plain HTTP on a socket.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
pub use azure_entra::Scheme;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// A listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, not ours, or may not be used.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

/// A listener that is being served until its token is cancelled.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    scheme: Scheme,
    task: JoinHandle<()>,
}

impl Server {
    /// The bound address, with the real port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the listener without a path, such as `https://127.0.0.1:8443`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.address)
    }

    /// Waits until the server has stopped and its connections are closed.
    pub async fn stopped(self) {
        // The task ends by itself after cancellation; it can only fail by being aborted with the runtime.
        let _ = self.task.await;
    }
}

/// How long open requests may take to finish once the server stops; streams without end are cut then.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause when the system has no more file descriptors for new connections.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Binds `address` and serves `router` on it until `stop` is cancelled: with TLS when given a
/// configuration, else in the clear; HTTP/1.1 and HTTP/2 on either.
pub async fn serve(
    address: SocketAddr,
    router: Router,
    tls: Option<Arc<ServerConfig>>,
    stop: CancellationToken,
) -> Result<Server, ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let scheme = if tls.is_some() { Scheme::Https } else { Scheme::Http };
    let task = tokio::spawn(accept(listener, router, tls.map(TlsAcceptor::from), stop));
    Ok(Server { address: bound, scheme, task })
}

async fn accept(listener: TcpListener, router: Router, tls: Option<TlsAcceptor>, stop: CancellationToken) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (router, tls, stop) = (router.clone(), tls.clone(), stop.clone());
                connections.spawn(async move { connection(stream, peer, router, tls, stop).await });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    tls: Option<TlsAcceptor>,
    stop: CancellationToken,
) {
    // Answers are small: waiting to fill a packet only adds latency.
    let _ = stream.set_nodelay(true);
    match tls {
        None => exchange(stream, peer, Scheme::Http, router, stop).await,
        Some(acceptor) => {
            let handshake = tokio::select! {
                handshake = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)) => handshake,
                () = stop.cancelled() => return,
            };
            match handshake {
                Ok(Ok(stream)) => exchange(stream, peer, Scheme::Https, router, stop).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                Err(_elapsed) => tracing::debug!(%peer, "TLS handshake took too long"),
            }
        }
    }
}

async fn exchange<S>(stream: S, peer: SocketAddr, scheme: Scheme, router: Router, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(scheme);
        router.clone().oneshot(request)
    });
    let builder = Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            match timeout(STOP_TIMEOUT, connection.as_mut()).await {
                Ok(ended) => ended,
                Err(_elapsed) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}
