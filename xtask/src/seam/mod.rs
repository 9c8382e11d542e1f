//! Where our manager of clusters meets what ran before it:
//! `cargo xtask seam --operator PATH --provider PATH --sources FOLDER [--manager PATH] [STORY…]`.
//!
//! The established provider's manager and Azure Service Operator, both real, make a cluster in the simulated Azure, with the stand-in for
//! Cluster API. Ours takes its place, and it takes ours. Whatever happens, nothing is deleted in Azure that the user did not delete.

mod stage;
mod story;

use std::path::PathBuf;

use anyhow::Context as _;
use tokio::time::Instant;

use crate::print;
use crate::program::build_release;
use stage::Programs;
use story::Story;

/// What to play, with which programs.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A build of Azure Service Operator's controller.
    #[arg(long, value_name = "PATH")]
    operator: PathBuf,
    /// A build of the established provider's manager.
    #[arg(long, value_name = "PATH")]
    provider: PathBuf,
    /// The folder with the sources of that manager, for its definitions and webhooks.
    #[arg(long, value_name = "FOLDER")]
    sources: PathBuf,
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

/// Plays the stories one after the other.
///
/// # Errors
/// The first step that does not come true.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let manager = match &arguments.manager {
        Some(path) => path.clone(),
        None => {
            print::line("building the release binaries");
            build_release()?.join("capz-controller-manager")
        }
    };
    let programs = Programs {
        operator: arguments.operator.clone(),
        provider: arguments.provider.clone(),
        sources: arguments.sources.clone(),
        manager,
        flavor: arguments.flavor.clone(),
    };
    let stories = if arguments.stories.is_empty() { Story::ALL.to_vec() } else { arguments.stories.clone() };
    let runtime = crate::e2e::runtime()?;
    for story in stories {
        print::line(format_args!("{}", story.title()));
        let directory = tempfile::Builder::new().prefix("cerulean-seam-").tempdir()?;
        let begun = Instant::now();
        let played = runtime.block_on(story.play(&programs, directory.path()));
        if arguments.keep || played.is_err() {
            print::line(format_args!("files and logs: {}", directory.keep().display()));
        }
        played.with_context(|| story.title())?;
        print::line(format_args!("passed in {:.0} s", begun.elapsed().as_secs_f64()));
    }
    Ok(())
}
