//! An installation from images and chart, as its user does it: `cargo xtask e2e install`.
//!
//! Helm installs the charts on a real cluster whose machines are in the simulated Azure. The programs run from the root
//! file systems of their images, with the rights of the chart and the documented role in Azure, and nothing else.
//!
//! ```text
//! this program ─▶ the same in namespaces of its own ─▶ place (Azure, kubelets, images in a registry) ─▶ story
//! ```

mod established;
mod helm;
mod image;
mod monitoring;
mod place;
mod reader;
mod replicas;
mod story;
mod tools;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use real_kubernetes::Enclosure;
use tokio::time::Instant;

use crate::e2e::machines;
use crate::kubernetes::{Api, Kubernetes};
use crate::print;
use crate::program::{given_or_built, in_folder, runtime};
use helm::Helm;
use place::Place;
use tools::Tools;

/// How to run it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder of the images (`cargo xtask images`).
    #[arg(long, value_name = "FOLDER", default_value = "target/images")]
    images: PathBuf,
    /// Binary of `cerulean`, whose plans the guide compares; by default a release build is made.
    #[arg(long, value_name = "PATH")]
    cerulean: Option<PathBuf>,
    /// Keep the folder with logs and files, and print its path.
    #[arg(long)]
    keep: bool,
    /// Leave the empty cluster running until Ctrl-C, and print the commands that install the programs.
    #[arg(long)]
    stay: bool,
    /// Run the story itself, which the task starts in namespaces of its own.
    #[arg(long, hide = true, requires = "helm")]
    inside: bool,
    /// The program helm.
    #[arg(long, hide = true)]
    helm: Option<PathBuf>,
}

/// Runs the story.
///
/// # Errors
/// The first failed step; in CI also missing requirements of this machine.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Some(api) = Api::find(Kubernetes::Real)? else { return Ok(()) };
    let assets = api.assets().context("there is no folder of programs")?;
    if let (true, Some(helm), Some(cerulean)) = (arguments.inside, &arguments.helm, &arguments.cerulean) {
        let tools = Tools { assets, helm, cerulean };
        return runtime()?.block_on(inside(&tools, &arguments.images, arguments.stay));
    }
    if !machines::is_possible(assets)? {
        return Ok(());
    }
    let Some(helm) = Helm::find()? else { return Ok(()) };
    let images = arguments.images.canonicalize().with_context(|| {
        format!(
            "--images={}: there is no such folder; cargo xtask images makes it",
            arguments.images.display()
        )
    })?;
    let cerulean = given_or_built(arguments.cerulean.as_deref(), "cerulean")?;
    let cerulean = cerulean.canonicalize().with_context(|| cerulean.display().to_string())?;
    let mut options: Vec<String> = ["e2e", "install", "--inside", "--images"].map(str::to_owned).to_vec();
    for (flag, path) in [("", &images), ("--helm", &helm), ("--cerulean", &cerulean)] {
        options.extend(
            [flag.to_owned(), path.display().to_string()].into_iter().filter(|word| !word.is_empty()),
        );
    }
    options.extend(arguments.stay.then(|| "--stay".to_owned()));
    in_folder("cerulean-e2e-install-", arguments.keep, |directory| {
        let ended = Enclosure::run(&std::env::current_exe()?, &options, directory)?;
        ensure!(ended.success(), "the story ended with {ended}");
        Ok(())
    })
}

/// The part that runs in separate namespaces.
async fn inside(tools: &Tools<'_>, images: &Path, stay: bool) -> anyhow::Result<()> {
    let begun = Instant::now();
    let enclosure = Enclosure::enter(machines::GATEWAY, &[machines::METADATA, place::KUBERNETES_SERVICE])?;
    let mut place = Place::start(&enclosure, tools, images).await?;
    print::line(format_args!("  ok  a cluster of three nodes after {:.1} s", begun.elapsed().as_secs_f64()));
    if stay {
        place.invite();
        tokio::signal::ctrl_c().await?;
        return Ok(());
    }
    if let Err(problem) = story::play(&mut place).await {
        bail!("{problem:#}\n{}", place.last_words());
    }
    print::line(format_args!("all steps passed in {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(())
}
