//! `cerulean rights`: what a cluster's configuration needs in Azure and in Kubernetes.

use std::ffi::OsString;

use anyhow::{Context as _, bail};
use cloud_controller_manager::configuration::sources::{self, Sources};
use cloud_controller_manager::environment::ProcessEnvironment;
use cloud_controller_manager::flags::{self, CommandLine, EarlyExit};
use k8s::{Node, Service};
use kube::Api;
use kube::api::ListParams;
use rights::Feature;
use rights::need::{ObjectName, Report, Run, Subject, disk_needs, needs};
use serde::de::DeserializeOwned;

use crate::kubernetes::ClusterArguments;
use crate::manifests::{Manifest, ManifestArguments};
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::Screen;

/// Whose rights.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Flags of azure-cloud-controller-manager follow --, as in: cerulean rights --cloud-config azure.json -f \
                  cluster.yaml -- --cluster-cidr=10.244.0.0/16\n\nAzure is not read, and a cluster only with --kubeconfig or \
                  --context. kubectl get nodes,services -A -o yaml prints what -f takes instead."
)]
pub struct Arguments {
    /// The program.
    #[arg(long, value_name = "PROGRAM", default_value = "azure-cloud-controller-manager")]
    program: Whose,
    /// The cloud configuration (azure.json); otherwise the one that the controller manager's flags name.
    #[arg(long, value_name = "FILE")]
    cloud_config: Option<String>,
    /// The cluster's name, which roles in Azure get; otherwise the one in the controller manager's flags.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    manifests: ManifestArguments,
    /// A feature that does not follow from the input; repeatable.
    #[arg(long = "with", value_name = "FEATURE", value_parser = feature_parser())]
    more: Vec<String>,
    /// How to print the rights.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
    /// The controller manager's command line.
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Whose {
    /// The controller manager.
    AzureCloudControllerManager,
    /// The driver for disks; -f takes its StorageClasses, VolumeSnapshotClasses and PersistentVolumes.
    AzurediskCsiDriver,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// Role definitions, role assignments and Kubernetes' roles for programs; docs/rights.md describes the shape.
    Json,
    /// A shell script of the Azure CLI, which creates and assigns the roles.
    Az,
    /// Manifests of the roles in Kubernetes.
    Kubernetes,
}

/// The features that input may not show.
const NOT_SHOWN: [Feature; 4] = [
    Feature::VirtualMachines,
    Feature::PublicIpPrefixes,
    Feature::ApplicationSecurityGroups,
    Feature::PrivateLink,
];

fn feature_parser() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(NOT_SHOWN.map(Feature::name))
}

/// Prints what a cluster needs.
///
/// # Errors
/// A file or the cluster cannot be read, or the controller manager would refuse its flags or azure.json.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    let line = command_line(arguments)?;
    let environment = ProcessEnvironment::of_this_process();
    let config = sources::read(&line.flags.cloud_config, &environment)?;
    let name = arguments.cluster_name.as_ref().unwrap_or(&line.flags.cluster_name).clone();
    let cluster = planner::Cluster { config, name, region_zones: Vec::new() };
    let manifests = arguments.manifests.load(screen)?;
    let mut services: Vec<Service> = of_kind(&manifests, "Service")?;
    let mut nodes: Vec<Node> = of_kind(&manifests, "Node")?;
    if arguments.cluster.is_given() {
        let (all_services, all_nodes) = runtime(TWO_THREADS)?.block_on(list(&arguments.cluster))?;
        services.extend(all_services);
        nodes.extend(all_nodes);
    }
    let more = NOT_SHOWN.into_iter().filter(|it| arguments.more.iter().any(|name| name == it.name()));
    let more: Vec<Feature> = more.collect();
    let run = run_of(&line)?;
    let subject = Subject { cluster: &cluster, run: &run, services: &services, nodes: &nodes, more: &more };
    let needs = match arguments.program {
        Whose::AzureCloudControllerManager => needs(&subject),
        Whose::AzurediskCsiDriver => disk_needs(&subject, &of_volumes(&manifests)),
    };
    let report = Report(&needs);
    match arguments.output {
        Output::Text => {
            screen.text(report);
            return Ok(());
        }
        Output::Json => screen.text(format_args!("{:#}\n", report.json())),
        Output::Az => screen.text(report.commands()),
        Output::Kubernetes => screen.text(report.manifests()),
    }
    // The text has the notes itself.
    needs.notes.iter().for_each(|note| screen.note(note));
    Ok(())
}

