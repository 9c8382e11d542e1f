//! Listening at an endpoint.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use crate::endpoint::Endpoint;

/// The mode of the socket. The calls that it takes mount file systems and delete disks, so its owner alone may connect.
const SOCKET_MODE: u32 = 0o600;

/// Pause after the operating system refused to accept a connection, so that a process without free file descriptors
/// does not spin.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The endpoint cannot be listened at.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A file that is no socket is not removed.
    #[error("{} is there and is no socket; remove it, or set another --endpoint", .0.display())]
    Occupied(PathBuf),
    /// The operating system refuses.
    #[error("cannot listen at {endpoint}: {reason}; set another --endpoint")]
    Refused {
        /// The endpoint.
        endpoint: Endpoint,
        /// The operating system's words.
        reason: io::Error,
    },
}

/// A listener at an endpoint.
#[derive(Debug)]
pub struct Listener(Socket);

#[derive(Debug)]
enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at an endpoint. A socket that an earlier process has left is replaced.
    ///
    /// # Errors
    /// Something else is at the path, or the operating system refuses.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, ListenError> {
        let refused = |reason| ListenError::Refused { endpoint: endpoint.clone(), reason };
        let socket = match endpoint {
            Endpoint::Unix(path) => {
                if !remove_stale(path).await.map_err(refused)? {
                    return Err(ListenError::Occupied(path.clone()));
                }
                Socket::Unix(bind_unix(path).await.map_err(refused)?)
            }
            Endpoint::Tcp(address) => Socket::Tcp(bind_tcp(address).await.map_err(refused)?),
        };
        Ok(Self(socket))
    }

    /// The address of a TCP listener, with the port that the system chose if none was requested.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Socket::Unix(_) => None,
            Socket::Tcp(listener) => listener.local_addr().ok(),
        }
    }

    /// The connections, for ever.
    pub(crate) fn connections(self) -> impl Stream<Item = io::Result<Connection>> {
        futures::stream::unfold(self, async |listener| Some((Ok(listener.accept().await), listener)))
    }

    async fn accept(&self) -> Connection {
        loop {
            let accepted = match &self.0 {
                Socket::Unix(listener) => listener.accept().await.map(|(stream, _)| Either::Left(stream)),
                Socket::Tcp(listener) => listener.accept().await.map(|(stream, _)| Either::Right(stream)),
            };
            match accepted {
                Ok(stream) => return Connection(stream),
                // The client closed the connection before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
                }
            }
        }
    }
}

/// Removes the socket at a path. Whether the path is free now: anything else is left.
async fn remove_stale(path: &Path) -> io::Result<bool> {
    match tokio::fs::symlink_metadata(path).await {
        Ok(file) if file.file_type().is_socket() => tokio::fs::remove_file(path).await.map(|()| true),
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

async fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    tokio::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE)).await?;
    Ok(listener)
}

async fn bind_tcp(address: &str) -> io::Result<TcpListener> {
    if let Some(port) = address.strip_prefix(':').and_then(|port| port.parse().ok()) {
        return process::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await;
    }
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in tokio::net::lookup_host(address).await? {
        match process::bind(address).await {
            Err(error) => refused = error,
            bound => return bound,
        }
    }
    Err(refused)
}

/// An accepted connection.
pub(crate) struct Connection(Either<UnixStream, TcpStream>);

/// Handlers do not ask who calls: the socket's mode decides who may.
impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
