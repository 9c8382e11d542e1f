//! Health probes through a private link service begin with a PROXY preamble, which kube-proxy does not understand. This
//! program removes it and forwards the probe.
//!
//! A connection without a preamble is forwarded unchanged, so one port serves both. A probe that kube-proxy does not
//! answer gets 502: the load balancer then marks the node as unhealthy, which it is.
//!
//! User documentation: `docs/health-probe-proxy.md`.

pub mod flags;
mod forward;
pub mod preamble;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, join};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use forward::Forwarder;
use preamble::Start;

/// The timeout of a preamble: it is in the first packet.
const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a request's head, and of an idle connection: some probe intervals.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The limit of a request's head, larger than any probe's.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The limit of concurrent connections: far more than all load balancers need, and few enough for 1024 file
/// descriptors, since each may need a second one for kube-proxy. Others wait in the system's queue.
const MAX_CONNECTIONS: usize = 256;
/// The timeout for open requests after the stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait if the system has no more file descriptors for connections.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A listener on all addresses of both families, because load balancers probe the nodes behind an IPv6 frontend by
/// IPv6. On a machine without IPv6 it listens only on IPv4.
///
/// # Errors
/// The port is in use, or not permitted.
pub async fn bind(port: u16) -> io::Result<TcpListener> {
    process::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await
}

/// Forwards connections until `stop`, and then ends open requests.
pub async fn serve(listener: TcpListener, forwarder: Arc<Forwarder>, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    let accept = async {
        loop {
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let (forwarder, stop) = (Arc::clone(&forwarder), stop.clone());
                    connections.spawn(async move {
                        connection(stream, peer, forwarder, stop).await;
                        drop(place);
                    });
                }
                // Such as a peer that is gone already, or no more file descriptors: both pass.
                Err(_) => sleep(ACCEPT_RETRY_INTERVAL).await,
            }
        }
    };
    stop.run_until_cancelled(accept).await;
    drop(listener);
    connections.close();
    let _cut_off = timeout(STOP_TIMEOUT, connections.wait()).await;
}

async fn connection(stream: TcpStream, peer: SocketAddr, forwarder: Arc<Forwarder>, stop: CancellationToken) {
    // Answers are small: waiting to fill a packet only adds latency.
    let _ = stream.set_nodelay(true);
    let (mut reader, writer) = stream.into_split();
    let opening = stop.run_until_cancelled(timeout(PREAMBLE_TIMEOUT, open(&mut reader))).await;
    // A client that sends nothing, or half a preamble, is not a probe.
    let Some(Ok(Ok(Some(Opening { source, rest })))) = opening else { return };
    // A dual-stack listener shows IPv4 clients as IPv6 addresses.
    let client = source.unwrap_or(peer).ip().to_canonical();
    let stream = TokioIo::new(join(io::Cursor::new(rest).chain(reader), writer));
    let service = service_fn(move |request| {
        let forwarder = Arc::clone(&forwarder);
        async move { Ok::<_, std::convert::Infallible>(forwarder.forward(request, client).await) }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(stream, service);
    tokio::pin!(serving);
    // A client that disconnects needs no handling.
    tokio::select! {
        _ended = serving.as_mut() => {}
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            let _ended = serving.await;
        }
    }
}

/// The beginning of a connection.
struct Opening {
    /// The real client, if a preamble names it.
    source: Option<SocketAddr>,
    /// The bytes read after the preamble.
    rest: Bytes,
}

/// Reads until it is known whether there is a preamble; `None` if the connection ends before that.
async fn open(reader: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<Option<Opening>> {
    let mut bytes = BytesMut::with_capacity(512);
    loop {
        match preamble::parse(&bytes).map_err(io::Error::other)? {
            Start::Incomplete => {
                if reader.read_buf(&mut bytes).await? == 0 {
                    return Ok(None);
                }
            }
            Start::Absent => return Ok(Some(Opening { source: None, rest: bytes.freeze() })),
            Start::Present { length, source } => {
                let rest = bytes.split_off(length).freeze();
                return Ok(Some(Opening { source, rest }));
            }
        }
    }
}
