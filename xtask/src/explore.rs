//! Generated histories by the thousand: Services, nodes, faults and foreign edits, each decided by a seed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::bail;
use explorer::history::{Failure, explore, kept};
use parking_lot::Mutex;

use crate::print;

/// How to explore.
#[derive(Debug, clap::Args)]
pub struct Arguments {
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

/// Explores, one history on each core at a time: those first that ended badly once.
///
/// # Errors
/// Histories that do not end well: each with the fewest acts and features that show it, and its seed.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    for one in kept().map_err(anyhow::Error::msg)? {
        one.explore().map_err(anyhow::Error::msg)?;
    }
    #[allow(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "an exploration ends after so much real time"
    )]
    let begun = std::time::Instant::now();
    let next = AtomicU64::new(arguments.seed);
    let ended = AtomicBool::new(false);
    let failures: Mutex<Vec<Box<Failure>>> = Mutex::default();
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
                    if let Err(failure) = explore(seed) {
                        print::line(format_args!("{failure}\n"));
                        let mut failures = failures.lock();
                        failures.push(failure);
                        ended.store(failures.len() >= arguments.failures, Ordering::Relaxed);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (done, failures) = (done.load(Ordering::Relaxed), failures.into_inner().len());
    if failures > 0 {
        bail!("{failures} of {done} histories from seed {} on do not end well", arguments.seed);
    }
    print::line(format_args!("{done} histories from seed {} on: all of them end well", arguments.seed));
    Ok(())
}
