//! `cerulean plan`: what the controller manager would write to Azure for Services, and the manager of clusters for
//! clusters.

mod clusters;
mod example_ports;
mod merge;
mod preview;
mod topology;
mod values;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use cloud::ClusterState;
use cloud_controller_manager::configuration::sources;
use cloud_controller_manager::environment::ProcessEnvironment;
use cloud_controller_manager::flags::ranges::Ranges;
use cloud_controller_manager::{azure, pod_routes, run as manager};
use ipnet::IpNet;
use k8s::{Namespace, Node, Service};
use kube::Api;
use kube::api::ListParams;
use planner::ClusterPlan;
use provider::Provider;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::kubernetes::{Cluster, ClusterArguments};
use crate::leftover_variables;
use crate::manifests::{Manifest, ManifestArguments};
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::Screen;

/// What to plan.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Manifests with clusters on Azure are planned as capz-controller-manager would carry them out, all others as \
                  azure-cloud-controller-manager would.\n\nExit codes: 0 nothing to change, 2 something to change, 1 an \
                  error, a refused object or a route that cannot be written."
)]
pub struct Arguments {
    /// The cloud configuration (azure.json). For clusters it is only used to read Azure; without it, an empty
    /// subscription is assumed.
    #[arg(long, value_name = "FILE")]
    cloud_config: Option<String>,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// The cluster's name, as the controller manager has it.
    #[arg(long, value_name = "NAME", default_value = "kubernetes")]
    cluster_name: String,
    #[command(flatten)]
    manifests: ManifestArguments,
    /// The namespace of objects in manifests without one; by default the context's.
    #[arg(short, long)]
    namespace: Option<String>,
    /// The pod ranges of nodes, as for the controller manager. With this flag the routes to nodes are planned, too.
    #[arg(long, value_name = "RANGES", value_delimiter = ',', value_parser = range)]
    cluster_cidr: Vec<IpNet>,
    /// How to print the plan.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs; docs/plan.md describes the shape.
    Json,
}

/// A range of `--cluster-cidr`; an invalid one gets the controller manager's message.
fn range(text: &str) -> Result<IpNet, String> {
    text.parse().map_err(|_| format!("{text:?} is no range of addresses, such as 10.244.0.0/16"))
}

/// The exit code of a plan that would change something.
const SOME_CHANGES: u8 = 2;

/// Prints the plan; nothing is written to Azure or Kubernetes. Returns the exit code for the plan's contents.
///
/// # Errors
/// A file, the cluster or Azure cannot be read.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // Warnings of the parts that read azure.json and Azure, such as keys without effect.
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    tracing_subscriber::registry().with(logs::of_libraries()).with(lines).init();
    let manifests = arguments.manifests.load(screen)?;
    let runtime = runtime(TWO_THREADS)?;
    if clusters::has_clusters(&manifests) {
        return runtime.block_on(plan_clusters(screen, arguments, &manifests));
    }
    let plan = runtime.block_on(plan(screen, arguments, &manifests))?;
    match arguments.output {
        Output::Text => screen.plan(&plan),
        Output::Json => {
            let mut json = plan.to_json();
            json["clusterName"] = json!(arguments.cluster_name);
            screen.text(format_args!("{json:#}\n"));
        }
    }
    Ok(exit_code(&plan))
}

/// A refused Service, or a route that cannot be written, counts as an error, whether others change or not.
fn exit_code(plan: &ClusterPlan) -> ExitCode {
    match (plan.refused.is_empty() && plan.unrouted == 0, plan.plan.is_empty()) {
        (false, _) => ExitCode::FAILURE,
        (true, false) => SOME_CHANGES.into(),
        (true, true) => ExitCode::SUCCESS,
    }
}

