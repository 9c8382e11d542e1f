//! A management cluster on sockets: Kubernetes with a stand-in for Cluster API's core, the Azure in which clusters are
//! created, and the workload clusters that their machines form. The infrastructure provider is not part of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use azure_simulator::Azure;
use azure_simulator::entra::FederatedCredential;
use azure_simulator::page::AzurePage;
use azure_simulator::view::ClusterView;
use cluster_api_stand_in::Part;
use kube::Client;
use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Duration, interval};
use tokio_util::sync::CancellationToken;

use crate::client::client_of;
use crate::cluster_api::play_cluster_api;
use crate::cluster_identities::{ClusterIdentities, SERVICE_ACCOUNT};
use crate::files::{HostError, Reader, write};
use crate::hosted_azure::{HostedAzure, HostedAzureOptions};
use crate::hosted_kubernetes::{HostedKubernetes, HostedKubernetesOptions};
use crate::manager_host;
use crate::page::ClusterPage;
use crate::progress::Objects;
use crate::workload::{WorkloadClusters, WorkloadOptions};

/// How a management cluster is served.
#[derive(Debug, Clone)]
pub struct HostedManagementOptions {
    /// Azure.
    pub azure: HostedAzureOptions,
    /// Kubernetes.
    pub kubernetes: HostedKubernetesOptions,
    /// The workload clusters.
    pub workloads: WorkloadOptions,
    /// The parts of Cluster API that are simulated. The others, their CRDs included, are left to the real programs.
    pub played: Vec<Part>,
    /// The port of the proxy for managers of workload clusters; 0 for any.
    pub proxy_port: u16,
}

/// A served management cluster. It stops with the token that it was started with.
pub struct HostedManagement {
    /// Azure.
    pub azure: HostedAzure,
    /// Kubernetes.
    pub kubernetes: HostedKubernetes,
    /// A client of Kubernetes.
    pub client: Client,
    /// The workload clusters.
    pub workloads: WorkloadClusters,
    /// A token of [`SERVICE_ACCOUNT`] for Entra, which proves workload identities. Only its owner may read it.
    pub federated_token: PathBuf,
    /// The URL of a proxy for managers of workload clusters: it leads to the API servers of workload clusters under the
    /// clusters' own endpoints, and to Azure under its names.
    pub proxy: String,
    /// The URL of the metadata service that proves `UserAssignedMSI` identities: requests to 169.254.169.254 have to be
    /// redirected there.
    pub metadata: String,
    identities: ClusterIdentities,
}

impl std::fmt::Debug for HostedManagement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostedManagement").field("azure", &self.azure.http).finish_non_exhaustive()
    }
}

impl HostedManagement {
    /// Opens all listeners, registers the identities that are written to Kubernetes, installs the kinds of Cluster
    /// API's core and starts its controllers.
    ///
    /// # Errors
    /// The first step that fails.
    pub async fn start(
        options: HostedManagementOptions,
        stop: &CancellationToken,
    ) -> Result<Self, HostError> {
        let HostedManagementOptions { mut azure, kubernetes, workloads, played: parts, proxy_port } = options;
        let (seed, directory) = (kubernetes.seed, kubernetes.directory.clone());
        // Identities name tenants and clusters name subscriptions; no object says which subscription belongs to which
        // tenant.
        azure.azure.any_tenant = true;
        let kubernetes = HostedKubernetes::start(kubernetes, stop).await?;
        let mut played = None;
        let api = kubernetes.kubernetes.clone();
        let azure = HostedAzure::start_with_page(azure, stop, |azure| {
            let clusters = WorkloadClusters::start(azure.clone(), workloads, stop.clone());
            played = Some(clusters.clone());
            Ok(page_of(azure, api, clusters, stop))
        })
        .await?;
        let workloads =
            played.ok_or_else(|| HostError::Kubernetes("no workload clusters were started".to_owned()))?;

        let client = client_of(&kubernetes.kubeconfig_text).await?;
        let clock = kubernetes.kubernetes.clock();
        play_cluster_api(&parts, &client, &workloads, clock, seed, stop).await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, proxy_port));
        let proxy = format!("http://{}", workloads.proxy(address, Some(azure.https_address)).await?);
        let identities = ClusterIdentities::follow(&kubernetes.kubernetes, &azure.azure, &azure.entra);
        let federated_token = directory.join("federated-token");
        let token = token_of_the_manager(&client).await;
        write(
            &federated_token,
            &token.map_err(|error| HostError::Kubernetes(error.to_string()))?,
            Reader::Owner,
        )?;
        let metadata = manager_host::serve(&kubernetes.kubernetes, &azure.entra, stop).await?;
        Ok(Self { azure, kubernetes, client, workloads, federated_token, proxy, metadata, identities })
    }

    /// The user-assigned identities that were made in Azure because machines name them, by their ids.
    pub fn made_for_machines(&self) -> Vec<String> {
        self.identities.made()
    }

    /// The progress of the clusters, each as a tree.
    pub fn clusters(&self) -> Vec<ClusterView> {
        clusters(&self.kubernetes.kubernetes, &self.workloads)
    }
}

/// Lifetime of the service account's token in seconds, long because it is never renewed.
const TOKEN_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;

/// Creates the service account of managers of clusters, and a token for it.
async fn token_of_the_manager(client: &Client) -> kube::Result<String> {
    let (namespace, name) = SERVICE_ACCOUNT;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    post(client, "/api/v1/namespaces", json!({ "metadata": { "name": namespace } })).await?;
    post(client, &accounts, json!({ "metadata": { "name": name } })).await?;
    let spec = json!({ "audiences": [FederatedCredential::AUDIENCE], "expirationSeconds": TOKEN_SECONDS });
    let answer = post(client, &format!("{accounts}/{name}/token"), json!({ "spec": spec })).await?;
    Ok(answer["status"]["token"].as_str().unwrap_or_default().to_owned())
}

async fn post(client: &Client, path: &str, body: Value) -> kube::Result<Value> {
    let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
    let request = request.body(body.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

fn clusters(management: &Kubernetes, workloads: &WorkloadClusters) -> Vec<ClusterView> {
    let workloads = workloads.clusters();
    Objects::read(management, workloads.iter().map(|cluster| &cluster.kubernetes)).clusters()
}

/// Interval between checks for changes of the objects that the page shows.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The page, which changes with Azure and with the clusters in it.
fn page_of(
    azure: &Azure,
    management: Kubernetes,
    workloads: WorkloadClusters,
    stop: &CancellationToken,
) -> ClusterPage<WorkloadClusters> {
    let (changes, changed) = watch::channel(0);
    let mut in_azure = azure.subscribe();
    let page = AzurePage::new(azure.clone(), workloads.clone());
    let views = move || clusters(&management, &workloads);
    let shown = views.clone();
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
        let (mut checks, mut before) = (interval(LOOK_INTERVAL), Vec::new());
        loop {
            tokio::select! {
                alive = in_azure.changed() => if alive.is_err() { return },
                _ = checks.tick() => {
                    let now = views();
                    if before == now {
                        continue;
                    }
                    before = now;
                }
            }
            changes.send_modify(|revision| *revision += 1);
        }
    }));
    ClusterPage::new(page, move |topology| topology.with_clusters(shown()), changed)
}
