//! Runs the release binaries over TLS through one scenario: `cargo xtask e2e [--kubernetes real]`.
//!
//! Azure is always the simulator. Kubernetes is the simulator or, with `--kubernetes real`, etcd and
//! kube-apiserver found through `KUBEBUILDER_ASSETS`, with kubectl applying the manifests.

mod bad_input;
pub mod capz;
mod cluster;
mod install;
mod kubelets;
mod machines;
mod manager;
mod managers;
mod metadata;
mod real_kubernetes;
mod registry;
mod rights;
mod scenario;
mod service_account;
mod volumes;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::kubernetes::{Api, Kubernetes};
use crate::print;
use crate::program::{Built, ProgramArguments, in_folder, runtime};
use real_kubernetes::RealKubernetes;

/// How to run the scenario.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// Kubernetes API of the cluster.
    #[arg(long, value_enum, default_value_t = Kubernetes::Simulated)]
    kubernetes: Kubernetes,
    /// Keep the folder with logs and files, and print its path.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    programs: ProgramArguments,
    /// Run one step alone in this folder, which the task starts in a network namespace.
    #[arg(long, hide = true, value_name = "FOLDER", requires = "programs", requires = "cerulean")]
    inside_namespace: Option<PathBuf>,
}

/// Other scenarios.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// A cluster on Azure comes, grows, shrinks and goes, by the manager of clusters.
    Capz(capz::Arguments),
    /// An installation from images and chart on real kubelets: switch, two replicas, and back.
    Install(install::Arguments),
    /// Real kubelets on simulated machines: nodes, a Service, and an image from the simulated registry.
    Kubelets(kubelets::Arguments),
    /// A driver for disks, ours or the established one, answers csi-sanity on a simulated machine with loop devices.
    Volumes(volumes::Arguments),
}

/// Runs the scenario.
///
/// # Errors
/// The first failed step.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.other {
        Some(Other::Capz(arguments)) => return capz::run(arguments),
        Some(Other::Install(arguments)) => return install::run(arguments),
        Some(Other::Kubelets(arguments)) => return kubelets::run(arguments),
        Some(Other::Volumes(arguments)) => return volumes::run(arguments),
        None => {}
    }
    if let Some(directory) = arguments.inside_namespace.as_deref() {
        return runtime()?.block_on(metadata::check(&arguments.programs.or_built()?, directory));
    }
    let Some(api) = Api::find(arguments.kubernetes)? else { return Ok(()) };
    let built = arguments.programs.or_built()?;
    let runtime = runtime()?;
    in_folder("cerulean-e2e-", arguments.keep, |directory| {
        runtime.block_on(run_in(directory, &built, api.assets()))
    })?;
    print::line("all steps passed");
    Ok(())
}

async fn run_in(directory: &Path, built: &Built, assets: Option<&Path>) -> anyhow::Result<()> {
    let kubernetes = match assets {
        Some(assets) => {
            print::line("starting etcd and kube-apiserver");
            Some(RealKubernetes::start(assets, directory).await.context("real Kubernetes")?)
        }
        None => None,
    };
    if assets.is_none() {
        metadata::run(built, directory).context("instance metadata at its own address")?;
    }
    let cluster = cluster::Cluster::start(built, directory, kubernetes.as_ref()).await?;
    bad_input::check(built, directory, &cluster).await.context("bad input")?;
    scenario::run(built, directory, cluster, kubernetes.as_ref()).await
}
