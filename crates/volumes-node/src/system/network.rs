//! Questions to the network, to find out why a share cannot be mounted.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// How long an answer may take. Within a region it takes milliseconds.
const LIMIT: Duration = Duration::from_secs(5);

fn late(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("{what} took longer than {} s", LIMIT.as_secs()))
}

/// The addresses of a name.
pub(super) async fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    let found = timeout(LIMIT, lookup_host((host, 0))).await.map_err(|_| late("the answer of DNS"))??;
    Ok(found.map(|address| address.ip()).collect())
}

/// Whether a connection can be made.
pub(super) async fn reach(address: SocketAddr) -> io::Result<()> {
    timeout(LIMIT, TcpStream::connect(address)).await.map_err(|_| late("a connection"))?.map(drop)
}
