//! One proxy for programs that support only one (`HTTPS_PROXY`): Azure's names lead to the simulated Azure, and
//! endpoints of clusters into its networks.

use std::io;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Longer heads are not requests for a tunnel.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Azure's port; API servers of clusters have other ports.
const AZURES_PORT: &str = ":443";

/// Opens it for the lifetime of the runtime and returns its URL; tunnels continue to the proxy of Azure or to that of
/// clusters.
///
/// # Errors
/// It cannot listen, or a URL has another scheme than `http`.
pub async fn start(azure: &str, clusters: &str) -> anyhow::Result<String> {
    let address = |url: &str| url.strip_prefix("http://").map(str::to_owned).context("a proxy's URL");
    let (azure, clusters) = (address(azure)?, address(clusters)?);
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (azure, clusters) = (azure.clone(), clusters.clone());
            // A client that disconnects early needs no answer.
            tokio::spawn(async move { drop(lead(stream, &azure, &clusters).await) });
        }
    });
    Ok(url)
}

async fn lead(mut stream: TcpStream, azure: &str, clusters: &str) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        head.push(stream.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head);
    let endpoint = text.split_whitespace().nth(1).unwrap_or_default();
    let to = if endpoint.ends_with(AZURES_PORT) { azure } else { clusters };
    let mut target = TcpStream::connect(to).await?;
    target.write_all(&head).await?;
    tokio::io::copy_bidirectional(&mut stream, &mut target).await.map(drop)
}
