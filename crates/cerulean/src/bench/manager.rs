//! Figures of the controller manager.
//!
//! It runs the release binary that lies beside this one, over TLS, against the simulators, and reads what
//! the system says of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clock::Clock;
use k8s::{Node, Service};
use kube::Api;
use kube::api::{ListParams, PostParams};
use kubernetes_simulator::kubelet::Pace;
use serde_json::json;
use simulated_cluster::{Credentials, HostedCluster, HostedOptions, NodePool, Ports, Shape};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::process::{Files, Running, controller_manager};
use super::resident::{megabytes, resident};
use crate::screen::Screen;
use crate::{TWO_THREADS, runtime};

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The controller manager's binary; the one beside this program unless given.
    #[arg(long)]
    manager: Option<PathBuf>,
    /// How many Services are applied at once.
    #[arg(long, default_value_t = 20)]
    services: u32,
}

/// Longest wait for anything: more than the slowest program needs for 200 Services while Azure answers at once.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);

/// Measures and prints a table.
///
/// # Errors
/// The binary is missing or does not do its work.
pub fn run(screen: Screen, arguments: Arguments) -> anyhow::Result<()> {
    let manager = controller_manager(arguments.manager)?;
    runtime(TWO_THREADS)?.block_on(measure(screen, &manager, arguments.services))
}

async fn measure(screen: Screen, manager: &Path, services: u32) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
    let stop = CancellationToken::new();
    let options = HostedOptions {
        shape: Shape { pools: vec![NodePool::new("workers", "worker", 3)], ..Shape::default() },
        latency: azure_simulator::LatencyProfile::instant(),
        seed: 1,
        pace: Pace::default(),
        directory: directory.path().to_owned(),
        kubeconfig: None,
        ports: Ports::default(),
        credentials: Credentials::default(),
        now: Clock::system().now(),
    };
    let cluster = HostedCluster::start(options, &stop).await?;
    let bar = screen.waiting("measuring");
    wait_for("three nodes", async || Ok(nodes(&cluster).await?.len() == 3)).await?;

    let begun = Instant::now();
    let files = Files {
        cloud_config: &cluster.files.azure_json,
        kubeconfig: &cluster.files.kubeconfig,
        certificate_authority: &cluster.files.certificate_authority,
    };
    let running = Running::start(manager, &files)?;
    let asked = || {
        cluster
            .kubernetes
            .as_ref()
            .map(|kubernetes| kubernetes.requests("watch", "nodes"))
            .unwrap_or_default()
    };
    let before = asked();
    wait_for("the first list of nodes", async || {
        Ok(asked() > before || !initialised(&cluster).await?.is_empty())
    })
    .await?;
    let first_list = begun.elapsed();
    wait_for("initialised nodes", async || Ok(initialised(&cluster).await?.len() == 3)).await?;
    let initialised_after = begun.elapsed();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle = resident(running.id())?;

    cluster.azure.clear_journal();
    let begun = Instant::now();
    create_services(&cluster, services).await?;
    wait_for("addresses", async || Ok(served(&cluster).await? == services as usize)).await?;
    let converged = begun.elapsed();
    let busy = resident(running.id())?;
    let counts = cluster.azure.journal().counts;
    bar.finish_and_clear();
    drop(running);
    stop.cancel();

    let of = |kind: &str| counts.writes_by_type.get(kind).copied().unwrap_or_default();
    let rows = [
        ["controller manager, binary".to_owned(), megabytes(std::fs::metadata(manager)?.len())],
        ["start to first watch of nodes".to_owned(), seconds(first_list)],
        ["start to three nodes initialised".to_owned(), seconds(initialised_after)],
        ["resident, idle".to_owned(), megabytes(idle)],
        [format!("resident, with {services} Services"), megabytes(busy)],
        [format!("{services} Services at once, converged after"), seconds(converged)],
        [format!("{services} Services: all calls to Azure"), counts.requests.to_string()],
        [
            format!("{services} Services: public IP writes"),
            of("Microsoft.Network/publicIPAddresses").to_string(),
        ],
        [
            format!("{services} Services: load balancer writes"),
            of("Microsoft.Network/loadBalancers").to_string(),
        ],
        [
            format!("{services} Services: security group writes"),
            of("Microsoft.Network/networkSecurityGroups").to_string(),
        ],
    ];
    screen.table(["WHAT", "MEASURED"], &rows);
    Ok(())
}

async fn nodes(cluster: &HostedCluster) -> anyhow::Result<Vec<Node>> {
    Ok(Api::<Node>::all(cluster.client.clone()).list(&ListParams::default()).await?.items)
}

async fn initialised(cluster: &HostedCluster) -> anyhow::Result<Vec<Node>> {
    let mut nodes = nodes(cluster).await?;
    nodes.retain(|node| !node.spec.provider_id.is_empty());
    Ok(nodes)
}

async fn served(cluster: &HostedCluster) -> anyhow::Result<usize> {
    let services = Api::<Service>::all(cluster.client.clone()).list(&ListParams::default()).await?;
    Ok(services.items.iter().filter(|service| !service.status.load_balancer.ingress.is_empty()).count())
}

async fn create_services(cluster: &HostedCluster, count: u32) -> anyhow::Result<()> {
    let api: Api<k8s::api::api::core::v1::Service> = Api::default_namespaced(cluster.client.clone());
    let create = |number: u32| {
        let api = api.clone();
        async move {
            let service = serde_json::from_value(json!({
                "metadata": {"name": format!("service-{number}")},
                "spec": {"type": "LoadBalancer", "selector": {"app": "any"}, "ports": [{"port": 80}]},
            }))?;
            api.create(&PostParams::default(), &service).await?;
            anyhow::Ok(())
        }
    };
    futures::future::try_join_all((0..count).map(create)).await?;
    Ok(())
}

async fn wait_for(what: &str, condition: impl AsyncFn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition().await? {
        if Instant::now() > deadline {
            bail!("gave up after {} s of waiting for {what}", WAIT_TIMEOUT.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
