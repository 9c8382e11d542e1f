//! A cluster on Azure from what a user applies to nothing again, by the release binary of our manager over TLS:
//! `cargo xtask e2e capz [--kubernetes real] [--core PATH --core-sources FOLDER]`.
//!
//! Azure and the machines are simulated, and so is kubeadm. The management cluster is the simulator or, with `--kubernetes
//! real`, etcd and kube-apiserver, where the manager has the rights of its manifest. Cluster API's core is a stand-in or, with
//! `--core`, the real manager with its own definitions and webhooks, which reaches the workload cluster through Azure's load
//! balancer by a proxy.

mod core;
mod manager;
pub mod objects;
mod place;
mod play;
mod view;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use simulated_cluster::WebhookServer;
use tokio::time::Instant;

use super::{Api, Kubernetes};
use crate::print;
use crate::program::{Program, build_release};
use place::Place;

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
    /// The folder with the sources of that manager, for its definitions and webhooks.
    #[arg(long, requires = "core")]
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
    let core = arguments.core.as_deref().zip(arguments.core_sources.as_deref());
    let begun = Instant::now();
    let done = super::runtime()?.block_on(run_in(directory.path(), &binary, &api, core));
    if arguments.keep || done.is_err() {
        print::line(format_args!("files and logs: {}", directory.keep().display()));
    }
    done?;
    print::line(format_args!("all steps passed in {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(())
}

async fn run_in(
    directory: &Path,
    binary: &Path,
    api: &Api,
    core: Option<(&Path, &Path)>,
) -> anyhow::Result<()> {
    let place = Place::start(directory, api.assets(), core.is_none()).await?;
    let mut programs: Vec<Program> = Vec::new();
    if let Some((program, sources)) = core {
        programs.push(core::start(program, sources, directory, &place).await?);
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
