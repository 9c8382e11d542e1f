//! `cerulean simulate management-cluster`: a management cluster with Cluster API's core and the Azure for its clusters, for a
//! manager of clusters that the user starts.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use cloud_controller_manager::go_values;
use simulated_cluster::{CloudProvider, Part, Shape};

use super::azure_options::AzureOptions;
use super::folder::Folder;
use super::limits;
use super::ports::{self, Ports};
use crate::management::{self, ClusterName, Management, Settings};
use crate::screen::Screen;
use crate::signals;

/// The interval at which new workload clusters are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// The file with the manager's environment variables.
const ENVIRONMENT: &str = "manager.env";

/// How to simulate a management cluster.
#[derive(Debug, clap::Args)]
#[command(mut_arg("latency", |latency| latency.default_value("quick")))]
pub struct ManagementClusterArguments {
    /// Folder of kubeconfigs, certificates, the manager's environment and ca.pem; it keeps certificate authorities over
    /// restarts.
    #[arg(long, default_value = "cerulean-clusters")]
    directory: PathBuf,
    /// Time from the start of a machine until it is a node.
    #[arg(long, default_value = "2s", value_parser = go_values::duration)]
    boot: Duration,
    /// Let nodes wait for an azure-cloud-controller-manager that you start, too.
    #[arg(long)]
    await_cloud_provider: bool,
    /// Parts of Cluster API that are simulated, such as core,bootstrap; none for no part. Start the real programs for
    /// the others, with their definitions.
    #[arg(long, value_name = "PARTS", default_value = "core,bootstrap,control-plane", value_parser = played)]
    play: Played,
    /// Port of the Kubernetes API. 0 and the default are as for --port.
    #[arg(long)]
    kubernetes_port: Option<u16>,
    /// Port of the control API of the simulated Kubernetes. 0 and the default are as for --port.
    #[arg(long)]
    kubernetes_control_port: Option<u16>,
    /// Port on which the manager serves its webhooks. 0 and the default are as for --port.
    #[arg(long)]
    webhook_port: Option<u16>,
    #[command(flatten)]
    azure: AzureOptions,
}

/// The parts of Cluster API that are played.
#[derive(Debug, Clone)]
struct Played(Vec<Part>);

fn played(text: &str) -> Result<Played, String> {
    let part = |name: &str| {
        let found = Part::ALL.iter().find(|part| part.name() == name).copied();
        found.ok_or_else(|| {
            format!(
                "{name:?} is not a part of Cluster API that can be played: there are {}",
                names(Part::ALL)
            )
        })
    };
    match text {
        "none" => Ok(Played(Vec::new())),
        parts => parts.split(',').map(|name| part(name.trim())).collect::<Result<_, _>>().map(Played),
    }
}

fn names(parts: &[Part]) -> String {
    parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(", ")
}

