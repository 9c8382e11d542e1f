//! `cerulean check`: the obstacles to a change. Nothing is written.

mod takeover;

use std::process::ExitCode;

use clap::Subcommand;

use crate::kubernetes::ClusterArguments;
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::Screen;

/// What is about to change.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The provider of a management cluster: from Cluster API Provider Azure to capz-controller-manager. Ends with 0 if
    /// nothing is in the way, 2 if something is, 1 after an error.
    Takeover(Takeover),
}

/// Which management cluster.
#[derive(Debug, clap::Args)]
pub struct Takeover {
    #[command(flatten)]
    cluster: ClusterArguments,
    /// The only namespace that the manager will reconcile (its --namespace); by default all.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The value of the label cluster.x-k8s.io/watch-filter of the manager's objects (its --watch-filter); by default
    /// all.
    #[arg(long, value_name = "VALUE")]
    watch_filter: Option<String>,
}

/// The exit code if there is an obstacle.
const IN_THE_WAY: u8 = 2;

/// Checks, and prints the findings.
///
/// # Errors
/// The cluster cannot be read.
pub fn run(screen: Screen, command: &Command) -> anyhow::Result<ExitCode> {
    let Command::Takeover(arguments) = command;
    runtime(TWO_THREADS)?.block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let settings = capz::Settings {
            namespace: arguments.namespace.clone(),
            watch_filter: arguments.watch_filter.clone(),
            ..capz::Settings::default()
        };
        let findings = takeover::look(&cluster, &settings).await?;
        for finding in &findings {
            screen.verdict(finding.is_good, &finding.words);
        }
        let is_clear = findings.iter().all(|finding| finding.is_good);
        Ok(if is_clear { ExitCode::SUCCESS } else { ExitCode::from(IN_THE_WAY) })
    })
}
