//! A fixed number of generated lives of machines, and before them former failures; `cargo xtask explore machines` runs
//! as many as time allows.

use explorer::machines::{explore, kept};
use explorer::on_all_cores;

/// The number of lives in every run of the tests.
const LIVES: u64 = 20;

/// The number of additional lives in `.ci/run`, optimised.
const MORE_LIVES: u64 = 500;

/// Nodes are deleted with their machines, and no others (NODE-020, NODE-062, NODE-085, NODE-086). With
/// `CERULEAN_SEED=n` the first seed is another.
#[test]
fn no_node_goes_while_its_machine_lives() {
    let first = testkit::seed::current();
    on_all_cores(first..first + LIVES * testkit::seed::count(), ends_well);
}

#[test]
#[ignore = "hundreds of lives take minutes without optimisation: .ci/run runs them"]
fn no_node_goes_while_its_machine_lives_in_hundreds_of_lives() {
    let first = testkit::seed::current() + LIVES;
    on_all_cores(first..first + MORE_LIVES, ends_well);
}

fn ends_well(seed: u64) {
    explore(seed).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn what_ended_badly_once_ends_well() {
    for (name, life) in kept().unwrap() {
        let complaints = life.complaints();
        assert!(complaints.is_empty(), "{name} ends badly again: {complaints:#?}");
    }
}
