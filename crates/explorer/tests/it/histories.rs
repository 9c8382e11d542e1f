//! A fixed share of the generated histories, and before them those that ended badly once;
//! `cargo xtask explore` runs as many as there is time for.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use explorer::history::{explore, kept};
use explorer::workers;

/// How many histories every run of the tests goes through.
const HISTORIES: u64 = 8;

/// How many more `.ci/run` goes through, optimised.
const MORE_HISTORIES: u64 = 300;

/// `CERULEAN_SEED=n` begins at another seed.
#[test]
fn whatever_happens_it_ends_well() {
    let first = testkit::seed::current();
    all_end_well(first, HISTORIES * testkit::seed::count());
}

#[test]
#[ignore = "hundreds of histories take a quarter of an hour without optimisation: .ci/run runs them"]
fn hundreds_of_histories_end_well() {
    all_end_well(testkit::seed::current() + HISTORIES, MORE_HISTORIES);
}

fn all_end_well(first: u64, histories: u64) {
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + histories {
                        return;
                    }
                    explore(seed).unwrap_or_else(|failure| panic!("{failure}"));
                }
            });
        }
    });
}

/// `tests/corpus/histories`, known bugs among them: a mark that has had its day has to go (LB-454 among others).
#[test]
fn what_ended_badly_once_ends_well_or_is_known() {
    let all = kept().unwrap();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    one.explore().unwrap_or_else(|problem| panic!("{problem}"));
                }
            });
        }
    });
}
