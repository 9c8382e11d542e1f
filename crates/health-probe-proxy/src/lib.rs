//! Health probes that come through a private link service begin with a PROXY preamble, which kube-proxy does not
//! understand. This takes it off and forwards the probe.
//!
//! A connection without a preamble is forwarded as it is, so one port serves both. A probe that kube-proxy does not
//! answer gets 502: the load balancer then takes the node for unhealthy, which it is.
//!
//! What users read of it: `docs/health-probe-proxy.md`.

pub mod flags;
mod forward;
pub mod preamble;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt as _, join};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use forward::Forwarder;
use preamble::Start;

/// How long a preamble may take to come: it is in the first packet.
const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the head of a request may take, and how long a connection may wait for its next one: some probe intervals.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// A head beyond this is no probe.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Connections at a time: far more than all load balancers probe with, and few enough for 1024 file descriptors, since
/// each may need a second one for kube-proxy. Others wait in the system's queue.
const MAX_CONNECTIONS: usize = 256;
/// How long open requests may take to finish once the program stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more file descriptors for connections.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A listener at all addresses of both families, because load balancers probe the nodes behind an IPv6 frontend by IPv6. On a
/// machine without IPv6 it listens by IPv4 alone.
///
/// # Errors
/// The port is taken, or may not be used.
pub async fn bind(port: u16) -> io::Result<TcpListener> {
    match bind_both_families(port) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        done => done,
    }
}

fn bind_both_families(port: u16) -> io::Result<TcpListener> {
    const WAITING_CONNECTIONS: i32 = 1024;
    let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_only_v6(false)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
    socket.listen(WAITING_CONNECTIONS)?;
    TcpListener::from_std(socket.into())
}

/// Forwards what comes in until told to stop, and then ends what is under way.
pub async fn serve(listener: TcpListener, forwarder: Arc<Forwarder>, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    let accept = async {
        loop {
            // It is never closed.
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
    // Whoever sends nothing, or half a preamble, is no probe.
    let Some(Ok(Ok(Some(Opening { source, rest })))) = opening else { return };
    // A listener for both families shows clients of IPv4 as addresses of IPv6.
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
    // A client that breaks off is none of our concern.
    tokio::select! {
        _ended = serving.as_mut() => {}
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            let _ended = serving.await;
        }
    }
}

/// How a connection began.
struct Opening {
    /// Who really connects, if a preamble says so.
    source: Option<SocketAddr>,
    /// What was read beyond the preamble.
    rest: Bytes,
}

/// Reads until it is known whether there is a preamble; `None` where the connection ends before that.
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
