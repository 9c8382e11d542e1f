//! A cluster on Azure from what a user applies to nothing again, by the release binary of our manager over TLS:
//! `cargo xtask e2e capz [--kubernetes real] [--core PATH] [--kubeadm FOLDER] [--core-sources FOLDER]`.
//!
//! Azure and the machines are simulated. The management cluster is the simulator or, with `--kubernetes
//! real`, etcd and kube-apiserver, where the manager has the rights of its manifest. Cluster API's core and kubeadm's providers are
//! stand-ins or, with `--core` and `--kubeadm`, the real managers with their own definitions and webhooks, which reach the workload
//! cluster through Azure's load balancer by a proxy.

mod manager;
pub mod objects;
mod place;
mod play;
mod provider;
mod view;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use simulated_cluster::{Part, WebhookServer};
use tokio::time::Instant;

use super::{Api, Kubernetes};
use crate::print;
use crate::program::{Program, build_release};
use place::Place;
use provider::{PROVIDERS, Provider};

/// How long a program may take until it serves its webhooks.
const READY: Duration = Duration::from_secs(60);

/// How to run it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which Kubernetes API the management cluster has.
    #[arg(long, value_enum, default_value_t = Kubernetes::Simulated)]
    kubernetes: Kubernetes,
    /// A built manager of Cluster API's core; a stand-in without.
    #[arg(long, requires = "core_sources")]
    core: Option<PathBuf>,
    /// A folder with built managers of kubeadm's providers, `kubeadm-bootstrap-manager` and `kubeadm-control-plane-manager`; what
    /// is not in it is a stand-in.
    #[arg(long, value_name = "FOLDER", requires = "core_sources")]
    kubeadm: Option<PathBuf>,
    /// The folder with the sources of those managers, for their definitions and webhooks.
    #[arg(long)]
    core_sources: Option<PathBuf>,
    /// A built `capz-controller-manager`, instead of a new release build.
    #[arg(long, value_name = "PATH")]
    manager: Option<PathBuf>,
    /// Keep the folder with logs and files, and say where it is.
    #[arg(long)]
    keep: bool,
}

/// Runs it.
///
/// # Errors
/// The first step that does not come true.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Some(api) = Api::find(arguments.kubernetes)? else { return Ok(()) };
    let binary = match &arguments.manager {
        Some(path) => path.clone(),
        None => {
            print::line("building the release binaries");
            build_release()?.join("capz-controller-manager")
        }
    };
    let directory = tempfile::Builder::new().prefix("cerulean-e2e-capz-").tempdir()?;
    let real = real_providers(arguments)?;
    for provider in PROVIDERS.iter().filter(|one| real.iter().all(|(other, _)| other.part != one.part)) {
        print::line(format_args!("a stand-in plays {}", provider.part.name()));
    }
    let begun = Instant::now();
    let done = super::runtime()?.block_on(run_in(
        directory.path(),
        &binary,
        &api,
        &real,
        arguments.core_sources.as_deref(),
    ));
    if arguments.keep || done.is_err() {
        print::line(format_args!("files and logs: {}", directory.keep().display()));
    }
    done?;
    print::line(format_args!("all steps passed in {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(())
}

/// The real programs that were named, each with its path.
fn real_providers(arguments: &Arguments) -> anyhow::Result<Vec<(&'static Provider, PathBuf)>> {
    let mut real = Vec::new();
    for provider in &PROVIDERS {
        match (provider.part, &arguments.core, &arguments.kubeadm) {
            (Part::Core, Some(path), _) => real.push((provider, path.clone())),
            (Part::Core, None, _) | (_, _, None) => {}
            (_, _, Some(folder)) => {
                let path = folder.join(provider.program);
                if path.exists() {
                    real.push((provider, path));
                }
            }
        }
    }
    if let Some(folder) = &arguments.kubeadm {
        let any = real.iter().any(|(provider, _)| provider.part != Part::Core);
        ensure!(any, "--kubeadm {}: there is no manager of kubeadm's in it", folder.display());
    }
    Ok(real)
}

async fn run_in(
    directory: &Path,
    binary: &Path,
    api: &Api,
    real: &[(&Provider, PathBuf)],
    sources: Option<&Path>,
) -> anyhow::Result<()> {
    let parts: Vec<Part> = real.iter().map(|(provider, _)| provider.part).collect();
    let place = Place::start(directory, api.assets(), &parts).await?;
    let mut programs: Vec<Program> = Vec::new();
    for (provider, program) in real {
        let sources = sources.context("--core-sources is missing")?;
        programs.push(provider::start(provider, program, sources, directory, &place).await?);
    }
    programs.push(manager::start(binary, directory, &place).await?);
    let played = play::play(&place, &mut programs).await;
    let words: Vec<&Program> = programs.iter().collect();
    played.map_err(|problem| super::with_words(problem, &words))?;
    for program in &mut programs {
        program.terminate(super::PATIENCE).await?;
    }
    Ok(())
}

/// Waits until a program serves its webhooks.
async fn serves(webhooks: &WebhookServer, program: &mut Program) -> anyhow::Result<()> {
    let deadline = Instant::now() + READY;
    while !webhooks.listens().await {
        program.must_run()?;
        ensure!(Instant::now() < deadline, "no webhooks are served:\n{}", program.last_words());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
