//! Generated histories by the thousand, each determined by a seed: of Services, of machines and their nodes, or trials
//! of a property over worlds.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use anyhow::bail;
use explorer::clusters::{Beside, Drift, Neighbourhood};
use explorer::edits::Edits;
use explorer::history::History;
use explorer::machines::Life;
use explorer::neighbours::Neighbours;
use explorer::property::{self, Trial};
use explorer::refusals::Refusals;

use crate::print;

/// How to explore.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Subject of the histories.
    #[arg(value_enum, default_value_t = Subject::Services)]
    of: Subject,
    /// Duration in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of the first history; each takes the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of histories, instead of a duration.
    #[arg(long)]
    rounds: Option<u64>,
    /// Number of failures after which it stops.
    #[arg(long, default_value_t = 1)]
    failures: usize,
}

/// The subject of histories.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Subject {
    /// Services, nodes, faults and foreign edits.
    Services,
    /// Machines that stop, disappear and come back, and their nodes.
    Machines,
    /// Two or three clusters in one Azure, and a third party.
    Neighbours,
    /// A third party edits or removes our resources.
    Edits,
    /// Good Services beside those that Azure refuses.
    Refusals,
    /// Two or three clusters of Cluster API in one Azure, and a third party.
    ClusterNeighbours,
    /// A third party edits or removes the resources of a cluster of Cluster API.
    ClusterEdits,
    /// Good clusters and machines of Cluster API beside those that Azure refuses.
    ClusterRefusals,
}

impl Subject {
    fn property(self) -> Property {
        match self {
            Self::Services => Property::of::<History>(),
            Self::Machines => Property::of::<Life>(),
            Self::Neighbours => Property::of::<Neighbours>(),
            Self::Edits => Property::of::<Edits>(),
            Self::Refusals => Property::of::<Refusals>(),
            Self::ClusterNeighbours => Property::of::<Neighbourhood>(),
            Self::ClusterEdits => Property::of::<Drift>(),
            Self::ClusterRefusals => Property::of::<Beside>(),
        }
    }
}

/// What is done with a property, whatever the type of its trials.
struct Property {
    /// Runs the trials that failed before.
    repeat_past_failures: fn() -> Result<(), String>,
    /// Runs the trial of a seed; returns its problems, shrunk.
    explore: fn(u64) -> Result<(), String>,
}

impl Property {
    fn of<T: Trial>() -> Self {
        Self {
            repeat_past_failures: || property::past_failures::<T>()?.iter().try_for_each(|one| one.explore()),
            explore: |seed| property::explore::<T>(seed).map_err(|failure| failure.to_string()),
        }
    }
}

/// Explores, with one history per core at a time, former failures first.
///
/// # Errors
/// Histories with problems: each with the fewest acts and features that show it, and its seed.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let property = arguments.of.property();
    (property.repeat_past_failures)().map_err(anyhow::Error::msg)?;
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
                    if let Err(failure) = (property.explore)(seed) {
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
