//! Replaces the established provider by our manager of clusters, and back:
//! `cargo xtask seam --operator PATH --provider PATH --sources FOLDER [--manager PATH] [STORY…]`, or with a real API
//! server, garbage collector and clusterctl, and the rights of the manifests,
//! `cargo xtask seam --kubernetes real --counterparts FOLDER [STORY…]`.
//!
//! The established provider's manager and Azure Service Operator, both real, create a cluster in the simulated Azure,
//! with the stand-in for Cluster API. Our manager replaces them, and they replace it. In all stories nothing is deleted
//! in Azure that the user did not delete.

mod azure;
mod cluster;
mod real;
mod stage;
mod story;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::time::Instant;

use crate::e2e::Kubernetes;
use crate::print;
use crate::program::build_release;
use real::Counterparts;
use stage::Programs;
use story::Story;

/// Plays a story, with its files in a folder.
type Play = Box<dyn Fn(Story, &Path) -> anyhow::Result<()>>;

/// What to play, with which programs.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which Kubernetes API the management cluster has.
    #[arg(long, value_enum, default_value_t = Kubernetes::Simulated)]
    kubernetes: Kubernetes,
    /// A build of Azure Service Operator's controller.
    #[arg(long, value_name = "PATH", required_unless_present = "counterparts")]
    operator: Option<PathBuf>,
    /// A build of the established provider's manager.
    #[arg(long, value_name = "PATH", required_unless_present = "counterparts")]
    provider: Option<PathBuf>,
    /// The folder with the sources of that manager, for its definitions and webhooks.
    #[arg(long, value_name = "FOLDER", required_unless_present = "counterparts")]
    sources: Option<PathBuf>,
    /// The folder that `scripts/counterparts.sh` has filled.
    #[arg(long, value_name = "FOLDER", required_if_eq("kubernetes", "real"))]
    counterparts: Option<PathBuf>,
    /// A built `cerulean`, for its `check takeover`; left out without.
    #[arg(long, value_name = "PATH")]
    cerulean: Option<PathBuf>,
    /// A built `capz-controller-manager`, instead of a new release build.
    #[arg(long, value_name = "PATH")]
    manager: Option<PathBuf>,
    /// The flavor of the cluster.
    #[arg(long, value_name = "NAME", default_value = "azure-bastion")]
    flavor: String,
    /// The stories; all without.
    #[arg(value_enum)]
    stories: Vec<Story>,
    /// Keep the folders with logs and files, and say where they are.
    #[arg(long)]
    keep: bool,
}

/// Runs the stories one after the other.
///
/// # Errors
/// The first failed step.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let manager = match &arguments.manager {
        Some(path) => path.clone(),
        None => {
            print::line("building the release binaries");
            build_release()?.join("capz-controller-manager")
        }
    };
    let play: Play = match (arguments.kubernetes, &arguments.counterparts) {
        (Kubernetes::Real, Some(folder)) => {
            let counterparts = Counterparts::in_folder(folder, manager, arguments.cerulean.clone())?;
            let flavor = arguments.flavor.clone();
            Box::new(move |story, directory| {
                crate::e2e::runtime()?.block_on(real::play(story, &counterparts, &flavor, directory))
            })
        }
        _ => {
            let given = |path: &Option<PathBuf>| {
                path.clone().context("--operator, --provider or --sources is missing")
            };
            let programs = Programs {
                operator: given(&arguments.operator)?,
                provider: given(&arguments.provider)?,
                sources: given(&arguments.sources)?,
                manager,
                flavor: arguments.flavor.clone(),
            };
            Box::new(move |story, directory| {
                crate::e2e::runtime()?.block_on(story.play(&programs, directory))
            })
        }
    };
    let stories = match (&arguments.stories, arguments.kubernetes) {
        (stories, _) if !stories.is_empty() => stories.clone(),
        (_, Kubernetes::Real) => Story::REAL.to_vec(),
        (_, Kubernetes::Simulated) => Story::SIMULATED.to_vec(),
    };
    for story in stories {
        print::line(format_args!("{}", story.title()));
        let directory = tempfile::Builder::new().prefix("cerulean-seam-").tempdir()?;
        let begun = Instant::now();
        let played = play(story, directory.path());
        if arguments.keep || played.is_err() {
            print::line(format_args!("files and logs: {}", directory.keep().display()));
        }
        played.with_context(|| story.title())?;
        print::line(format_args!("passed in {:.0} s", begun.elapsed().as_secs_f64()));
    }
    Ok(())
}
