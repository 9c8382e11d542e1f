//! A management cluster on sockets: Kubernetes with a stand-in for Cluster API's core, the Azure in which clusters are made, and
//! the workload clusters that its machines become. What makes the infrastructure is not part of it.

use azure_simulator::Azure;
use azure_simulator::packet::{FlowPlan, FlowReport, Packet, Verdict};
use azure_simulator::page::{AzurePage, PageSource};
use azure_simulator::view::{ClusterView, Topology};
use cluster_api_stand_in::Part;
use kube::Client;
use kubernetes_simulator::Kubernetes;
use tokio::sync::watch;
use tokio::time::{Duration, interval};
use tokio_util::sync::CancellationToken;

use crate::cluster_api::play_cluster_api;
use crate::files::HostError;
use crate::hosted::client_of;
use crate::hosted_azure::{HostedAzure, HostedAzureOptions};
use crate::hosted_kubernetes::{HostedKubernetes, HostedKubernetesOptions};
use crate::progress::Objects;
use crate::workload::{WorkloadClusters, WorkloadOptions};

/// How a management cluster is served.
#[derive(Debug, Clone)]
pub struct HostedManagementOptions {
    /// Azure.
    pub azure: HostedAzureOptions,
    /// Kubernetes.
    pub kubernetes: HostedKubernetesOptions,
    /// The clusters that machines become.
    pub workloads: WorkloadOptions,
}

/// A served management cluster. It stops with the token that it was started with.
pub struct HostedManagement {
    /// Azure.
    pub azure: HostedAzure,
    /// Kubernetes.
    pub kubernetes: HostedKubernetes,
    /// A client of Kubernetes.
    pub client: Client,
    /// The clusters that machines become.
    pub workloads: WorkloadClusters,
}

impl std::fmt::Debug for HostedManagement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostedManagement").field("azure", &self.azure.http).finish_non_exhaustive()
    }
}

impl HostedManagement {
    /// Opens all listeners, installs the kinds of Cluster API's core and starts its controllers.
    ///
    /// # Errors
    /// The first thing that cannot be done.
    pub async fn start(
        options: HostedManagementOptions,
        stop: &CancellationToken,
    ) -> Result<Self, HostError> {
        let HostedManagementOptions { azure, kubernetes, workloads } = options;
        let seed = kubernetes.seed;
        let kubernetes = HostedKubernetes::start(kubernetes, stop).await?;
        let mut played = None;
        let api = kubernetes.kubernetes.clone();
        let azure = HostedAzure::start_with_page(azure, stop, |azure| {
            let clusters = WorkloadClusters::start(azure.clone(), workloads, stop.clone());
            played = Some(clusters.clone());
            Page::new(azure, api, clusters, stop)
        })
        .await?;
        let workloads =
            played.ok_or_else(|| HostError::Kubernetes("no workload clusters were started".to_owned()))?;

        let client = client_of(&kubernetes.kubeconfig_text).await?;
        let clock = kubernetes.kubernetes.clock();
        play_cluster_api(Part::ALL, &client, &workloads, clock, seed, stop).await?;
        Ok(Self { azure, kubernetes, client, workloads })
    }

    /// How far the clusters are, each as a tree.
    pub fn clusters(&self) -> Vec<ClusterView> {
        clusters(&self.kubernetes.kubernetes, &self.workloads)
    }
}

fn clusters(management: &Kubernetes, workloads: &WorkloadClusters) -> Vec<ClusterView> {
    let workloads = workloads.clusters();
    Objects::read(management, workloads.iter().map(|cluster| &cluster.kubernetes)).clusters()
}

/// How often it is looked whether objects have changed that the page shows.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The page's view of Azure and of the clusters in it.
struct Page {
    azure: AzurePage<WorkloadClusters>,
    management: Kubernetes,
    workloads: WorkloadClusters,
    changed: watch::Receiver<u64>,
}

impl Page {
    fn new(
        azure: &Azure,
        management: Kubernetes,
        workloads: WorkloadClusters,
        stop: &CancellationToken,
    ) -> Self {
        let (changes, changed) = watch::channel(0);
        let mut in_azure = azure.subscribe();
        let (api, made) = (management.clone(), workloads.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            let (mut looks, mut before) = (interval(LOOK_INTERVAL), Vec::new());
            loop {
                tokio::select! {
                    alive = in_azure.changed() => if alive.is_err() { return },
                    _ = looks.tick() => {
                        let now = clusters(&api, &made);
                        if before == now {
                            continue;
                        }
                        before = now;
                    }
                }
                changes.send_modify(|revision| *revision += 1);
            }
        }));
        Self { azure: AzurePage::new(azure.clone(), workloads.clone()), management, workloads, changed }
    }
}

impl PageSource for Page {
    fn topology(&self) -> Topology {
        self.azure.topology().with_clusters(clusters(&self.management, &self.workloads))
    }

    fn packet(&self, packet: &Packet) -> Verdict {
        self.azure.packet(packet)
    }

    fn flows(&self, plan: &FlowPlan) -> FlowReport {
        self.azure.flows(plan)
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }
}
