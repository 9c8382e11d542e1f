//! `cerulean demo clusters`: manifests become two clusters on Azure whose nodes are ready, one on machines, whose Services
//! have addresses, and one that Azure manages (AKS). Both are scaled, the machines of a pool are replaced, Azure evicts
//! one, and the clusters are deleted until Azure is as before.
//!
//! Azure and the management cluster are simulated and served over TLS. `capz-controller-manager` with its webhooks and,
//! for the cluster on machines, `azure-cloud-controller-manager` run as they do in production.
//!
//! With `-f` the demo applies the user's manifests instead, and runs until Ctrl-C.

mod acts;
mod managed;
mod own;
mod programs;
mod stage;
mod tree;

use tokio_util::sync::CancellationToken;

use crate::demo::running;
use crate::leftover_variables;
use crate::manifests::{Manifest, ManifestArguments};
use crate::screen::Screen;
use stage::Stage;

/// How to run the demo.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Leave the clusters running, for kubectl and a browser, instead of deleting them.
    #[arg(long, conflicts_with = "files")]
    keep: bool,
    /// Without -f it is the example, with its acts. With -f these manifests are applied, and all goes on until Ctrl-C.
    #[command(flatten)]
    manifests: ManifestArguments,
}

/// Runs the demo.
///
/// # Errors
/// Something is not as the demo claims.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    if !arguments.manifests.files.is_empty() {
        return run_own(screen, &arguments.manifests);
    }
    let manifests = Manifest::read_all(&acts::EXAMPLES)?;
    running::run(arguments.keep, async |directory, stop| {
        let mut stage = Stage::set(screen, directory).await?;
        acts::apply(&mut stage, &manifests).await?;
        acts::serve(&mut stage).await?;
        acts::scale(&mut stage).await?;
        managed::grow(&mut stage).await?;
        acts::replace(&mut stage).await?;
        acts::evict(&mut stage).await?;
        if arguments.keep {
            keep(&stage, stop).await;
        } else {
            acts::delete(&mut stage).await?;
        }
        acts::sum_up(&stage);
        stage.clear().await
    })?;
    running::passed(screen);
    Ok(())
}

/// Applies these manifests, and reports on the results.
fn run_own(screen: Screen, arguments: &ManifestArguments) -> anyhow::Result<()> {
    let manifests = arguments.load(screen)?;
    if let Some(refusal) = leftover_variables::refusal(&manifests) {
        anyhow::bail!("{refusal}");
    }
    running::run(true, async |directory, stop| own::play(screen, directory, &manifests, stop).await)
}

async fn keep(stage: &Stage, stop: &CancellationToken) {
    let screen = stage.screen;
    let management = &stage.management;
    screen.heading("The clusters keep running");
    screen.line(format_args!("  export KUBECONFIG={}", management.hosted.kubernetes.kubeconfig.display()));
    screen.line("  kubectl get cluster,azurecluster,azuremanagedcontrolplane,machines,machinepools");
    for cluster in [stage::CLUSTER, managed::MANAGED] {
        let kubeconfig = stage.workload_kubeconfig(cluster);
        screen.line(format_args!("  kubectl --kubeconfig {} get nodes,services -A", kubeconfig.display()));
    }
    screen.line(format_args!("  page: {}", management.page()));
    screen.line("  Stop with Ctrl-C.");
    stop.cancelled().await;
}
