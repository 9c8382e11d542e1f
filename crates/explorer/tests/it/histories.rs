//! A fixed share of the generated histories; `cargo xtask explore` runs as many as there is time for.

use std::sync::atomic::{AtomicU64, Ordering};

use explorer::history::{KNOWN, explore};
use explorer::workers;

/// How many histories every run of the tests goes through.
const HISTORIES: u64 = 8;

/// `CERULEAN_SEED=n` begins at another seed.
#[test]
fn whatever_happens_it_ends_well() {
    let first = testkit::seed::current();
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + HISTORIES * testkit::seed::count() {
                        return;
                    }
                    explore(seed).unwrap_or_else(|failure| panic!("{failure}"));
                }
            });
        }
    });
}

/// A mark that has had its day has to go.
#[test]
fn histories_that_are_known_to_end_badly_still_do() {
    for known in KNOWN {
        let complaints = (known.history)().complaints();
        assert!(!complaints.is_empty(), "this ends well: take `{}` out of KNOWN", known.bug);
    }
}
