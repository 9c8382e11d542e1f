//! Seeds from the environment: the worlds that a test runs in, and how to reproduce a failure.
//!
//! * `CERULEAN_SEED` is the seed of the first world, 1 by default.
//! * `CERULEAN_SEEDS` is the number of consecutive seeds that a test runs with, 1 by default.
//!
//! Seeds that failed before are kept in `tests/seeds.txt` of the test's package, one line `TEST SEED` each. The test
//! runs with them first.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The variable for the first seed.
const SEED: &str = "CERULEAN_SEED";

/// The variable for the number of seeds.
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

/// The number of seeds that a test should run with (`CERULEAN_SEEDS`), at least one.
pub fn count() -> u64 {
    number(SEEDS).max(1)
}

/// The file in which a package keeps the seeds of former failures.
const KEPT: &str = "tests/seeds.txt";

/// Runs a test once for each seed, on paused time and on a runtime of its own: for those that are kept, then for
/// those that the environment names. Worlds that it builds draw everything random from that seed. A failure
/// prints the line that shows it again, and the line that keeps its seed.
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
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    let kept = kept(name, &kept_text());
    for seed in kept.into_iter().chain(first..first.saturating_add(count())) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime can be made");
        CURRENT.set(Some(seed));
        let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test())));
        CURRENT.set(None);
        if let Err(panic) = outcome {
            show(&reproduction(seed));
            note(&format!("to keep it: add the line `{name} {seed}` to {KEPT} of its package"));
            resume_unwind(panic);
        }
    }
}

/// The seeds that the running test's package keeps; empty if there are none.
fn kept_text() -> String {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    std::fs::read_to_string(std::path::Path::new(&package).join(KEPT)).unwrap_or_default()
}

/// The seeds that are kept for a test.
fn kept(test: &str, text: &str) -> Vec<u64> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let seeds = lines.filter_map(|line| {
        let (name, seed) = line.split_once(' ').unwrap_or((line, ""));
        let seed = seed.trim().parse().unwrap_or_else(|_| panic!("{KEPT}: `{line}` is not `TEST SEED`"));
        (name == test).then_some(seed)
    });
    seeds.collect()
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

/// Prints how to reproduce a failure.
pub(crate) fn show(command: &str) {
    note(&format!("to see it again: {command}"));
}

/// Prints a line to the test output.
#[allow(clippy::print_stderr, reason = "a failing test says how to see it again")]
fn note(line: &str) {
    eprintln!("{line}");
}

fn number(variable: &str) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a whole number")),
        Err(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_kept_by_the_names_of_their_tests() {
        let text = "# why\n\na::b 7\na::c 8\n a::b  9 \n";
        assert_eq!(kept("a::b", text), vec![7_u64, 9]);
        assert!(kept("a::d", text).is_empty());
        assert!(std::panic::catch_unwind(|| kept("a::b", "a::b seven")).is_err());
    }

    /// `tests/seeds.txt` of this package keeps 41 for this test.
    #[test]
    fn kept_seeds_come_before_those_of_the_environment() {
        let seen = std::cell::RefCell::new(Vec::new());
        run(async || seen.borrow_mut().push(current()));
        let first = number(SEED);
        let expected: Vec<u64> = std::iter::once(41).chain(first..first + count()).collect();
        assert_eq!(*seen.borrow(), expected);
    }

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
