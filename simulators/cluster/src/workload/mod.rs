//! Workload clusters: machines of the simulated Azure with kubeadm's bootstrap data form clusters.
//!
//! A machine whose data runs `kubeadm init` starts a simulated Kubernetes. Clients reach it only as in Azure: by the
//! cluster's endpoint, which leads through names, load balancers and security groups to a running control plane
//! machine. Machines whose data joins the cluster go the same way, present their token, and become nodes. When a
//! machine goes, its kubelet ends and its Node stays, silent; a cluster without a control plane is deleted.
//!
//! Clusters that Azure manages have their API servers from Azure (`managed.rs`).
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
mod managed;
mod members;
mod options;
mod ports;
mod proxy;
mod registration;
mod resolve;
mod road;
mod state;
mod static_pods;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use azure_simulator::Azure;
use azure_simulator::packet::ProbeAnswers;
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster_api_stand_in::Workloads;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::files::HostError;
pub use options::{Boot, BootPlan, CloudProvider, Outcome, WorkloadOptions};
use road::{Proof, Road};
use state::{Cluster, Inner, Member};
pub use state::{WorkloadCluster, WorkloadClusters};

impl WorkloadCluster {
    /// A client that bypasses all networks.
    pub fn client(&self) -> Client {
        road::direct(&self.kubernetes, &self.token)
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
            begun: (azure.now(), Instant::now()),
            clusters: Mutex::default(),
            boots: Mutex::default(),
            network: Mutex::default(),
        };
        let this = Self { inner: Arc::new(inner) };
        azure.set_guest(Arc::new(this.clone()));
        this.stand_behind_managed_clusters();
        tokio::spawn(stop.run_until_cancelled_owned(members::follow(this.clone())));
        this
    }

    /// All current clusters.
    pub fn clusters(&self) -> Vec<WorkloadCluster> {
        self.inner.clusters.lock().values().map(Cluster::view).collect()
    }

    /// The cluster of this name.
    pub fn cluster(&self, name: &str) -> Option<WorkloadCluster> {
        self.inner.clusters.lock().values().find(|one| one.name == name).map(Cluster::view)
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
        let instance_id = instance.to_string();
        let clusters = self.inner.clusters.lock();
        let found = clusters.values().find_map(|cluster| {
            let is = |member: &&Member| member.machine.to_string().eq_ignore_ascii_case(&instance_id);
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
