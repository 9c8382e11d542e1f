//! Serves the ports of a control plane's pods, which clients reach through the API server (`pods/portforward`): the API
//! server itself, with its certificate, and etcd.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};

use azure_simulator::serve;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kubernetes_simulator::{PodConnection, PodPorts};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::etcd::{self, Etcd, Running};
use super::state::{Cluster, Inner, WorkloadClusters};

/// The listeners of one cluster on this machine.
#[derive(Clone)]
pub(super) struct Doors {
    clusters: Weak<Inner>,
    /// The key of the cluster.
    at: String,
    /// The open listeners, by pod and port.
    open: Arc<Mutex<HashMap<String, SocketAddr>>>,
}

/// The program behind a port.
enum Program {
    ApiServer,
    Etcd(Etcd),
}

impl Doors {
    pub(super) fn new(clusters: &WorkloadClusters, at: &str) -> Self {
        Self { clusters: Arc::downgrade(&clusters.inner), at: at.to_owned(), open: Arc::default() }
    }

    /// The program at a port of a pod, its node, and a token that is cancelled when its machine goes.
    fn find(&self, cluster: &Cluster, pod: &str, port: u16) -> Option<(Program, String, CancellationToken)> {
        cluster.members.values().filter(|member| !member.up.is_cancelled()).find_map(|member| {
            let (node, own) = (&member.registration.node, member.api_port?);
            let program = match port {
                etcd::CLIENTS if pod == format!("etcd-{node}") => Program::Etcd(cluster.etcd.clone()),
                _ if port == own && pod == format!("kube-apiserver-{node}") => Program::ApiServer,
                _ => return None,
            };
            Some((program, node.clone(), member.up.clone()))
        })
    }

    async fn door(&self, pod: &str, port: u16) -> Result<SocketAddr, String> {
        let gone = || format!("the machine of {pod} is gone");
        let clusters = WorkloadClusters { inner: self.clusters.upgrade().ok_or_else(gone)? };
        let (found, kubernetes, authority, of_etcd) = {
            let all = clusters.inner.clusters.lock();
            let cluster = all.get(&self.at).ok_or_else(gone)?;
            let found = self.find(cluster, pod, port);
            (
                found,
                cluster.kubernetes.clone(),
                Arc::clone(&cluster.authority),
                cluster.etcd_authority.clone(),
            )
        };
        let refused = || format!("failed to connect to localhost:{port} inside of {pod}: connection refused");
        let (program, node, up) = found.ok_or_else(refused)?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let names = ["localhost", "127.0.0.1", node.as_str(), pod];
        match program {
            Program::ApiServer => kubernetes
                .serve_https_as(&authority, &names, any, up)
                .await
                .map_err(|error| error.to_string()),
            Program::Etcd(etcd) => {
                let authority = of_etcd.ok_or_else(refused)?;
                let tls = authority.server_config_for_clients(&names).map_err(|error| error.to_string())?;
                let this = self.clone();
                let router = etcd.router(&node, move || this.running());
                let server = serve::serve(any, router, Some(tls), up).await;
                server.map(|server| server.address()).map_err(|error| error.to_string())
            }
        }
    }

    /// The running members of etcd, with their addresses.
    fn running(&self) -> Running {
        let Some(inner) = self.clusters.upgrade() else { return Running::new() };
        let clusters = inner.clusters.lock();
        let members = clusters.get(&self.at).into_iter().flat_map(|cluster| cluster.members.values());
        let runs = members.filter(|member| member.api_port.is_some() && !member.up.is_cancelled());
        runs.map(|member| {
            let address = member.node.as_ref().and_then(|node| node.internal_ips.first().copied());
            (member.registration.node.clone(), address)
        })
        .collect()
    }

    async fn open(&self, pod: &str, port: u16) -> Result<TcpStream, String> {
        let key = format!("{pod}:{port}");
        let mut open = self.open.lock().await;
        if let Some(door) = open.get(&key) {
            // The listener of a machine that was stopped meanwhile is closed.
            if let Ok(stream) = TcpStream::connect(door).await {
                return Ok(stream);
            }
        }
        let door = self.door(pod, port).await?;
        open.insert(key, door);
        TcpStream::connect(door).await.map_err(|error: io::Error| error.to_string())
    }
}

impl PodPorts for Doors {
    fn connect(&self, namespace: &str, pod: &str, port: u16) -> BoxFuture<'static, PodConnection> {
        let (this, pod) = (self.clone(), pod.to_owned());
        let is_there = namespace == "kube-system";
        async move {
            if !is_there {
                return Err(format!("nothing runs in the pods of a simulated Kubernetes: {pod}"));
            }
            let stream = this.open(&pod, port).await?;
            Ok(Box::pin(stream) as _)
        }
        .boxed()
    }
}
