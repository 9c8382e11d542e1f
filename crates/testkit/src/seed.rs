//! Seeds from the environment: which worlds a test runs in, and how to see a failure again.
//!
//! * `CERULEAN_SEED` is the seed of the first world, 1 if it is not set.
//! * `CERULEAN_SEEDS` is how many seeds in a row a test runs with, 1 if it is not set.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The variable that names the first seed.
const SEED: &str = "CERULEAN_SEED";

/// The variable that says how many seeds.
const SEEDS: &str = "CERULEAN_SEEDS";

thread_local! {
    /// The seed that [`run`] runs with on this thread.
    static CURRENT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The seed of worlds that are built here: that of the running [`run`], else `CERULEAN_SEED`, else 1.
pub fn current() -> u64 {
    CURRENT.get().unwrap_or_else(|| number(SEED))
}

/// Whether [`run`] runs on this thread.
pub(crate) fn is_running() -> bool {
    CURRENT.get().is_some()
}

/// How many seeds a test should run with (`CERULEAN_SEEDS`), at least one.
pub fn count() -> u64 {
    number(SEEDS).max(1)
}

/// Runs a test once for each seed, on paused time and on a runtime of its own. Worlds that it builds draw
/// everything random from that seed. A failure prints the line that shows it again.
///
/// ```
/// testkit::run(async || {
///     let world = testkit::World::builder().nodes(1).start().await;
///     world.create(testkit::service("shop/web"));
///     world.settle().await;
///     assert_eq!(world.reached(world.address("shop/web"), 80), world.node_names());
/// });
/// ```
pub fn run(test: impl AsyncFn()) {
    let first = number(SEED);
    for seed in first..first.saturating_add(count()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime can be made");
        CURRENT.set(Some(seed));
        let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test())));
        CURRENT.set(None);
        if let Err(panic) = outcome {
            show(&reproduction(seed));
            resume_unwind(panic);
        }
    }
}

/// The command that runs the current test again with this seed.
pub fn reproduction(seed: u64) -> String {
    let variable = |name: &str| std::env::var(name).ok();
    let mut command = format!("{SEED}={seed} cargo test");
    if let Some(package) = variable("CARGO_PKG_NAME") {
        command += &format!(" -p {package}");
    }
    let thread = std::thread::current();
    if let Some(test) = thread.name().filter(|name| *name != "main") {
        command += &format!(" -- --exact {test}");
    }
    command
}

/// Prints a line where test output goes.
#[allow(clippy::print_stderr, reason = "a failing test says how to see it again")]
pub(crate) fn show(line: &str) {
    eprintln!("to see it again: {line}");
}

fn number(variable: &str) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no whole number")),
        Err(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_sees_the_seed_it_runs_with_and_the_line_names_seed_and_test() {
        let seen = Cell::new(0);
        run(async || seen.set(current()));
        assert_eq!(seen.get(), number(SEED) + count() - 1);
        let line = reproduction(17);
        assert!(line.starts_with("CERULEAN_SEED=17 cargo test -p testkit"), "{line}");
        assert!(
            line.ends_with("seed::tests::a_test_sees_the_seed_it_runs_with_and_the_line_names_seed_and_test")
        );
    }
}
