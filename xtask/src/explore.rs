//! Generated histories by the thousand, each determined by a seed: of Services, of machines and their nodes, or trials
//! of a property over worlds.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use anyhow::bail;
use explorer::clusters::{Beside, Drift, Neighbourhood};
use explorer::edits::Edits;
use explorer::neighbours::Neighbours;
use explorer::property::{self, Trial};
use explorer::refusals::Refusals;
use explorer::{history, machines};

use crate::print;

/// How to explore.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The subject of the histories.
    #[arg(value_enum, default_value_t = Subject::Services)]
    of: Subject,
    /// For how long, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The first history's seed; each takes the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many histories, however long they take.
    #[arg(long)]
    rounds: Option<u64>,
    /// Go on after a failure, up to so many.
    #[arg(long, default_value_t = 1)]
    failures: usize,
}

/// The subject of histories.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Subject {
    /// Services, nodes, faults and foreign edits.
    Services,
    /// Machines that stop, go and come again, and their nodes.
    Machines,
    /// Two or three clusters in one Azure, and a third party.
    Neighbours,
    /// Anything of ours is edited or removed by a third party.
    Edits,
    /// Good Services beside those that Azure refuses.
    Refusals,
    /// Two or three clusters of Cluster API in one Azure, and a third party.
    ClusterNeighbours,
    /// Anything of a cluster of Cluster API is edited or removed by a third party.
    ClusterEdits,
    /// Good clusters and machines of Cluster API beside those that Azure refuses.
    ClusterRefusals,
}

impl Subject {
    /// Runs former failures.
    fn try_again(self) -> anyhow::Result<()> {
        match self {
            Self::Services => {
                for one in history::kept().map_err(anyhow::Error::msg)? {
                    one.explore().map_err(anyhow::Error::msg)?;
                }
            }
            Self::Neighbours => try_kept::<Neighbours>()?,
            Self::Edits => try_kept::<Edits>()?,
            Self::Refusals => try_kept::<Refusals>()?,
            Self::ClusterNeighbours => try_kept::<Neighbourhood>()?,
            Self::ClusterEdits => try_kept::<Drift>()?,
            Self::ClusterRefusals => try_kept::<Beside>()?,
            Self::Machines => {
                for (name, life) in machines::kept().map_err(anyhow::Error::msg)? {
                    let complaints = life.complaints();
                    if !complaints.is_empty() {
                        bail!("{name} ends badly again:\n{}", complaints.join("\n"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs the history of a seed; returns its problems, shrunk.
    fn explore(self, seed: u64) -> Result<(), String> {
        match self {
            Self::Services => history::explore(seed).map_err(|failure| failure.to_string()),
            Self::Machines => machines::explore(seed).map_err(|failure| failure.to_string()),
            Self::Neighbours => property::explore::<Neighbours>(seed).map_err(|failure| failure.to_string()),
            Self::Edits => property::explore::<Edits>(seed).map_err(|failure| failure.to_string()),
            Self::Refusals => property::explore::<Refusals>(seed).map_err(|failure| failure.to_string()),
            Self::ClusterNeighbours => {
                property::explore::<Neighbourhood>(seed).map_err(|failure| failure.to_string())
            }
            Self::ClusterEdits => property::explore::<Drift>(seed).map_err(|failure| failure.to_string()),
            Self::ClusterRefusals => property::explore::<Beside>(seed).map_err(|failure| failure.to_string()),
        }
    }
}

/// Runs trials of a property that failed before.
fn try_kept<T: Trial>() -> anyhow::Result<()> {
    for one in property::kept::<T>().map_err(anyhow::Error::msg)? {
        one.explore().map_err(anyhow::Error::msg)?;
    }
    Ok(())
}

/// Explores, with one history per core at a time, former failures first.
///
/// # Errors
/// Histories with problems: each with the fewest acts and features that show it, and its seed.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    arguments.of.try_again()?;
    #[allow(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "an exploration ends after so much real time"
    )]
    let begun = std::time::Instant::now();
    let next = AtomicU64::new(arguments.seed);
    let ended = AtomicBool::new(false);
    let failures = AtomicUsize::new(0);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..explorer::workers() {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let over = match arguments.rounds {
                        Some(rounds) => seed >= arguments.seed.saturating_add(rounds),
                        None => begun.elapsed().as_secs() >= arguments.seconds,
                    };
                    if over {
                        return;
                    }
                    if let Err(failure) = arguments.of.explore(seed) {
                        print::line(format_args!("{failure}\n"));
                        let failed = failures.fetch_add(1, Ordering::Relaxed) + 1;
                        ended.store(failed >= arguments.failures, Ordering::Relaxed);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (done, failures) = (done.load(Ordering::Relaxed), failures.into_inner());
    if failures > 0 {
        bail!("{failures} of {done} histories from seed {} on do not end well", arguments.seed);
    }
    print::line(format_args!("{done} histories from seed {} on: all of them end well", arguments.seed));
    Ok(())
}
