//! The node's part of the program: wiring, nothing else.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use imds::Imds;
use kube::Client;
use program::environment::ProcessEnvironment;
use tokio_util::sync::CancellationToken;
use volumes_node::system::Kernel;

use crate::flags::CommandLine;
use crate::node::kubernetes::{NodeObject, TaintOptions, remove_agent_taint, wait_before_stop};
use crate::node::machine::{FactSource, Metadata, node_name};
use crate::node::{NodeOptions, NodeService};

/// The variable with the node's name, for the hook before the stop.
const NODE_NAME: &str = "KUBE_NODE_NAME";

/// The service Node. In the node's role it also takes the taint off a node that does not take volumes yet, until `stop`.
///
/// # Errors
/// The node's name is to come from instance metadata, and does not.
pub(crate) async fn service(
    line: &CommandLine,
    client: Option<&Client>,
    stop: &CancellationToken,
) -> anyhow::Result<NodeService> {
    let flags = &line.flags;
    let imds = Arc::new(Imds::new(flags.instance_metadata_endpoint.clone()));
    let node_id = match line.is_node() && flags.get_nodeid_from_imds {
        true => {
            let facts = imds.storage().await.context(
                "--get-nodeid-from-imds: instance metadata does not give the machine's name (let --nodeid give it)",
            )?;
            node_name(&facts.name)
        }
        false => flags.nodeid.clone(),
    };
    let options = NodeOptions {
        node_id: node_id.clone(),
        driver: flags.drivername.clone(),
        supports_zones: flags.support_zone,
        prefers_labels: flags.get_node_info_from_labels,
        attach_limit: flags.volume_attach_limit,
        reserved_slots: flags.reserved_data_disk_slot_num,
        applies_profiles: flags.enable_perf_optimization,
        max_concurrent_format: flags.max_concurrent_format,
        concurrent_format_timeout: Duration::from_secs(flags.concurrent_format_timeout),
        ..NodeOptions::default()
    };
    let client = client.filter(|_| line.is_node());
    if let Some(client) = client.filter(|_| flags.remove_not_ready_taint) {
        let options = TaintOptions {
            initial_delay: Duration::from_secs(flags.taint_removal_initial_delay_seconds),
            never_stops: flags.never_stop_taint_removal,
        };
        let (client, node, driver) = (client.clone(), flags.nodeid.clone(), flags.drivername.clone());
        let stop = stop.clone();
        tokio::spawn(async move { remove_agent_taint(client, &node, &driver, options, stop).await });
    }
    let object = client.map(|client| {
        Arc::new(NodeObject::new(client.clone(), flags.nodeid.clone(), flags.drivername.clone()))
            as Arc<dyn FactSource>
    });
    let metadata = line.is_node().then(|| Arc::new(Metadata::new(imds)) as Arc<dyn FactSource>);
    Ok(NodeService::new(options, Arc::new(Kernel), metadata, object))
}

/// The hook before the stop of a node's driver.
///
/// # Errors
/// There is no connection to Kubernetes, or the node's name is not given.
pub(crate) async fn before_stop(
    line: &CommandLine,
    client: Option<Client>,
    environment: &ProcessEnvironment,
) -> anyhow::Result<()> {
    let Some(client) = client else { bail!("--pre-stop-hook: there is no connection to Kubernetes") };
    let node = environment.variable(NODE_NAME).unwrap_or_default();
    Ok(wait_before_stop(client, &node, &line.flags.drivername).await?)
}
