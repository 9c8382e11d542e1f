//! A proxy into Azure's networks: programs with `HTTPS_PROXY` reach API servers under the clusters' own endpoints.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use kubernetes_simulator::Kubernetes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::resolve;
use super::state::WorkloadClusters;
use crate::files::HostError;

/// Longer heads are cut off: they are not requests for a tunnel.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// Listeners for API servers, by the cluster's authority and the requested host: the certificate names that host.
type Doors = Arc<Mutex<HashMap<(String, String), SocketAddr>>>;

impl WorkloadClusters {
    /// Opens a proxy for programs on this machine that manage clusters and are configured with `HTTPS_PROXY`. Returns
    /// its address. Hosts outside this Azure's networks are led to `others`. A tunnel (CONNECT) to the endpoint of a
    /// cluster goes by names, load balancers and security groups to the API server of a machine, with a certificate of
    /// the cluster's authority, and breaks when that machine goes. Clients present the administrator's token or a
    /// certificate of that authority.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn proxy(
        &self,
        address: SocketAddr,
        others: Option<SocketAddr>,
    ) -> Result<SocketAddr, HostError> {
        let failed = |error: io::Error| HostError::Listen(format!("cannot listen for tunnels: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (this, doors) = (self.clone(), Doors::default());
        let stop = self.inner.stop.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (this, doors) = (this.clone(), Arc::clone(&doors));
                // If the client is gone, an error needs no report.
                tokio::spawn(async move { drop(this.lead(stream, doors, others).await) });
            }
        }));
        Ok(bound)
    }

    async fn lead(&self, mut stream: TcpStream, doors: Doors, others: Option<SocketAddr>) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head);
        let mut words = head.split_whitespace();
        let (Some("CONNECT"), Some(endpoint)) = (words.next(), words.next()) else {
            return stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n").await;
        };
        if let Some(others) = others.filter(|_| !self.knows(endpoint)) {
            let mut target = TcpStream::connect(others).await?;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            return tokio::io::copy_bidirectional(&mut stream, &mut target).await.map(drop);
        }
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

    /// Whether a host is an address, the API server of a managed cluster, or a name that resolves for managers of
    /// clusters in Azure's networks.
    fn knows(&self, endpoint: &str) -> bool {
        let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host).trim_matches(['[', ']']);
        self.managed_at(host).is_some()
            || resolve::resolve(&self.inner.azure, &self.inner.options.management, &BTreeMap::new(), host)
                .is_ok()
    }

    /// The listener of the API server behind this endpoint.
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
        let address = (std::net::Ipv4Addr::LOCALHOST, 0).into();
        let opened = kubernetes.serve_https_as(&authority, &[host], address, stop).await;
        let opened = opened.map_err(|error| error.to_string())?;
        doors.insert(key, opened);
        Ok(opened)
    }
}
