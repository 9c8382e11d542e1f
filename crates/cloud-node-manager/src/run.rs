//! From a command line to a controller: wiring, nothing else.

use std::sync::Arc;

use anyhow::Context as _;
use clock::Clock;
use cloud::Machines;
use cloud_config::CloudConfig;
use controllers::{AgentOptions, MachineEventOptions, run_agent};
use imds::Imds;
use program::azure;
use program::environment::ProcessEnvironment;
use program::kubernetes::{self, Address};
use tokio_util::sync::CancellationToken;

use crate::flags::{Flags, ScheduledEvents};
use crate::resource_manager::ResourceManager;
use crate::source::ThisMachine;

/// The user agent for the Kubernetes API.
const AGENT: &str = "cloud-node-manager";

/// Runs the program until `stop`.
///
/// # Errors
/// One line that names the flag or address and the remedy; the process should exit with 1.
pub async fn run(
    flags: Flags,
    environment: ProcessEnvironment,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    if !flags.without_effect.is_empty() {
        let reason =
            "the program paces itself, serves nothing, and reads azure.json for Resource Manager alone";
        tracing::info!(flags = flags.without_effect.join(","), reason, "Flags accepted without effect");
    }
    // In a container, the host name is the container's: charts set this variable.
    let this = environment.variable("NODE_NAME").unwrap_or_else(|| environment.host_name());
    let node = if flags.node_name.is_empty() { environment.host_name() } else { flags.node_name };
    let config = match flags.use_instance_metadata {
        true => None,
        false => Some(read_config(&flags.cloud_config, &environment)?),
    };
    tracing::info!(version = %version::Version, "Starting azure-cloud-node-manager");
    let address = Address {
        kubeconfig: &flags.kubeconfig,
        master: &flags.master,
        agent: AGENT,
        waits: true,
        observer: None,
    };
    let proxy = environment.proxy()?;
    let connecting = kubernetes::connect(&address, &proxy);
    let Some(client) = stop.run_until_cancelled(connecting).await else { return Ok(()) };
    let machine = Arc::new(ThisMachine::new(Imds::new(flags.endpoint), &this));
    let events = (flags.scheduled_events != ScheduledEvents::None).then(|| MachineEventOptions {
        source: machine.clone(),
        interval: flags.scheduled_events_interval,
        drains: flags.scheduled_events == ScheduledEvents::Drain,
        approves: flags.approves_scheduled_events,
    });
    let options = AgentOptions {
        node: node.to_lowercase(),
        node_status_update_frequency: flags.node_status_update_frequency,
        older_labels: flags.older_labels,
        wait_routes: flags.wait_routes,
        events,
        clock: Clock::system(),
    };
    let client = client?;
    let machines: Arc<dyn Machines> = match &config {
        None => {
            tracing::info!(node = options.node, "Describing the node by instance metadata");
            machine
        }
        Some(config) => {
            let connecting = azure::connect(config, &environment, Arc::new(|_: &arm::CallRecord<'_>| {}));
            let Some(client) = stop.run_until_cancelled(connecting).await else { return Ok(()) };
            tracing::info!(node = options.node, "Describing the node by Resource Manager");
            Arc::new(ResourceManager::new(client?, config))
        }
    };
    run_agent(client, machines, options, stop).await?;
    Ok(())
}

/// Reads and checks azure.json.
fn read_config(path: &str, environment: &ProcessEnvironment) -> anyhow::Result<CloudConfig> {
    let bytes = std::fs::read(path).with_context(|| format!("--cloud-config: cannot read {path}"))?;
    let config = CloudConfig::runnable(&bytes, &|name| environment.variable(name));
    let config = config.with_context(|| format!("--cloud-config: {path}"))?;
    for warning in config.warnings() {
        tracing::warn!(path, "{warning}");
    }
    Ok(config)
}
