//! Azure, and the workload clusters of its machines: the environment of managers of clusters.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::packet::Source;
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use cluster_api_stand_in::{Part, WallClock};
use kube::Client;
use kubernetes_simulator::Token;
use serde_json::json;
use simulated_cluster::{
    Boot, HostedAzure, HostedAzureOptions, Outcome, Shape, WorkloadClusters, WorkloadOptions,
    play_cluster_api,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The secret of the application in the clusters' identities.
pub const CLIENT_SECRET: &str = "of-the-xtask";
/// Seed of all random values.
pub const SEED: u64 = 1;
/// The latency of each write to Azure.
const LATENCY: Duration = Duration::from_millis(300);

/// Azure, and the clusters of its machines; both end when this value is dropped.
pub struct World {
    /// Names and sizes of the resources in Azure.
    pub shape: Shape,
    /// Azure on sockets.
    pub azure: HostedAzure,
    /// The clusters.
    pub workloads: WorkloadClusters,
    /// The proxy by which programs reach Azure and API servers of clusters.
    pub proxy: String,
    /// Stops the simulated parts.
    pub stop: CancellationToken,
    _ends: DropGuard,
}

impl World {
    /// Starts Azure in the subscription, tenant and region of `shape`, with these `options`; the managers of clusters
    /// reach their API servers from `management`.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(
        directory: &Path,
        shape: &Shape,
        management: Source,
        options: Options,
    ) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let ends = stop.clone().drop_guard();
        let options =
            Options { seed: SEED, latency: LatencyProfile::instant().with("*", "*", LATENCY), ..options };
        let options = HostedAzureOptions {
            client_secret: Some(Token::new(CLIENT_SECRET)),
            ..HostedAzureOptions::of(shape, options, directory)
        };
        let azure = HostedAzure::start(options, &stop).await?;
        let boot = |_: &_| Boot {
            system: Duration::from_millis(300),
            bootstrap: Duration::from_millis(300),
            outcome: Outcome::Works,
        };
        let options =
            WorkloadOptions { seed: SEED, boot: Arc::new(boot), management, ..WorkloadOptions::default() };
        let workloads = WorkloadClusters::start(azure.azure.clone(), options, stop.clone());
        let address = ([127, 0, 0, 1], 0).into();
        let proxy = format!("http://{}", workloads.proxy(address, Some(azure.https_address)).await?);
        Ok(Self { shape: shape.clone(), azure, workloads, proxy, stop, _ends: ends })
    }

    /// Creates the prerequisites of the flavors' machines in Azure: an identity, and its group.
    ///
    /// # Errors
    /// Azure refuses one.
    pub fn create_identity_for_machines(&self) -> anyhow::Result<()> {
        let group = ResourceId::group(&self.shape.subscription, "capz-ci");
        let name = "cloud-provider-user-identity";
        let identity = group.resource("Microsoft.ManagedIdentity", "userAssignedIdentities", name);
        for id in [&group, &identity] {
            let made = self.azure.azure.put(id, json!({ "location": self.shape.region }));
            made.map_err(|refusal| anyhow::anyhow!("{id}: {refusal:?}"))?;
        }
        Ok(())
    }

    /// Runs the stand-in for Cluster API in a management cluster.
    ///
    /// # Errors
    /// The API server refuses its kinds.
    pub async fn play_cluster_api(&self, client: &Client, clock: WallClock) -> anyhow::Result<()> {
        Ok(play_cluster_api(Part::ALL, client, &self.workloads, clock, SEED, &self.stop).await?)
    }
}
