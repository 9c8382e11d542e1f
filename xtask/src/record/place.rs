//! The environment of the programs: Azure, the management cluster, Cluster API, and the clusters of its machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use azure_simulator::packet::Source;
use azure_simulator::{LatencyProfile, Options as AzureOptions};
use cluster_api_stand_in::{Part, WallClock};
use kube::Client;
use kubernetes_simulator::{Kubernetes, Options, Token};
use simulated_cluster::{
    Boot, HostedAzure, HostedAzureOptions, Outcome, Shape, WebhookServer, WorkloadClusters, WorkloadOptions,
    play_cluster_api,
};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::tunnel;
use crate::program::Program;

/// The secret of the application of the cluster's identity.
pub const CLIENT_SECRET: &str = "of-the-recording";
const SEED: u64 = 1;
/// The time limit for a program to serve its webhooks.
const READY: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);
/// The latency of each write to Azure.
const LATENCY: Duration = Duration::from_millis(300);

/// Azure, and the clusters of its machines; both end when this value is dropped.
pub struct World {
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
        options: AzureOptions,
    ) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let ends = stop.clone().drop_guard();
        let options = AzureOptions {
            seed: SEED,
            latency: LatencyProfile::instant().with("*", "*", LATENCY),
            ..options
        };
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
        let clusters = format!("http://{}", workloads.proxy(([127, 0, 0, 1], 0).into(), None).await?);
        let proxy = tunnel::start(&azure.proxy, &clusters).await?;
        Ok(Self { azure, workloads, proxy, stop, _ends: ends })
    }

    /// Runs the stand-in for Cluster API in a management cluster.
    ///
    /// # Errors
    /// The API server refuses its kinds.
    pub async fn play_cluster_api(&self, client: &Client, clock: WallClock) -> anyhow::Result<()> {
        Ok(play_cluster_api(Part::ALL, client, &self.workloads, clock, SEED, &self.stop).await?)
    }
}

/// Azure with a simulated management cluster; both end when this value is dropped.
pub struct Place {
    /// Azure, and the clusters in it.
    pub world: World,
    /// The management cluster.
    pub kubernetes: Kubernetes,
    /// A client of it.
    pub client: Client,
    /// The kubeconfig of programs.
    pub kubeconfig: PathBuf,
}

impl Place {
    /// Starts Azure and the management cluster in the subscription, tenant and region of `shape`; managers of clusters
    /// reach their API servers from `management`.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(directory: &Path, shape: &Shape, management: Source) -> anyhow::Result<Self> {
        let world = World::start(directory, shape, management, AzureOptions::default()).await?;
        let kubernetes = Kubernetes::new(Options { seed: SEED, ..Options::default() });
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), world.stop.clone()).await?;
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, kubernetes.kubeconfig(&format!("https://{address}"))?)?;
        let client = Client::new(kubernetes.router(), "default");
        world.play_cluster_api(&client, kubernetes.clock()).await?;
        Ok(Self { world, kubernetes, client, kubeconfig })
    }
}

/// Waits until a program serves its webhooks.
///
/// # Errors
/// It ends, or takes too long.
pub async fn serves(webhooks: &WebhookServer, program: &mut Program) -> anyhow::Result<()> {
    let deadline = Instant::now() + READY;
    while tokio::net::TcpStream::connect(("127.0.0.1", webhooks.port)).await.is_err() {
        program.must_run()?;
        ensure!(Instant::now() < deadline, "no webhooks are served:\n{}", program.last_words());
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
