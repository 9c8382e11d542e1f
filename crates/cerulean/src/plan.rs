//! `cerulean plan`: what the controller manager would write to Azure.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use cloud_controller_manager::surroundings::Surroundings;
use cloud_controller_manager::{azure, settings};
use k8s::api::api::core::v1::Namespace;
use k8s::{Node, Service};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use planner::Cluster;
use provider::{ClusterState, Provider};
use serde_json::Value;
use simulated_cluster::manifests;
use tokio_util::sync::CancellationToken;

use crate::screen::Screen;
use crate::{TWO_THREADS, runtime};

/// What to plan.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The cloud configuration (azure.json).
    #[arg(long)]
    cloud_config: String,
    /// The cluster whose Services and Nodes to plan for.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The cluster's name, as the controller manager has it.
    #[arg(long, default_value = "kubernetes")]
    cluster_name: String,
    /// Services of these files are added to those of the cluster, or take their place.
    #[arg(long = "manifest")]
    manifests: Vec<PathBuf>,
}

/// Prints the plan; nothing is written to Azure or Kubernetes.
///
/// # Errors
/// A file, the cluster or Azure cannot be read.
pub fn run(screen: Screen, arguments: Arguments) -> anyhow::Result<()> {
    runtime(TWO_THREADS)?.block_on(async {
        let surroundings = Surroundings::of_this_process();
        let config = settings::read(&arguments.cloud_config, &surroundings)?;
        let state = ClusterState::default();
        list(&arguments, &state).await?;
        let client = azure::connect(&config, &surroundings, Arc::new(|_: &arm::CallRecord<'_>| {})).await?;
        let region_zones = azure::region_zones(&client, &config).await?;
        let cluster = Cluster { config, name: arguments.cluster_name.clone(), region_zones };
        let stop = CancellationToken::new();
        let options = provider::Options { stop: stop.clone(), ..provider::Options::default() };
        let plan = Provider::new(cluster, client, state, options).dry_run().await?;
        stop.cancel();
        screen.text(plan);
        Ok(())
    })
}

/// Reads Services and Nodes from the cluster, and Services from manifests over them.
async fn list(arguments: &Arguments, state: &ClusterState) -> anyhow::Result<()> {
    let path = &arguments.kubeconfig;
    let file = Kubeconfig::read_from(path).with_context(|| path.display().to_string())?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let everything = ListParams::default();
    for service in Api::<Service>::all(client.clone()).list(&everything).await?.items {
        state.apply_service(Arc::new(service));
    }
    for node in Api::<Node>::all(client.clone()).list(&everything).await?.items {
        state.apply_node(Arc::new(node));
    }
    for path in &arguments.manifests {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
        for object in manifests::read(&name, &text)?.into_iter().filter(|object| object["kind"] == "Service")
        {
            state.apply_service(Arc::new(preview(&client, object).await.with_context(|| name.clone())?));
        }
    }
    state.services_are_synced();
    state.nodes_are_synced();
    Ok(())
}

/// A Service as the cluster would have it: names in Azure follow from the UID, and probes from node ports,
/// which only the cluster gives. One whose namespace is yet to come is previewed in `default`.
async fn preview(client: &Client, mut object: Value) -> anyhow::Result<Service> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    let known = Api::<Namespace>::all(client.clone()).get_opt(&namespace).await?.is_some();
    if !known {
        object["metadata"]["namespace"] = "default".into();
    }
    let previewed = serde_json::to_value(manifests::preview(client, &object).await?)?;
    let mut service: Service = serde_json::from_value(previewed)?;
    service.metadata.namespace = Some(namespace);
    Ok(service)
}
