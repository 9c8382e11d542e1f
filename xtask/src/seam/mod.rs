//! Replaces the established provider by our manager of clusters, and back:
//! `cargo xtask seam --operator PATH --provider PATH --sources FOLDER [--manager PATH] [STORY…]`, or with a real API
//! server, garbage collector and clusterctl, and the rights of the manifests,
//! `cargo xtask seam --kubernetes real --counterparts FOLDER [STORY…]`. Without the real counterparts,
//! `cargo xtask seam --kubernetes real` follows the guide to switching with clusterctl from its Go module, and with our
//! manager in the place of the established one.
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

use anyhow::{Context as _, ensure};
use tokio::time::Instant;

use crate::kubernetes::{Api, Kubernetes};
use crate::print;
use crate::program::{given_or_built, in_folder, of_script, runtime};
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
    #[arg(long, value_name = "PATH", required_if_eq("kubernetes", "simulated"))]
    operator: Option<PathBuf>,
    /// Binary of the established provider's manager.
    #[arg(long, value_name = "PATH", required_if_eq("kubernetes", "simulated"))]
    provider: Option<PathBuf>,
    /// Folder with the sources of that manager, for its definitions and webhooks.
    #[arg(long, value_name = "FOLDER", required_if_eq("kubernetes", "simulated"))]
    sources: Option<PathBuf>,
    /// Folder that `scripts/counterparts.sh` has filled. With a real API server and without it, our manager plays the
    /// established one, and the guide to switching is followed.
    #[arg(long, value_name = "FOLDER")]
    counterparts: Option<PathBuf>,
    /// Binary of `cerulean`, for `check takeover`; without it that check is skipped, and a release build is made for the
    /// guide.
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
    let real = match arguments.kubernetes {
        Kubernetes::Real => match Api::find(Kubernetes::Real)? {
            Some(api) => Some(api.assets().context("there is no folder of programs")?.to_owned()),
            None => return Ok(()),
        },
        Kubernetes::Simulated => None,
    };
    let is_played = real.is_some() && arguments.counterparts.is_none();
    let clusterctl = if is_played { of_script("clusterctl.sh")? } else { None };
    if is_played && clusterctl.is_none() {
        return Ok(());
    }
    let manager = given_or_built(arguments.manager.as_deref(), "capz-controller-manager")?;
    let play: Play = match (&real, clusterctl, &arguments.counterparts) {
        (Some(assets), Some(clusterctl), _) => {
            let cerulean = given_or_built(arguments.cerulean.as_deref(), "cerulean")?;
            let cerulean = cerulean.canonicalize().with_context(|| cerulean.display().to_string())?;
            let (assets, flavor) = (assets.clone(), arguments.flavor.clone());
            Box::new(move |story, directory| {
                let counterparts = Counterparts::played(
                    directory,
                    clusterctl.clone(),
                    manager.clone(),
                    Some(cerulean.clone()),
                    &assets,
                )?;
                runtime()?.block_on(real::play(story, &counterparts, &flavor, directory))
            })
        }
        (Some(_), None, Some(folder)) => {
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
    let possible = match (&real, is_played) {
        (None, _) => &Story::SIMULATED[..],
        (Some(_), false) => &Story::REAL,
        (Some(_), true) => &Story::PLAYED,
    };
    let stories = if arguments.stories.is_empty() { possible } else { &arguments.stories };
    for story in stories {
        ensure!(possible.contains(story), "not with these programs: {}", story.title());
    }
    for &story in stories {
        print::line(format_args!("{}", story.title()));
        let begun = Instant::now();
        let played = in_folder("cerulean-seam-", arguments.keep, |directory| play(story, directory));
        played.with_context(|| story.title())?;
        print::line(format_args!("passed in {:.0} s", begun.elapsed().as_secs_f64()));
    }
    Ok(())
}