/// Serves it until it is stopped.
///
/// # Errors
/// A listener, file or certificate cannot be opened.
pub async fn run(screen: Screen, arguments: ManagementClusterArguments) -> anyhow::Result<()> {
    let stop = signals::stop_token()?;
    let folder = Folder::take(&arguments.directory)?;
    let directory = folder.path();
    let ports = Ports::of(&folder)?;
    let shape = Shape { region: arguments.azure.region().to_owned(), ..Shape::default() };
    let settings = Settings {
        azure: arguments.azure.hosted(&shape, limits::enough_cores(), directory, &ports),
        boot: arguments.boot / 2,
        cloud_provider: match arguments.await_cloud_provider {
            true => CloudProvider::Awaited,
            false => CloudProvider::Unseen,
        },
        played: arguments.play.0.clone(),
        kubernetes_port: ports.choose("kubernetes-port", arguments.kubernetes_port),
        kubernetes_control_port: ports.choose("kubernetes-control-port", arguments.kubernetes_control_port),
        webhook_port: ports.choose("webhook-port", arguments.webhook_port),
    };
    let (played, left): (Vec<Part>, Vec<Part>) =
        Part::ALL.iter().partition(|part| arguments.play.0.contains(part));
    management::remove_stale_kubeconfigs(directory)?;
    let mut chosen = arguments.azure.chosen_ports().to_vec();
    chosen.extend([
        ("kubernetes-port", arguments.kubernetes_port),
        ("kubernetes-control-port", arguments.kubernetes_control_port),
    ]);
    let management = Management::start(settings, &stop).await;
    let management = management.map_err(|error| ports::explain(error, &chosen))?;
    let (azure, kubernetes) = (&management.hosted.azure, &management.hosted.kubernetes);
    ports.keep(&[
        ("port", &azure.http),
        ("https-port", &azure.https),
        ("authority-port", &azure.authority),
        ("proxy-port", &management.hosted.proxy),
        ("kubernetes-port", &kubernetes.url),
        ("kubernetes-control-port", &kubernetes.control),
        ("webhook-port", &format!(":{}", management.webhooks.port)),
    ])?;
    management.register_webhooks().await?;
    let variables = management.variables();
    let file = directory.join(ENVIRONMENT);
    let text: String = variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    std::fs::write(&file, text).with_context(|| file.display().to_string())?;

    screen.line(format_args!("Azure Resource Manager  {}", management.hosted.azure.https));
    screen.line(format_args!("page and control API    {}", management.page()));
    screen.line(format_args!("management cluster      {}", management.hosted.kubernetes.url));
    let none = |parts: &[Part]| if parts.is_empty() { "none".to_owned() } else { names(parts) };
    screen.line(format_args!("Cluster API, played     {}", none(&played)));
    if !left.is_empty() {
        screen.line(format_args!("Cluster API, not played {}: start the real programs,", names(&left)));
        screen.line(format_args!("                        with HTTPS_PROXY={}", management.hosted.proxy));
    }
    screen.line("");
    screen.line("Run the manager of clusters:");
    for (name, value) in &variables {
        screen.line(format_args!("  {name}={value} \\"));
    }
    screen.line("  capz-controller-manager \\");
    for argument in management.arguments() {
        screen.line(format_args!("    {argument} \\"));
    }
    screen.line("    --health-addr=0 --diagnostics-address=0");
    screen.line(format_args!("The same variables are in {}.", file.display()));
    screen.line("");
    screen.line("Then make clusters, which need its webhooks:");
    screen.line(format_args!("  export KUBECONFIG={}", management.hosted.kubernetes.kubeconfig.display()));
    screen.line("  kubectl apply -f my-cluster.yaml");
    screen.line("");
    screen.line("Stop with Ctrl-C.");
    let served = serve_workloads(screen, &management, &folder);
    stop.run_until_cancelled(served).await.unwrap_or(Ok(()))
}

/// Serves each workload cluster on this machine as soon as it exists, prints the path of its kubeconfig, and removes
/// the file with the cluster.
async fn serve_workloads(screen: Screen, management: &Management, folder: &Folder) -> anyhow::Result<()> {
    let mut served = BTreeSet::new();
    loop {
        let there: BTreeSet<ClusterName> = management.workloads().into_keys().collect();
        for name in served.difference(&there) {
            let path = management::workload_kubeconfig(folder.path(), name);
            // It may have been removed already.
            let _not_there = std::fs::remove_file(&path);
            screen.line(format_args!("{name} is gone"));
        }
        for name in there.difference(&served) {
            match management.serve_workload(folder.path(), name).await {
                Ok(path) => {
                    let path = path.display();
                    screen.line(format_args!("{name} answers: kubectl --kubeconfig {path} get nodes"));
                }
                // The other clusters are served.
                Err(error) => screen.line(format_args!("{name} cannot be reached from here: {error:#}")),
            }
        }
        served = there;
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_or_none() {
        let parts = |text: &str| played(text).map(|played| played.0);
        assert_eq!(parts("core,bootstrap,control-plane").unwrap(), Part::ALL);
        assert_eq!(parts("bootstrap, control-plane").unwrap(), [Part::Bootstrap, Part::ControlPlane]);
        assert_eq!(parts("none").unwrap(), []);
        let error = parts("core,kubeadm").unwrap_err();
        assert!(error.contains("\"kubeadm\"") && error.contains("core, bootstrap, control-plane"), "{error}");
    }
}
