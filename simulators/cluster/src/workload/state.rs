//! The state of workload clusters, and the ways of packets to their API servers.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use azure_simulator::Azure;
use azure_simulator::packet::{Hop, Network, Packet, Protocol, Source};
use azure_types::ResourceId;
use certificate_authority::CertificateAuthority;
use kubernetes_simulator::Kubernetes;
use parking_lot::Mutex;
use stand_ins::Machine;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::etcd::Etcd;
use super::options::WorkloadOptions;
use super::registration::Registration;
use super::resolve;
use crate::node_answers::NodeAnswers;

/// The result of bootstrapping; `None` while it goes on.
pub(super) type Bootstrapped = Option<Result<(), String>>;

/// A machine that belongs to a cluster.
pub(super) struct Member {
    pub(super) machine: ResourceId,
    /// The node as of the last check of its machine; `None` while it has no address.
    pub(super) node: Option<Machine>,
    /// kubeadm's configuration of the node.
    pub(super) registration: Registration,
    /// The port of its API server, if it runs one.
    pub(super) api_port: Option<u16>,
    /// Cancelled when the machine goes or stops.
    pub(super) up: CancellationToken,
}

pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) endpoint: String,
    pub(super) kubernetes: Kubernetes,
    pub(super) token: String,
    pub(super) authority: Arc<CertificateAuthority>,
    /// The authority's certificate and key as they are in kubeadm's files, as PEM.
    pub(super) authority_files: (String, String),
    pub(super) etcd: Etcd,
    /// `None` if etcd is external.
    pub(super) etcd_authority: Option<Arc<CertificateAuthority>>,
    /// By the host name of the machine.
    pub(super) members: BTreeMap<String, Member>,
    pub(super) changed: watch::Sender<u64>,
    /// `None` until its controllers run.
    pub(super) answers: Option<NodeAnswers>,
    /// The managed cluster whose API server Azure runs; `None` if the cluster's own machines run it.
    pub(super) managed: Option<ResourceId>,
    /// The machines of a managed cluster's pools.
    pub(super) pooled: Vec<Machine>,
    pub(super) stop: CancellationToken,
}

/// A workload cluster, for tests.
#[derive(Debug, Clone)]
pub struct WorkloadCluster {
    /// Its name in kubeadm's configuration; the name of a managed cluster.
    pub name: String,
    /// Its endpoint, `host:port`.
    pub endpoint: String,
    /// Its Kubernetes, bypassing all networks.
    pub kubernetes: Kubernetes,
    /// The administrator's token.
    pub token: String,
    /// The certificate of its authority and the authority's key, as PEM.
    pub authority: (String, String),
}

impl Cluster {
    pub(super) fn view(&self) -> WorkloadCluster {
        WorkloadCluster {
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            kubernetes: self.kubernetes.clone(),
            token: self.token.clone(),
            authority: self.authority_files.clone(),
        }
    }
}

pub(super) struct Inner {
    pub(super) azure: Azure,
    pub(super) options: WorkloadOptions,
    pub(super) stop: CancellationToken,
    /// The time in Azure at the start.
    pub(super) begun: (jiff::Timestamp, Instant),
    /// By their authority's certificate: two clusters may have the same name and private endpoint.
    pub(super) clusters: Mutex<BTreeMap<String, Cluster>>,
    /// The results of bootstrapping by machine ID in lower case; `None` while it goes on.
    pub(super) boots: Mutex<HashMap<String, watch::Receiver<Bootstrapped>>>,
    /// The network as of a revision of Azure.
    pub(super) network: Mutex<Option<(u64, Arc<Network>)>>,
}

/// All workload clusters of a simulated Azure. Clones are handles to the same.
#[derive(Clone)]
pub struct WorkloadClusters {
    pub(super) inner: Arc<Inner>,
}

impl fmt::Debug for WorkloadClusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.inner.clusters.lock().values().map(|one| one.name.clone()).collect();
        f.debug_struct("WorkloadClusters").field("clusters", &names).finish()
    }
}

impl WorkloadClusters {
    /// The authority of a cluster, and a token that is cancelled when the cluster goes.
    pub(super) fn authority(&self, cluster: &str) -> Option<(Arc<CertificateAuthority>, CancellationToken)> {
        let clusters = self.inner.clusters.lock();
        let found = clusters.get(cluster)?;
        Some((Arc::clone(&found.authority), found.stop.clone()))
    }

    pub(super) fn network(&self) -> Arc<Network> {
        let revision = *self.inner.azure.subscribe().borrow();
        let mut cached = self.inner.network.lock();
        match &*cached {
            Some((of, network)) if *of == revision => Arc::clone(network),
            _ => {
                let network = Arc::new(Network::read(&self.inner.azure).with_seed(self.inner.options.seed));
                *cached = Some((revision, Arc::clone(&network)));
                network
            }
        }
    }

    /// The end of a TCP connection: the host name of a machine and the port there.
    ///
    /// # Errors
    /// Why it does not arrive.
    pub(super) fn reach(&self, from: &Source, to: IpAddr, port: u16) -> Result<(String, u16), String> {
        let packet = Packet::new(from.clone(), to, port, Protocol::Tcp);
        let verdict = self.network().trace(self, &packet);
        if !verdict.arrives {
            return Err(verdict.sentence().to_owned());
        }
        let arrived = verdict.hops.iter().find_map(|hop| match hop {
            Hop::Arrived { node, port, .. } => Some((node.to_ascii_lowercase(), *port)),
            _ => None,
        });
        arrived.ok_or_else(|| format!("no machine has the address {to}"))
    }

    /// Resolves the API server at `host:port` as seen from `from`: the key of its cluster, its Kubernetes, and a token
    /// that is cancelled when the machine goes.
    ///
    /// # Errors
    /// Why there is no API server.
    pub(super) fn api_server(
        &self,
        from: &Source,
        hosts: &BTreeMap<String, IpAddr>,
        endpoint: &str,
    ) -> Result<(String, Kubernetes, CancellationToken), String> {
        let (host, port) = endpoint.rsplit_once(':').ok_or_else(|| format!("{endpoint} has no port"))?;
        let port: u16 = port.parse().map_err(|_| format!("{endpoint} has no port"))?;
        if let Some(managed) = self.managed_at(host) {
            return self.managed_api_server(&managed, port);
        }
        let address = resolve::resolve(&self.inner.azure, from, hosts, host.trim_matches(['[', ']']))?;
        let (node, port) = match (address.is_loopback(), from) {
            (true, Source::Node { node }) => (node.to_ascii_lowercase(), port),
            _ => self.reach(from, address, port)?,
        };
        let clusters = self.inner.clusters.lock();
        let found = clusters.iter().find_map(|(at, cluster)| {
            let member = cluster.members.get(&node)?;
            (member.api_port == Some(port) && !member.up.is_cancelled())
                .then(|| (at.clone(), cluster.kubernetes.clone(), member.up.clone()))
        });
        found.ok_or_else(|| format!("connection refused: no API server on {node}, port {port}"))
    }
}
