//! Listeners on both address families.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// How many connections the system keeps until they are accepted.
const WAITING_CONNECTIONS: i32 = 1024;

/// Binds a listener. The unspecified address of either family means all addresses of both, as in Go programs: kubelets
/// of dual-stack and IPv6 clusters probe over IPv6.
///
/// # Errors
/// The address is in use, or not permitted.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip().is_unspecified() {
        match bind_both_families(address.port()) {
            // This host has no IPv6, and the requested address is IPv4.
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
    socket.listen(WAITING_CONNECTIONS)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

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
}