/// The controller manager's command line, with the file of these arguments.
fn command_line(arguments: &Arguments) -> anyhow::Result<CommandLine> {
    let mut words: Vec<OsString> = vec!["azure-cloud-controller-manager".into()];
    words.extend(arguments.flags.iter().cloned());
    words.extend(arguments.cloud_config.iter().map(|file| format!("--cloud-config={file}").into()));
    let line = match flags::parse(words) {
        Ok(line) => line,
        Err(EarlyExit::Print(_)) => bail!("--help belongs before --"),
        Err(EarlyExit::Refuse(words)) => bail!("{words}"),
    };
    if line.flags.cloud_config.is_empty() {
        bail!("--cloud-config FILE is missing: it names the cluster's azure.json");
    }
    let problems: Vec<String> = line.problems().iter().map(ToString::to_string).collect();
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(line)
}

/// What a command line runs.
fn run_of(line: &CommandLine) -> anyhow::Result<Run> {
    let flags = &line.flags;
    let ranges = line.ranges().map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", problems.join("\n"))
    })?;
    let lease = || ObjectName {
        namespace: flags.leader_elect_resource_namespace.clone(),
        name: flags.leader_elect_resource_name.clone(),
    };
    Ok(Run {
        election: flags.leader_elect.then(lease),
        secret: Sources::of(flags)
            .secret
            .map(|secret| ObjectName { namespace: secret.namespace, name: secret.name }),
        services: line.enabled("service-lb-controller"),
        nodes: line.enabled("cloud-node-controller"),
        node_lifecycle: line.enabled("cloud-node-lifecycle-controller"),
        routes: ranges.routes,
        pod_ranges: ranges.ipam.is_some(),
        pod_ranges_by_tags: ranges.ipam.is_some_and(|ipam| ipam.masks.is_none()),
        metrics: flags.secure_port != 0,
    })
}

/// The objects of a core kind among manifests.
fn of_kind<K: DeserializeOwned>(manifests: &[Manifest], kind: &str) -> anyhow::Result<Vec<K>> {
    let is_it = |manifest: &&Manifest| manifest.text("/apiVersion") == "v1" && manifest.kind() == kind;
    let read = |manifest: &Manifest| {
        serde_json::from_value(manifest.object.clone())
            .with_context(|| format!("{}: {kind} {}", manifest.source, manifest.text("/metadata/name")))
    };
    manifests.iter().filter(is_it).map(read).collect()
}

/// The objects that say where disks and snapshots are.
fn of_volumes(manifests: &[Manifest]) -> Vec<serde_json::Value> {
    let kinds = ["StorageClass", "VolumeSnapshotClass", "PersistentVolume"];
    let is_it = |manifest: &&Manifest| kinds.contains(&manifest.kind());
    manifests.iter().filter(is_it).map(|manifest| manifest.object.clone()).collect()
}

async fn list(arguments: &ClusterArguments) -> anyhow::Result<(Vec<Service>, Vec<Node>)> {
    let cluster = arguments.connect().await?;
    let everything = ListParams::default();
    let services = Api::<Service>::all(cluster.client.clone()).list(&everything).await;
    let services = services.map_err(|error| cluster.failed("cannot list Services", &error))?;
    let nodes = Api::<Node>::all(cluster.client.clone()).list(&everything).await;
    let nodes = nodes.map_err(|error| cluster.failed("cannot list Nodes", &error))?;
    Ok((services.items, nodes.items))
}
