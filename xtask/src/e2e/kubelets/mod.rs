//! Real kubelets on simulated machines: `cargo xtask e2e kubelets`.
//!
//! All of Kubernetes is real, from etcd to the containers. Azure is simulated, and each node is one of its machines,
//! with the address that Azure has assigned and instance metadata at 169.254.169.254. The release binaries of the
//! controller manager, the node manager and the credential provider for registries run with it, the first two with the
//! shipped rights: a denied request fails the task.
//!
//! ```text
//! this program ─▶ the same in namespaces of its own (real_kubernetes::Enclosure) ─▶ place ─▶ story
//! ```

mod place;
mod story;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use real_kubernetes::Enclosure;
use tokio::time::Instant;

use crate::e2e::managers::{CONTROLLER_ACCOUNT, NODE_ACCOUNT};
use crate::e2e::{machines, rights};
use crate::kubernetes::{Api, Kubernetes};
use crate::print;
use crate::program::{given_or_built, in_folder, runtime, with_logs};
use place::Place;

/// How to run it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder with built programs; by default release builds are made.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Keep the folder with logs and files, and print its path.
    #[arg(long)]
    keep: bool,
    /// Run the story itself, which the task starts in namespaces of its own.
    #[arg(long, hide = true, requires = "programs")]
    inside: bool,
}

/// Runs the story.
///
/// # Errors
/// The first failed step; in CI also missing requirements of this machine.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Some(api) = Api::find(Kubernetes::Real)? else { return Ok(()) };
    let assets = api.assets().context("there is no folder of programs")?;
    if let (true, Some(programs)) = (arguments.inside, &arguments.programs) {
        return runtime()?.block_on(inside(assets, programs));
    }
    if !machines::is_possible(assets)? {
        return Ok(());
    }
    let programs = given_or_built(arguments.programs.as_deref(), "")?;
    let programs = programs.canonicalize().with_context(|| programs.display().to_string())?;
    let options = ["e2e", "kubelets", "--inside", "--programs"].map(str::to_owned);
    let options = [&options[..], &[programs.display().to_string()]].concat();
    in_folder("cerulean-e2e-kubelets-", arguments.keep, |directory| {
        let ended = Enclosure::run(&std::env::current_exe()?, &options, directory)?;
        ensure!(ended.success(), "the story ended with {ended}");
        Ok(())
    })
}

/// The part that runs in separate namespaces.
async fn inside(assets: &Path, programs: &Path) -> anyhow::Result<()> {
    let begun = Instant::now();
    let enclosure = Enclosure::enter(machines::GATEWAY, &[machines::METADATA])?;
    let mut place = Place::start(&enclosure, assets, programs).await?;
    print::line(format_args!("  ok  a cluster of two nodes after {:.1} s", begun.elapsed().as_secs_f64()));
    let played = story::play(&mut place).await;
    let words: Vec<_> = place.programs.iter().collect();
    played.map_err(|problem| with_logs(problem, &words))?;
    let log = place.folder.join(rights::AUDIT_LOG);
    place.stop().await?;
    let audit = rights::audit(&log, &[CONTROLLER_ACCOUNT, NODE_ACCOUNT])?;
    print::line(format_args!("  ok  {} requests to Kubernetes, none denied", audit.requests));
    print::line(format_args!("all steps passed in {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(())
}
