//! A proxy into Azure's networks: programs that honour `HTTPS_PROXY` reach API servers under the clusters' own endpoints.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use azure_simulator::serve;
use certificate_authority::CertificateAuthority;
use kubernetes_simulator::Kubernetes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::WorkloadClusters;
use crate::files::{HostError, certificates, listen};

/// Longer heads are cut off: they are no requests for a tunnel.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// Listeners for API servers, by the cluster's authority and the host by which it was asked for: certificates name that host.
type Doors = Arc<Mutex<HashMap<(String, String), SocketAddr>>>;

impl WorkloadClusters {
    /// Opens a proxy for programs on this machine that manage clusters and are told of it by `HTTPS_PROXY`, and gives the
    /// address where it listens. A tunnel (CONNECT) to the endpoint of a cluster goes by names, load balancers and security
    /// groups to the API server of a machine, with a certificate of the cluster's authority, and breaks when that machine goes.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn proxy(&self, address: SocketAddr) -> Result<SocketAddr, HostError> {
        let failed = |error: io::Error| HostError::Listen(format!("cannot listen for tunnels: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (this, doors) = (self.clone(), Doors::default());
        let stop = self.inner.stop.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (this, doors) = (this.clone(), Arc::clone(&doors));
                // Whoever goes away early has no use for an answer.
                tokio::spawn(async move { drop(this.lead(stream, doors).await) });
            }
        }));
        Ok(bound)
    }

    async fn lead(&self, mut stream: TcpStream, doors: Doors) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head);
        let mut words = head.split_whitespace();
        let (Some("CONNECT"), Some(endpoint)) = (words.next(), words.next()) else {
            return stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n").await;
        };
        let found = self.api_server(&self.inner.options.management, &BTreeMap::new(), endpoint);
        let opened = match found {
            Ok((cluster, kubernetes, up)) => {
                self.door(&doors, cluster, endpoint, kubernetes).await.map(|door| (door, up))
            }
            Err(why) => Err(why),
        };
        let (door, up) = match opened {
            Ok(opened) => opened,
            Err(why) => {
                let length = why.len();
                let answer = format!("HTTP/1.1 502 Bad Gateway\r\nContent-Length: {length}\r\n\r\n{why}");
                return stream.write_all(answer.as_bytes()).await;
            }
        };
        let mut target = TcpStream::connect(door).await?;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        let copied = up.run_until_cancelled_owned(tokio::io::copy_bidirectional(&mut stream, &mut target));
        copied.await.transpose().map(drop)
    }

    /// Where the API server of a cluster listens for those who ask for it by this endpoint.
    async fn door(
        &self,
        doors: &Doors,
        cluster: String,
        endpoint: &str,
        kubernetes: Kubernetes,
    ) -> Result<SocketAddr, String> {
        let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host).trim_matches(['[', ']']);
        let mut doors = doors.lock().await;
        let key = (cluster, host.to_owned());
        if let Some(door) = doors.get(&key) {
            return Ok(*door);
        }
        let (authority, stop) = self.authority(&key.0).ok_or("the cluster is gone")?;
        let opened = serve_as(&authority, host, kubernetes, stop).await.map_err(|error| error.to_string())?;
        doors.insert(key, opened);
        Ok(opened)
    }

    /// Certificate and key of a cluster's authority, and what is cancelled when it goes.
    fn authority(&self, cluster: &str) -> Option<((String, String), CancellationToken)> {
        let clusters = self.inner.clusters.lock();
        let found = clusters.get(cluster)?;
        Some((found.authority.clone(), found.stop.clone()))
    }
}

async fn serve_as(
    (certificate, key): &(String, String),
    host: &str,
    kubernetes: Kubernetes,
    stop: CancellationToken,
) -> Result<SocketAddr, HostError> {
    let authority = CertificateAuthority::from_kept(certificate, key).map_err(certificates)?;
    let tls = authority.server_config(&[host]).map_err(certificates)?;
    let address = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let server = serve::serve(address, kubernetes.router(), Some(tls), stop).await.map_err(listen)?;
    Ok(server.address())
}
