//! A fixed number of generated histories, and before them former failures; `cargo xtask explore` runs as many as time
//! allows.

use explorer::history::{explore, kept};
use explorer::on_all_cores;

/// The number of histories in every run of the tests.
const HISTORIES: u64 = 8;

/// The number of additional histories in `.ci/run`, optimised.
const MORE_HISTORIES: u64 = 300;

/// With `CERULEAN_SEED=n` the first seed is another.
#[test]
fn whatever_happens_it_ends_well() {
    let first = testkit::seed::current();
    on_all_cores(first..first + HISTORIES * testkit::seed::count(), ends_well);
}

#[test]
#[ignore = "hundreds of histories take a quarter of an hour without optimisation: .ci/run runs them"]
fn hundreds_of_histories_end_well() {
    let first = testkit::seed::current() + HISTORIES;
    on_all_cores(first..first + MORE_HISTORIES, ends_well);
}

/// `tests/corpus/histories`, including known bugs: the mark of a fixed one has to be removed (LB-407, LB-454 and LB-464
/// among others).
#[test]
fn what_ended_badly_once_ends_well_or_is_known() {
    let all = kept().unwrap();
    on_all_cores(0..all.len() as u64, |one| {
        all[one as usize].explore().unwrap_or_else(|problem| panic!("{problem}"));
    });
}

fn ends_well(seed: u64) {
    explore(seed).unwrap_or_else(|failure| panic!("{failure}"));
}
