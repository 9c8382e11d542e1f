//! Workload clusters: machines of the simulated Azure with kubeadm's bootstrap data form clusters.
//!
//! A machine whose data runs `kubeadm init` starts a simulated Kubernetes. Clients reach it only as in Azure: by the
//! cluster's endpoint, which leads through names, load balancers and security groups to a running control plane
//! machine. Machines whose data joins the cluster go the same way, present their token, and become nodes. When a
//! machine goes, its kubelet ends and its Node stays, silent; a cluster without a control plane is deleted.
//!
//! kubeadm itself does not run. Left out: its other phases and arguments, etcd's data (a cluster lives as long as one
//! of its control plane machines), the commands before and after kubeadm except for lines that go to `/etc/hosts`, and
//! Ignition. An API server accepts the administrator's token, which is derived from the key of its authority, and
//! client certificates that the authority has signed. The control plane's pods are in `static_pods.rs`, `ports.rs` and
//! `etcd.rs`.

mod boot;
mod cloud_config;
mod etcd;
mod hash;
mod join;
mod members;
mod ports;
mod proxy;
mod resolve;
mod road;
mod static_pods;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::packet::{Network, Packet, ProbeAnswers, Protocol, Source};
use azure_simulator::{Azure, GuestStart};
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::CertificateAuthority;
use cluster_api_stand_in::Workloads;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use kubernetes_simulator::Kubernetes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use stand_ins::{Machine, Pace};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::files::HostError;
use crate::node_answers::NodeAnswers;
use road::{Proof, Road};

/// How a machine boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Time until the operating system runs and Azure's agent answers.
    pub system: Duration,
    /// Time that a successful kubeadm takes after that.
    pub bootstrap: Duration,
    /// The outcome of the boot.
    pub outcome: Outcome,
}

/// The outcome of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Success, if the network and the data allow it.
    Works,
    /// The operating system does not start, for this reason.
    SystemFails(String),
    /// kubeadm fails, for this reason.
    BootstrapFails(String),
    /// kubeadm never ends.
    Hangs,
}

impl Default for Boot {
    /// A minute in all: half of it for the system.
    fn default() -> Self {
        let half = Duration::from_secs(30);
        Self { system: half, bootstrap: half, outcome: Outcome::Works }
    }
}

/// Decides how each machine boots.
pub type BootPlan = Arc<dyn Fn(&GuestStart) -> Boot + Send + Sync>;

/// The result of bootstrapping; `None` while it goes on.
type Bootstrapped = Option<Result<(), String>>;

/// The component that sets the nodes' provider IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloudProvider {
    /// An unseen cloud controller manager, which has done so when a node appears.
    #[default]
    Unseen,
    /// A real one: nodes whose kubelets have `cloud-provider: external` wait for it, with the taint for that.
    Awaited,
}

/// Options of workload clusters.
#[derive(Clone)]
pub struct WorkloadOptions {
    /// Seed of everything random in them, together with a cluster's name.
    pub seed: u64,
    /// How machines boot.
    pub boot: BootPlan,
    /// The intervals of kubelets and of the node monitor.
    pub pace: Pace,
    /// The network location of the programs that manage the clusters.
    pub management: Source,
    /// The component that sets the nodes' provider IDs.
    pub cloud_provider: CloudProvider,
}

impl fmt::Debug for WorkloadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkloadOptions").field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl Default for WorkloadOptions {
    /// Seed 1, boots of a minute, managed from somewhere on the internet, an unseen cloud controller manager.
    fn default() -> Self {
        Self {
            seed: 1,
            boot: Arc::new(|_| Boot::default()),
            pace: Pace::default(),
            management: Source::internet(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7))),
            cloud_provider: CloudProvider::default(),
        }
    }
}

/// A machine that belongs to a cluster.
struct Member {
    machine: ResourceId,
    /// The node as of the last check of its machine; `None` while it has no address.
    node: Option<Machine>,
    /// kubeadm's configuration of the node.
    registration: members::Registration,
    /// The port of its API server, if it runs one.
    api_port: Option<u16>,
    /// Cancelled when the machine goes or stops.
    up: CancellationToken,
}

