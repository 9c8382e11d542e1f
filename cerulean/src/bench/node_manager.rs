//! Benchmark of the node manager: the time until its node is initialised, and its memory.
//!
//! It runs the release binary next to this one, over TLS, against a simulated Kubernetes and the instance metadata of a
//! simulated Azure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use azure_simulator::imds::MetadataService;
use azure_simulator::serve::serve;
use azure_simulator::{Azure, Options};
use k8s::names::TAINT_UNINITIALIZED;
use serde_json::json;
use simulated_cluster::{HostedKubernetes, NodePool, Shape};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::process::{Running, beside_this};
use super::resident::{anonymous, megabytes, resident};
use super::simulators::{is_initialised, start_kubernetes};
use super::statistics::fine_milliseconds;
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::{Screen, row};

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of the node manager; by default the one next to this program.
    #[arg(long)]
    manager: Option<PathBuf>,
    /// Number of starts; the median counts.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    starts: u32,
    /// Seconds of rest before its memory is read.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    idle: u64,
}

/// The node, which is the only machine.
const NODE: &str = "worker000000";
/// Longest wait for a node.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Measures and prints a table.
///
/// # Errors
/// The binary is missing or fails.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    let manager = beside_this(arguments.manager.clone(), "azure-cloud-node-manager", "--manager")?;
    runtime(TWO_THREADS)?.block_on(measure(screen, &manager, arguments))
}

async fn measure(screen: Screen, manager: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
    let stop = CancellationToken::new();
    let azure = Azure::new(Options::default());
    let shape = Shape { pools: vec![NodePool::new("workers", "worker", 1)], ..Shape::default() };
    shape.lay_out(&azure).map_err(|refusal| anyhow::anyhow!("the cluster is refused: {refusal}"))?;
    let router = MetadataService::new(azure).router();
    let metadata = serve(([127, 0, 0, 1], 0).into(), router, None, stop.clone()).await?;
    let kubernetes = start_kubernetes(directory.path(), &stop).await?;
    let command = || {
        let mut command = Command::new(manager);
        command
            .arg(format!("--node-name={NODE}"))
            .arg(format!("--instance-metadata-endpoint={}", metadata.url()))
            .arg(format!("--kubeconfig={}", kubernetes.kubeconfig.display()))
            .env("NODE_NAME", NODE);
        command
    };

    let bar = screen.waiting("measuring");
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..arguments.starts {
        drop(last.take());
        register(&kubernetes)?;
        let begun = Instant::now();
        let program = Running::launch("node-manager", command(), directory.path())?;
        initialised(&kubernetes).await?;
        times.push(begun.elapsed());
        last = Some(program);
    }
    tokio::time::sleep(Duration::from_secs(arguments.idle)).await;
    let program = last.context("it was started once at least")?;
    let (all, own) = (resident(program.id())?, anonymous(program.id())?);
    drop(program);
    stop.cancel();
    bar.finish_and_clear();

    times.sort();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    let rows = [
        row!["node manager, binary", megabytes(std::fs::metadata(manager)?.len())],
        row!["start to node initialised, median", fine_milliseconds(at(times.len() / 2))],
        row!["start to node initialised, longest", fine_milliseconds(at(times.len() - 1))],
        row![format!("resident, after {} s", arguments.idle), megabytes(all)],
        row!["of that, no pages of a file", megabytes(own)],
    ];
    screen.table(["WHAT", "MEASURED"], &rows);
    Ok(())
}

/// Creates the node as its kubelet registers it, replacing the previous one.
fn register(kubernetes: &HostedKubernetes) -> anyhow::Result<()> {
    let kubernetes = &kubernetes.kubernetes;
    if kubernetes.get("Node", "", NODE).is_some() {
        kubernetes.delete("Node", "", NODE)?;
    }
    kubernetes.create(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
        "spec": {"taints": [{"key": TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]},
    }))?;
    Ok(())
}

/// Waits until the node has lost its taint.
async fn initialised(kubernetes: &HostedKubernetes) -> anyhow::Result<()> {
    let lost = kubernetes.kubernetes.until("Node", |nodes| {
        nodes.iter().any(|node| node.name() == NODE && is_initialised(node)).then_some(())
    });
    match tokio::time::timeout(WAIT_TIMEOUT, lost).await {
        Ok(found) => Ok(found?),
        Err(_) => bail!("the node was not initialised within {} s", WAIT_TIMEOUT.as_secs()),
    }
}
