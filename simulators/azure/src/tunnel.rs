//! A proxy that leads every tunnel (CONNECT) to one address: programs that honour `HTTPS_PROXY` reach the simulators
//! under Azure's own names, without a change to the programs or the machine.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Longer heads are cut off: they are not requests for a tunnel.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// How many heads are remembered; the oldest are forgotten first.
const MAX_HEADS: usize = 4096;

/// A proxy on this machine. It stops with the token that it was started with.
#[derive(Debug, Clone)]
pub struct Tunnels {
    address: SocketAddr,
    asked: Arc<Mutex<VecDeque<String>>>,
}

impl Tunnels {
    /// Opens a proxy on any port.
    ///
    /// # Errors
    ///
    /// No port can be opened.
    pub async fn start(to: SocketAddr, stop: CancellationToken) -> io::Result<Self> {
        Self::start_at((std::net::Ipv4Addr::LOCALHOST, 0).into(), to, stop).await
    }

    /// Opens a proxy on a given address.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on.
    pub async fn start_at(address: SocketAddr, to: SocketAddr, stop: CancellationToken) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let tunnels = Self { address: listener.local_addr()?, asked: Arc::default() };
        let asked = Arc::clone(&tunnels.asked);
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let asked = Arc::clone(&asked);
                // A client that disconnects early needs no answer.
                tokio::spawn(async move { drop(lead(stream, to, &asked).await) });
            }
        }));
        Ok(tunnels)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The heads of the last requests.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().iter().cloned().collect()
    }
}

async fn lead(mut stream: TcpStream, to: SocketAddr, asked: &Mutex<VecDeque<String>>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let is_tunnel = head.starts_with("CONNECT ");
    {
        let mut asked = asked.lock();
        if asked.len() == MAX_HEADS {
            asked.pop_front();
        }
        asked.push_back(head);
    }
    if !is_tunnel {
        return stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n").await;
    }
    let mut target = TcpStream::connect(to).await?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    tokio::io::copy_bidirectional(&mut stream, &mut target).await.map(drop)
}