struct Cluster {
    name: String,
    endpoint: String,
    kubernetes: Kubernetes,
    token: String,
    authority: Arc<CertificateAuthority>,
    /// The authority's certificate and key as they are in kubeadm's files, as PEM.
    authority_files: (String, String),
    etcd: etcd::Etcd,
    /// `None` if etcd is external.
    etcd_authority: Option<Arc<CertificateAuthority>>,
    /// By the host name of the machine.
    members: BTreeMap<String, Member>,
    changed: watch::Sender<u64>,
    answers: Option<NodeAnswers>,
    stop: CancellationToken,
}

/// A workload cluster, for tests.
#[derive(Debug, Clone)]
pub struct WorkloadCluster {
    /// Its name in kubeadm's configuration.
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

impl WorkloadCluster {
    /// A client that bypasses all networks.
    pub fn client(&self) -> Client {
        road::direct(&self.kubernetes, &self.token)
    }
}

struct Inner {
    azure: Azure,
    options: WorkloadOptions,
    stop: CancellationToken,
    /// By their authority's certificate: two clusters may have the same name and private endpoint.
    clusters: Mutex<BTreeMap<String, Cluster>>,
    /// The results of bootstrapping by machine ID in lower case; `None` while it goes on.
    boots: Mutex<HashMap<String, watch::Receiver<Bootstrapped>>>,
    /// The network as of a revision of Azure.
    network: Mutex<Option<(u64, Arc<Network>)>>,
}

/// All workload clusters of a simulated Azure. Clones are handles to the same.
#[derive(Clone)]
pub struct WorkloadClusters {
    inner: Arc<Inner>,
}

impl fmt::Debug for WorkloadClusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.inner.clusters.lock().values().map(|one| one.name.clone()).collect();
        f.debug_struct("WorkloadClusters").field("clusters", &names).finish()
    }
}

impl WorkloadClusters {
    /// Simulates the software on all machines of `azure` from now on, until `stop`. Must be called within a tokio
    /// runtime, once for each Azure.
    pub fn start(azure: Azure, options: WorkloadOptions, stop: CancellationToken) -> Self {
        let inner = Inner {
            azure: azure.clone(),
            options,
            stop: stop.clone(),
            clusters: Mutex::default(),
            boots: Mutex::default(),
            network: Mutex::default(),
        };
        let this = Self { inner: Arc::new(inner) };
        azure.set_guest(Arc::new(this.clone()));
        tokio::spawn(stop.run_until_cancelled_owned(members::follow(this.clone())));
        this
    }

    /// All current clusters.
    pub fn clusters(&self) -> Vec<WorkloadCluster> {
        self.inner.clusters.lock().values().map(Cluster::seen).collect()
    }

    /// The cluster of this name.
    pub fn cluster(&self, name: &str) -> Option<WorkloadCluster> {
        self.inner.clusters.lock().values().find(|one| one.name == name).map(Cluster::seen)
    }

    /// The result of a machine's bootstrapping; `None` while it goes on, or if there was none.
    pub fn bootstrapped(&self, machine: &ResourceId) -> Option<Result<(), String>> {
        let boots = self.inner.boots.lock();
        boots.get(&machine.to_string().to_lowercase())?.borrow().clone()
    }

    /// A client that goes through Azure's network: from the location of the managing programs to this endpoint
    /// (`host:port`), with this token. Its requests fail while no API server answers there.
    pub fn client(&self, endpoint: &str, token: &str) -> Client {
        Road::client(self.clone(), endpoint.to_owned(), Proof::Token(token.to_owned()))
    }

