//! A fixed number of generated histories, and before them former failures; `cargo xtask explore` runs as many as time
//! allows.

use explorer::history::History;

use crate::properties::{holds_for, holds_for_more, holds_for_past_failures};

/// The number of histories in every run of the tests.
const HISTORIES: u64 = 8;

/// The number of additional histories in `.ci/run`, optimised.
const MORE_HISTORIES: u64 = 300;

/// With `CERULEAN_SEED=n` the first seed is another.
#[test]
fn whatever_happens_it_ends_well() {
    holds_for::<History>(HISTORIES);
}

#[test]
#[ignore = "hundreds of histories take a quarter of an hour without optimisation: .ci/run runs them"]
fn hundreds_of_histories_end_well() {
    holds_for_more::<History>(HISTORIES, MORE_HISTORIES);
}

/// `tests/corpus/histories`, including known bugs: the mark of a fixed one has to be removed (LB-407, LB-454 and LB-464
/// among others).
#[test]
fn what_ended_badly_once_ends_well_or_is_known() {
    holds_for_past_failures::<History>();
}