/// Plans what `capz-controller-manager` would do, and prints it.
async fn plan_clusters(
    screen: Screen,
    arguments: &Arguments,
    manifests: &[Manifest],
) -> anyhow::Result<ExitCode> {
    if let Some(refusal) = leftover_variables::refusal(manifests) {
        anyhow::bail!("{refusal}");
    }
    let environment = ProcessEnvironment::of_this_process();
    let mut subscription = environment.variable("AZURE_SUBSCRIPTION_ID");
    let source = match &arguments.cloud_config {
        None => clusters::Source::Empty,
        Some(file) => {
            let config = sources::read(file, &environment)?;
            subscription = Some(config.subscription_id.clone());
            let observer = Arc::new(|_: &arm::CallRecord<'_>| {});
            clusters::Source::Real(azure::connect(&config, &environment, observer).await?)
        }
    };
    let namespace = arguments.namespace.as_deref().unwrap_or("default");
    let plan = clusters::plan(&source, manifests, namespace, subscription.as_deref()).await?;
    for note in &plan.notes {
        screen.note(note);
    }
    match arguments.output {
        Output::Text => screen.plan(&plan),
        Output::Json => screen.text(format_args!("{:#}\n", plan.to_json())),
    }
    Ok(match (plan.fails(), plan.is_empty()) {
        (true, _) => ExitCode::FAILURE,
        (false, false) => SOME_CHANGES.into(),
        (false, true) => ExitCode::SUCCESS,
    })
}

async fn plan(screen: Screen, arguments: &Arguments, manifests: &[Manifest]) -> anyhow::Result<ClusterPlan> {
    let environment = ProcessEnvironment::of_this_process();
    let is_for_clusters = |it: &Manifest| it.text("/apiVersion").contains("cluster.x-k8s.io/");
    if manifests.iter().any(is_for_clusters) {
        let words = "the manifests have objects of Cluster API, but no AzureCluster, AzureManagedControlPlane or \
                     AzureASOManagedControlPlane, without which nothing can be planned of them";
        if arguments.cloud_config.is_none() || manifests.iter().all(is_for_clusters) {
            bail!("{words}");
        }
        screen.note(words);
    }
    let file = arguments.cloud_config.as_deref().context(
        "--cloud-config FILE is missing: it names the cluster's azure.json. Only manifests with clusters on Azure are \
         planned without",
    )?;
    let config = sources::read(file, &environment)?;
    let cluster = arguments.cluster.connect().await?;
    let state = ClusterState::default();
    list(&cluster, &state, config.follows_namespace_labels()).await?;
    let previewed = preview::preview(&cluster, manifests, arguments.namespace.as_deref()).await?;
    for note in &previewed.notes {
        screen.note(note);
    }
    for service in previewed.services {
        state.apply_service(Arc::new(service));
    }
    state.services_are_synced();
    state.nodes_are_synced();

    let client = azure::connect(&config, &environment, Arc::new(|_: &arm::CallRecord<'_>| {})).await?;
    azure::check_resource_groups(&client, &config).await?;
    let region_zones = azure::region_zones(&client, &config).await?;
    let cluster = planner::Cluster { config, name: arguments.cluster_name.clone(), region_zones };
    let with_routes = !arguments.cluster_cidr.is_empty() && cluster.route_table_id().is_some();
    if !arguments.cluster_cidr.is_empty() && !with_routes {
        screen.note("no routes are planned: routeTableName is not set in the cloud configuration");
    }
    let ranges = Ranges { cluster: arguments.cluster_cidr.clone(), routes: with_routes, ..Ranges::default() };
    let findings = pod_routes::examine(&client, &cluster, &ranges).await?;
    let stop = CancellationToken::new();
    let _stops_at_the_end = stop.clone().drop_guard();
    let cluster_ranges = arguments.cluster_cidr.clone();
    let options = provider::Options { stop, cluster_ranges, ..provider::Options::default() };
    let provider = Provider::new(cluster, client, state, options);
    Ok(manager::preview(&provider, with_routes, findings.warnings).await?)
}

/// Reads Services and Nodes from the cluster, and Namespaces if their labels matter.
async fn list(cluster: &Cluster, state: &ClusterState, with_namespaces: bool) -> anyhow::Result<()> {
    let everything = ListParams::default();
    let services = Api::<Service>::all(cluster.client.clone()).list(&everything).await;
    for service in services.map_err(|error| cluster.failed("cannot list Services", &error))? {
        state.apply_service(Arc::new(service));
    }
    let nodes = Api::<Node>::all(cluster.client.clone()).list(&everything).await;
    for node in nodes.map_err(|error| cluster.failed("cannot list Nodes", &error))? {
        state.apply_node(Arc::new(node));
    }
    if with_namespaces {
        let namespaces = Api::<Namespace>::all(cluster.client.clone()).list(&everything).await;
        for namespace in namespaces.map_err(|error| cluster.failed("cannot list Namespaces", &error))? {
            state.apply_namespace(namespace.name(), namespace.metadata.labels.clone().unwrap_or_default());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use planner::{Plan, Refusal, Step};

    use super::*;

    #[test]
    fn the_exit_code_tells_no_changes_changes_and_refusals_apart() {
        let step = Step {
            action: planner::Action::Create,
            target: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/l"
                .parse()
                .unwrap(),
            if_match: None,
            document: None,
            changes: Vec::new(),
            purpose: Default::default(),
            on_behalf_of: Vec::new(),
            ownership: Vec::new(),
        };
        let plan = |steps: &[Step], refused: &[&str]| ClusterPlan {
            plan: Plan { steps: steps.to_vec() },
            refused: refused
                .iter()
                .map(|name| (k8s::ObjectKey::new("default", *name), Refusal::NoUid))
                .collect(),
            ..ClusterPlan::default()
        };
        let code = |plan| format!("{:?}", exit_code(&plan));
        let is = |number: u8| format!("{:?}", ExitCode::from(number));
        assert_eq!(code(plan(&[], &[])), is(0));
        assert_eq!(code(plan(std::slice::from_ref(&step), &[])), is(2));
        assert_eq!(code(plan(&[], &["bad"])), is(1));
        assert_eq!(code(plan(std::slice::from_ref(&step), &["bad"])), is(1));
        // NODE-273: so does a range of pods that gets no route.
        assert_eq!(code(ClusterPlan { unrouted: 1, ..plan(&[step], &[]) }), is(1));
    }
}
