//! A cluster on Azure from a user's manifests to its deletion, by the release binary of our manager over TLS:
//! `cargo xtask e2e capz [--kubernetes real] [--core PATH] [--kubeadm FOLDER] [--core-sources FOLDER] [--clusterctl
//! PATH] [STORY…]`.
//!
//! Azure and the machines are simulated. The management cluster is the simulator or, with `--kubernetes real`, etcd and
//! kube-apiserver, where the manager has the rights of its manifest. Cluster API's core and kubeadm's providers are
//! stand-ins or, with `--core` and `--kubeadm`, the real managers with their own definitions and webhooks, which reach
//! the workload cluster through Azure's load balancer by a proxy.

mod clusterctl;
mod example;
mod flavor;
mod management;
mod manager;
pub mod objects;
mod place;
mod provider;
mod server;
mod stage;
mod stories;
mod story;
mod view;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use simulated_cluster::{Part, WebhookServer};
use tokio::time::Instant;

use super::{Api, Kubernetes};
use crate::print;
use crate::program::{Program, build_release};
use management::Programs;
use place::Place;
use provider::{PROVIDERS, Provider};
use stage::Stage;
use story::Story;

/// The time limit for a program to serve its webhooks.
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
    /// A built `clusterctl`, which fills flavors in, and moves clusters.
    #[arg(long, value_name = "PATH")]
    clusterctl: Option<PathBuf>,
    /// A built `capz-controller-manager`, instead of a new release build.
    #[arg(long, value_name = "PATH")]
    manager: Option<PathBuf>,
    /// Keep the folders with logs and files, and say where they are.
    #[arg(long)]
    keep: bool,
    /// The stories; without, all that can be played with these programs.
    #[arg(value_enum)]
    stories: Vec<Story>,
}

/// Runs the stories one after the other, each in its own environment.
///
/// # Errors
/// The first failed step, or a requested story lacks a program.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Some(api) = Api::find(arguments.kubernetes)? else { return Ok(()) };
    let mut programs = Programs {
        manager: PathBuf::new(),
        real: real_providers(arguments)?,
        sources: arguments.core_sources.clone(),
        clusterctl: arguments.clusterctl.clone(),
        kubectl: std::env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join("kubectl")),
        assets: api.assets().map(Path::to_owned),
    };
    for provider in &PROVIDERS {
        match programs.real.iter().find(|(other, _)| other.part == provider.part) {
            Some((_, path)) => {
                print::line(format_args!("Cluster API's {}: {}", provider.title, path.display()));
            }
            None => print::line(format_args!("a stand-in plays {}", provider.part.name())),
        }
    }
    let mut stories =
        if arguments.stories.is_empty() { Story::ALL.to_vec() } else { arguments.stories.clone() };
    stories.retain(|story| match story.lacks(&programs) {
        Some(what) => {
            print::line(format_args!("left out: {}, which needs {what}", story.title()));
            false
        }
        None => true,
    });
    ensure!(!stories.is_empty(), "none of these stories can be played with these programs");
    programs.manager = match &arguments.manager {
        Some(path) => path.clone(),
        None => {
            print::line("building the release binaries");
            build_release()?.join("capz-controller-manager")
        }
    };
    let runtime = super::runtime()?;
    let begun = Instant::now();
    for story in stories {
        print::line(story.title());
        let directory = tempfile::Builder::new().prefix("cerulean-e2e-capz-").tempdir()?;
        let begun = Instant::now();
        let played = runtime.block_on(play(story, &programs, directory.path()));
        if arguments.keep || played.is_err() {
            print::line(format_args!("files and logs: {}", directory.keep().display()));
        }
        played.with_context(|| story.title())?;
        print::line(format_args!("passed in {:.1} s", begun.elapsed().as_secs_f64()));
    }
    print::line(format_args!("all steps passed in {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(())
}

/// The configured real programs, each with its path.
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

async fn play(story: Story, programs: &Programs, directory: &Path) -> anyhow::Result<()> {
    let place = Place::start(directory).await?;
    let mut stage = Stage::set(programs, &place, directory).await?;
    let played = story.play(&mut stage).await;
    played.map_err(|problem| super::with_words(problem, &stage.running()))?;
    stage.end().await
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
