//! Runs the release binaries over TLS through one scenario: `cargo xtask e2e [--kubernetes real]`.
//!
//! Azure is always the simulator. Kubernetes is the simulator or, with `--kubernetes real`, etcd and
//! kube-apiserver found through `KUBEBUILDER_ASSETS`, with kubectl applying the manifests.

mod bad_input;
pub mod capz;
mod cluster;
mod kubelets;
mod manager;
mod metadata;
mod real_kubernetes;
mod scenario;
mod service_account;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::ValueEnum;

use crate::print;
use crate::program::{Built, Given, Program};
use real_kubernetes::RealKubernetes;

/// The time limit for a program to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// How to run the scenario.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// Which Kubernetes API to use.
    #[arg(long, value_enum, default_value_t = Kubernetes::Simulated)]
    kubernetes: Kubernetes,
    /// Keep the folder with logs and files, and say where it is.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    given: Given,
    /// Run one step alone, in this folder: what the chore itself does inside of a network namespace.
    #[arg(long, hide = true, value_name = "FOLDER", requires = "programs", requires = "cerulean")]
    inside_namespace: Option<PathBuf>,
}

/// Other scenarios.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// A cluster on Azure comes, grows, shrinks and goes, by the manager of clusters.
    Capz(capz::Arguments),
    /// Real kubelets on simulated machines: nodes, a Service, and an image from the simulated registry.
    Kubelets(kubelets::Arguments),
}

/// Which Kubernetes API is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kubernetes {
    /// The simulator's.
    Simulated,
    /// etcd and kube-apiserver from `KUBEBUILDER_ASSETS`.
    Real,
}

/// The Kubernetes API of a run.
enum Api {
    Simulated,
    /// etcd, kube-apiserver and kubectl are in this folder.
    Real(PathBuf),
}

impl Api {
    /// The requested API; `None` with a message if the run is skipped.
    fn find(kubernetes: Kubernetes) -> anyhow::Result<Option<Self>> {
        match (kubernetes, std::env::var_os("KUBEBUILDER_ASSETS")) {
            (Kubernetes::Simulated, _) => Ok(Some(Self::Simulated)),
            (Kubernetes::Real, Some(directory)) => Ok(Some(Self::Real(directory.into()))),
            (Kubernetes::Real, None) if std::env::var_os("CI").is_some() => {
                bail!(
                    "KUBEBUILDER_ASSETS is not set: in CI the scenario must run against a real kube-apiserver"
                )
            }
            (Kubernetes::Real, None) => {
                print::line(
                    "skipped: KUBEBUILDER_ASSETS is not set; point it at a folder with etcd, kube-apiserver and kubectl",
                );
                Ok(None)
            }
        }
    }

    /// The folder with the programs of a real API.
    fn assets(&self) -> Option<&Path> {
        match self {
            Self::Simulated => None,
            Self::Real(directory) => Some(directory),
        }
    }
}

/// Runs the scenario.
///
/// # Errors
/// The first failed step.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.other {
        Some(Other::Capz(arguments)) => return capz::run(arguments),
        Some(Other::Kubelets(arguments)) => return kubelets::run(arguments),
        None => {}
    }
    if let Some(directory) = arguments.inside_namespace.as_deref() {
        return runtime()?.block_on(metadata::check(&arguments.given.or_built()?, directory));
    }
    let Some(api) = Api::find(arguments.kubernetes)? else { return Ok(()) };
    let built = arguments.given.or_built()?;
    let directory = tempfile::Builder::new().prefix("cerulean-e2e-").tempdir()?;
    let done = runtime()?.block_on(run_in(directory.path(), &built, api.assets()));
    if arguments.keep || done.is_err() {
        print::line(format_args!("files and logs: {}", directory.keep().display()));
    }
    done?;
    print::line("all steps passed");
    Ok(())
}

/// A runtime of two threads.
///
/// # Errors
/// The system cannot create threads.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
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

/// Adds the end of the programs' logs to a problem.
pub fn with_words(problem: anyhow::Error, programs: &[&Program]) -> anyhow::Error {
    let words: Vec<String> = programs.iter().map(|program| program.last_words()).collect();
    problem.context(format!("last words of the programs:\n{}\n", words.join("\n---\n")))
}
