//! A fixed number of generated lives of machines, and before them former failures; `cargo xtask explore machines` runs
//! as many as time allows.

use explorer::machines::Life;

use crate::properties::{holds_for, holds_for_more, holds_for_past_failures};

/// The number of lives in every run of the tests.
const LIVES: u64 = 20;

/// The number of additional lives in `.ci/run`, optimised.
const MORE_LIVES: u64 = 500;

/// Nodes are deleted with their machines, and no others (NODE-020, NODE-062, NODE-085, NODE-086). With
/// `CERULEAN_SEED=n` the first seed is another.
#[test]
fn no_node_goes_while_its_machine_lives() {
    holds_for::<Life>(LIVES);
}

#[test]
#[ignore = "hundreds of lives take minutes without optimisation: .ci/run runs them"]
fn no_node_goes_while_its_machine_lives_in_hundreds_of_lives() {
    holds_for_more::<Life>(LIVES, MORE_LIVES);
}

#[test]
fn what_ended_badly_once_ends_well() {
    holds_for_past_failures::<Life>();
}
