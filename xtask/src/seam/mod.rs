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

use crate::kubernetes::Kubernetes;
use crate::print;
use crate::program::{given_or_built, in_folder, runtime};
use real::Counterparts;
use stage::Programs;
use story::Story;

/// Plays a story, with its files in a folder.
type Play = Box<dyn Fn(Story, &Path) -> anyhow::Result<()>>;

/// What to play, with which programs.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Kubernetes API of the management cluster.
    #[arg(long, value_enum, default_value_t = Kubernetes::Simulated)]
    kubernetes: Kubernetes,
    /// Binary of Azure Service Operator's controller.
    #[arg(long, value_name = "PATH", required_unless_present = "counterparts")]
    operator: Option<PathBuf>,
    /// Binary of the established provider's manager.
    #[arg(long, value_name = "PATH", required_unless_present = "counterparts")]
    provider: Option<PathBuf>,
    /// Folder with the sources of that manager, for its definitions and webhooks.
    #[arg(long, value_name = "FOLDER", required_unless_present = "counterparts")]
    sources: Option<PathBuf>,
    /// Folder that `scripts/counterparts.sh` has filled.
    #[arg(long, value_name = "FOLDER", required_if_eq("kubernetes", "real"))]
    counterparts: Option<PathBuf>,
    /// Binary of `cerulean`, for `check takeover`; without it that check is skipped.
    #[arg(long, value_name = "PATH")]
    cerulean: Option<PathBuf>,
    /// Binary of `capz-controller-manager`; by default a release build is made.
    #[arg(long, value_name = "PATH")]
    manager: Option<PathBuf>,
    /// Flavor of the cluster.
    #[arg(long, value_name = "NAME", default_value = "azure-bastion")]
    flavor: String,
    /// Stories to play; by default all.
    #[arg(value_enum)]
    stories: Vec<Story>,
    /// Keep the folders with logs and files, and print their paths.
    #[arg(long)]
    keep: bool,
}

/// Runs the stories one after the other.
///
/// # Errors
/// The first failed step.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let manager = given_or_built(arguments.manager.as_deref(), "capz-controller-manager")?;
    let play: Play = match (arguments.kubernetes, &arguments.counterparts) {
        (Kubernetes::Real, Some(folder)) => {
            let counterparts = Counterparts::in_folder(folder, manager, arguments.cerulean.clone())?;
            let flavor = arguments.flavor.clone();
            Box::new(move |story, directory| {
                runtime()?.block_on(real::play(story, &counterparts, &flavor, directory))
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
            Box::new(move |story, directory| runtime()?.block_on(story.play(&programs, directory)))
        }
    };
    let stories = match (&arguments.stories, arguments.kubernetes) {
        (stories, _) if !stories.is_empty() => stories.clone(),
        (_, Kubernetes::Real) => Story::REAL.to_vec(),
        (_, Kubernetes::Simulated) => Story::SIMULATED.to_vec(),
    };
    for story in stories {
        print::line(format_args!("{}", story.title()));
        let begun = Instant::now();
        let played = in_folder("cerulean-seam-", arguments.keep, |directory| play(story, directory));
        played.with_context(|| story.title())?;
        print::line(format_args!("passed in {:.0} s", begun.elapsed().as_secs_f64()));
    }
    Ok(())
}
