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
mod provider;
mod server;
mod stage;
mod stories;
mod story;
mod view;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use azure_simulator::Options;
use clock::Clock;
use simulated_cluster::{Part, Shape, WorkloadOptions};
use tokio::time::Instant;

use crate::kubernetes::{Api, Kubernetes};
use crate::print;
use crate::program::{given_or_built, in_folder, runtime, with_logs};
use crate::world::World;
use management::Programs;
use provider::{PROVIDERS, Provider};
use stage::Stage;
use story::Story;

/// How to run it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Kubernetes API of the management cluster.
    #[arg(long, value_enum, default_value_t = Kubernetes::Simulated)]
    kubernetes: Kubernetes,
    /// Binary of the manager of Cluster API's core; by default a stand-in runs.
    #[arg(long, requires = "core_sources")]
    core: Option<PathBuf>,
    /// Folder with binaries of the managers of kubeadm's providers, `kubeadm-bootstrap-manager` and
    /// `kubeadm-control-plane-manager`; stand-ins run instead of missing ones.
    #[arg(long, value_name = "FOLDER", requires = "core_sources")]
    kubeadm: Option<PathBuf>,
    /// Folder with the sources of those managers, for their definitions and webhooks.
    #[arg(long)]
    core_sources: Option<PathBuf>,
    /// Binary of `clusterctl`, which renders flavors and moves clusters.
    #[arg(long, value_name = "PATH")]
    clusterctl: Option<PathBuf>,
    /// Binary of `capz-controller-manager`; by default a release build is made.
    #[arg(long, value_name = "PATH")]
    manager: Option<PathBuf>,
    /// Keep the folders with logs and files, and print their paths.
    #[arg(long)]
    keep: bool,
    /// Stories to play; by default all that are possible with these programs.
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
    programs.manager = given_or_built(arguments.manager.as_deref(), "capz-controller-manager")?;
    let runtime = runtime()?;
    let begun = Instant::now();
    for story in stories {
        print::line(story.title());
        let begun = Instant::now();
        let play = |directory: &Path| runtime.block_on(play(story, &programs, directory));
        in_folder("cerulean-e2e-capz-", arguments.keep, play).with_context(|| story.title())?;
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
    let options = Options { start: Clock::system().now(), ..Options::default() };
    let management = WorkloadOptions::default().management;
    let place = World::start(directory, &Shape::default(), management, options).await?;
    let mut stage = Stage::set(programs, &place, directory).await?;
    let played = story.play(&mut stage).await;
    played.map_err(|problem| with_logs(problem, &stage.running()))?;
    stage.end().await
}
