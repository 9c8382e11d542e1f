//! The simulators of the benchmarks: Azure and Kubernetes on sockets, and what is read of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{Azure, Options};
use clock::Clock;
use k8s::names::TAINT_UNINITIALIZED;
use kubernetes_simulator::{Kubernetes, Object, Token};
use serde_json::{Value, json};
use simulated_cluster::{HostedAzure, HostedAzureOptions, HostedKubernetes, HostedKubernetesOptions, Shape};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::simulate::limits;

/// The type of a scale set's machines.
pub const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// Starts Azure with the subscription of a shape, the secret of its application, and room for thousands of machines.
///
/// # Errors
/// It cannot be started.
pub async fn start_azure(
    shape: &Shape,
    secret: &str,
    options: Options,
    directory: &Path,
    stop: &CancellationToken,
) -> anyhow::Result<HostedAzure> {
    let options = Options { limits: limits::enough_cores(), start: Clock::system().now(), ..options };
    let options = HostedAzureOptions {
        client_secret: Some(Token::new(secret)),
        ..HostedAzureOptions::of(shape, options, directory)
    };
    Ok(HostedAzure::start(options, stop).await?)
}

/// Starts Kubernetes, whose kubeconfig is in the folder.
///
/// # Errors
/// It cannot be started.
pub async fn start_kubernetes(
    directory: &Path,
    stop: &CancellationToken,
) -> anyhow::Result<HostedKubernetes> {
    let options = HostedKubernetesOptions {
        seed: 1,
        directory: directory.to_owned(),
        now: Clock::system().now(),
        ..HostedKubernetesOptions::default()
    };
    Ok(HostedKubernetes::start(options, stop).await?)
}

/// How long a program has left Azure alone: it sends no requests, and no operations run.
pub struct Idle {
    requests: u64,
    since: Instant,
}

impl Idle {
    /// Idle from now on.
    pub fn begin() -> Self {
        Self { requests: u64::MAX, since: Instant::now() }
    }

    /// The time since the last request or operation, as far as it was looked at.
    pub fn time(&mut self, azure: &Azure) -> Duration {
        let requests = azure.journal_after(u64::MAX).counts.requests;
        if requests != self.requests || azure.running_operations() > 0 {
            *self = Self { requests, since: Instant::now() };
        }
        self.since.elapsed()
    }
}

/// Whether a node is initialised.
pub fn is_initialised(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints.is_none_or(|taints| taints.iter().all(|taint| taint["key"] != TAINT_UNINITIALIZED))
}

/// Initialises every node as its node manager would: sets the provider ID and removes the taint.
pub async fn initialise_nodes(kubernetes: Kubernetes, azure: Azure) {
    loop {
        let next = |nodes: &[Arc<Object>]| nodes.iter().find(|node| !is_initialised(node)).cloned();
        let Ok(node) = kubernetes.until("Node", next).await else { return };
        let machines = azure.documents_of_type(INSTANCES);
        let machine = machines.iter().find(|machine| host_name(machine).as_deref() == Some(node.name()));
        let id = machine.and_then(|machine| machine["id"].as_str()).unwrap_or_default();
        let mut taints = node.value()["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.retain(|taint| taint["key"] != TAINT_UNINITIALIZED);
        let patch = json!({"spec": {"providerID": format!("azure://{id}"), "taints": taints}});
        // A node that was deleted meanwhile needs nothing.
        let _gone = kubernetes.merge("Node", "", node.name(), &patch);
    }
}

/// The host name of a machine, which is its node's name.
pub fn host_name(machine: &Value) -> Option<String> {
    Some(machine["properties"]["osProfile"]["computerName"].as_str()?.to_ascii_lowercase())
}