    /// Serves the API of a cluster on a socket of this machine, bypassing Azure's networks, as long as the cluster
    /// exists: for kubectl and other programs. Returns a kubeconfig (YAML) for it with the context `name`; it is a
    /// secret.
    ///
    /// # Errors
    /// The cluster is gone, or the listener cannot be opened.
    pub async fn serve(
        &self,
        cluster: &WorkloadCluster,
        name: &str,
        address: SocketAddr,
    ) -> Result<String, HostError> {
        let WorkloadCluster { kubernetes, token, authority: (certificate, _), .. } = cluster.clone();
        let (authority, stop) = self
            .authority(&certificate)
            .ok_or_else(|| HostError::Kubernetes(format!("there is no cluster {name}")))?;
        let names = ["127.0.0.1", "localhost", "::1"];
        let bound = kubernetes.serve_https_as(&authority, &names, address, stop).await;
        let server = format!("https://{}", bound.map_err(|error| HostError::Kubernetes(error.to_string()))?);
        let cluster = json!({"server": server, "certificate-authority-data": STANDARD.encode(certificate)});
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "administrator"}}],
            "users": [{"name": "administrator", "user": {"token": token}}]});
        serde_saphyr::to_string(&config).map_err(|error| HostError::Kubernetes(error.to_string()))
    }

    /// The authority of a cluster, and a token that is cancelled when the cluster goes.
    fn authority(&self, cluster: &str) -> Option<(Arc<CertificateAuthority>, CancellationToken)> {
        let clusters = self.inner.clusters.lock();
        let found = clusters.get(cluster)?;
        Some((Arc::clone(&found.authority), found.stop.clone()))
    }

    fn network(&self) -> Arc<Network> {
        let revision = *self.inner.azure.subscribe().borrow();
        let mut kept = self.inner.network.lock();
        match &*kept {
            Some((of, network)) if *of == revision => Arc::clone(network),
            _ => {
                let network = Arc::new(Network::read(&self.inner.azure).with_seed(self.inner.options.seed));
                *kept = Some((revision, Arc::clone(&network)));
                network
            }
        }
    }

    /// The end of a TCP connection: the host name of a machine and the port there.
    ///
    /// # Errors
    /// Why it does not arrive.
    fn reach(&self, from: &Source, to: IpAddr, port: u16) -> Result<(String, u16), String> {
        let packet = Packet::new(from.clone(), to, port, Protocol::Tcp);
        let verdict = self.network().trace(self, &packet);
        if !verdict.arrives {
            return Err(verdict.sentence().to_owned());
        }
        let arrived = verdict.hops.iter().find_map(|hop| match hop {
            azure_simulator::packet::Hop::Arrived { node, port, .. } => {
                Some((node.to_ascii_lowercase(), *port))
            }
            _ => None,
        });
        arrived.ok_or_else(|| format!("no machine has the address {to}"))
    }

    /// Resolves the API server at `host:port` as seen from `from`: the key of its cluster, its Kubernetes, and a token
    /// that is cancelled when the machine goes.
    ///
    /// # Errors
    /// Why there is no API server.
    fn api_server(
        &self,
        from: &Source,
        hosts: &BTreeMap<String, IpAddr>,
        endpoint: &str,
    ) -> Result<(String, Kubernetes, CancellationToken), String> {
        let (host, port) = endpoint.rsplit_once(':').ok_or_else(|| format!("{endpoint} has no port"))?;
        let port: u16 = port.parse().map_err(|_| format!("{endpoint} has no port"))?;
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

impl Cluster {
    fn seen(&self) -> WorkloadCluster {
        WorkloadCluster {
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            kubernetes: self.kubernetes.clone(),
            token: self.token.clone(),
            authority: self.authority_files.clone(),
        }
    }
}

impl ProbeAnswers for WorkloadClusters {
    fn answers(
        &self,
        instance: &ResourceId,
        address: IpAddr,
        protocol: &str,
        port: u16,
        path: Option<&str>,
    ) -> bool {
        let asked = instance.to_string();
        let clusters = self.inner.clusters.lock();
        let found = clusters.values().find_map(|cluster| {
            let is = |member: &&Member| member.machine.to_string().eq_ignore_ascii_case(&asked);
            Some((cluster, cluster.members.values().find(is)?))
        });
        let Some((cluster, member)) = found else { return false };
        if member.api_port == Some(port) {
            // These paths are open to every client; the others need a token.
            let open = path.is_none_or(|path| ["/readyz", "/livez", "/healthz", "/version"].contains(&path));
            return open && !member.up.is_cancelled();
        }
        let answers = cluster.answers.clone();
        drop(clusters);
        answers.is_some_and(|answers| answers.answers(instance, address, protocol, port, path))
    }
}

impl Workloads for WorkloadClusters {
    fn client<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        endpoint: &'a str,
        kubeconfig: &'a str,
    ) -> BoxFuture<'a, Option<Client>> {
        async move {
            let config: Value = serde_saphyr::from_str(kubeconfig).ok()?;
            let proof = Proof::of_user(&config["users"][0]["user"])?;
            Some(Road::client(self.clone(), endpoint.to_owned(), proof))
        }
        .boxed()
    }
}
