//! A fixed share of the generated histories, and before them those that ended badly once;
//! `cargo xtask explore` runs as many as there is time for.

use explorer::history::{explore, kept};
use explorer::on_all_cores;

/// How many histories every run of the tests goes through.
const HISTORIES: u64 = 8;

/// How many more `.ci/run` goes through, optimised.
const MORE_HISTORIES: u64 = 300;

/// `CERULEAN_SEED=n` begins at another seed.
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

/// `tests/corpus/histories`, known bugs among them: a mark that has had its day has to go (LB-407, LB-454 and LB-464
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
