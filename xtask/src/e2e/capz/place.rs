//! The environment of clusters: Azure, and the workload clusters of its machines.

use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{LatencyProfile, Options};
use clock::Clock;
use kubernetes_simulator::Token;
use simulated_cluster::{
    Boot, HostedAzure, HostedAzureOptions, Outcome, Shape, WorkloadClusters, WorkloadOptions,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The secret of the application in the cluster's identity.
pub const CLIENT_SECRET: &str = "of-the-end-to-end-test";
/// Seed of all random values.
pub const SEED: u64 = 1;
/// The latency of each write to Azure.
const LATENCY: Duration = Duration::from_millis(300);

/// The environment, which ends when this value is dropped.
pub struct Place {
    /// Names and sizes of the resources in Azure.
    pub shape: Shape,
    /// Azure on sockets.
    pub azure: HostedAzure,
    /// The clusters of machines in Azure.
    pub workloads: WorkloadClusters,
    /// The proxy to the API servers of these clusters.
    pub proxy: String,
    /// Stops the tasks in this process.
    pub stop: CancellationToken,
    _ends: DropGuard,
}

impl Place {
    /// Starts the environment, with files in this folder.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(directory: &std::path::Path) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let options = Options {
            seed: SEED,
            latency: LatencyProfile::instant().with("*", "*", LATENCY),
            start: Clock::system().now(),
            ..Options::default()
        };
        let shape = Shape::default();
        let azure = HostedAzureOptions {
            client_secret: Some(Token::new(CLIENT_SECRET)),
            ..HostedAzureOptions::of(&shape, options, directory)
        };
        let azure = HostedAzure::start(azure, &stop).await?;
        let boot = |_: &_| Boot {
            system: Duration::from_millis(300),
            bootstrap: Duration::from_millis(300),
            outcome: Outcome::Works,
        };
        let options = WorkloadOptions { seed: SEED, boot: Arc::new(boot), ..WorkloadOptions::default() };
        let workloads = WorkloadClusters::start(azure.azure.clone(), options, stop.clone());
        let proxy = format!("http://{}", workloads.proxy(([127, 0, 0, 1], 0).into(), None).await?);
        Ok(Self { shape, azure, workloads, proxy, stop: stop.clone(), _ends: stop.drop_guard() })
    }
}
