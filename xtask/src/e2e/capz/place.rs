//! What clusters are made in: Azure, and the workload clusters that come of its machines.

use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{LatencyProfile, Options};
use clock::Clock;
use kubernetes_simulator::Token;
use simulated_cluster::{
    Boot, HostedAzure, HostedAzureOptions, Outcome, Shape, WorkloadClusters, WorkloadOptions,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The secret of the application that the cluster's identity names.
pub const CLIENT_SECRET: &str = "of-the-end-to-end-test";
/// Source of all that is random.
pub const SEED: u64 = 1;
/// How long Azure takes for each write.
const LATENCY: Duration = Duration::from_millis(300);

/// All of it; it ends with this value.
pub struct Place {
    /// What exists in Azure, and how it is called.
    pub shape: Shape,
    /// Azure on sockets.
    pub azure: HostedAzure,
    /// The clusters that come of machines.
    pub workloads: WorkloadClusters,
    /// A proxy by which programs reach their API servers.
    pub proxy: String,
    /// Ends what runs in this process.
    pub stop: CancellationToken,
    _ends: DropGuard,
}

impl Place {
    /// Starts it, with files in this folder.
    ///
    /// # Errors
    /// What does not start.
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
