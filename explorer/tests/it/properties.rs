//! A fixed number of trials of each property over worlds, and before them former failures; `cargo xtask explore
//! neighbours`, `edits` and `refusals` run as many as time allows.

use explorer::edits::Edits;
use explorer::neighbours::Neighbours;
use explorer::on_all_cores;
use explorer::property::{Trial, explore, past_failures};
use explorer::refusals::Refusals;

/// The number of trials of a property in every run of the tests.
const TRIALS: u64 = 4;

/// The number of additional trials in `.ci/run`, optimised.
const MORE_TRIALS: u64 = 12;

fn holds<T: Trial>(seed: u64) {
    explore::<T>(seed).unwrap_or_else(|failure| panic!("{failure}"));
}

/// With `CERULEAN_SEED=n` the first seed is another.
pub(super) fn holds_for_some<T: Trial>() {
    holds_for::<T>(TRIALS);
}

pub(super) fn holds_for_hundreds<T: Trial>() {
    holds_for_more::<T>(TRIALS, MORE_TRIALS);
}

/// A number of trials in every run of the tests.
pub(super) fn holds_for<T: Trial>(trials: u64) {
    let first = testkit::seed::current();
    on_all_cores(first..first + trials * testkit::seed::count(), holds::<T>);
}

/// Further trials, after a number of others.
pub(super) fn holds_for_more<T: Trial>(trials: u64, more: u64) {
    let first = testkit::seed::current() + trials;
    on_all_cores(first..first + more, holds::<T>);
}

pub(super) fn holds_for_past_failures<T: Trial + Sync>() {
    let all = past_failures::<T>().unwrap();
    on_all_cores(0..all.len() as u64, |one| {
        all[one as usize].explore().unwrap_or_else(|problem| panic!("{problem}"));
    });
}

#[test]
fn no_cluster_harms_another() {
    holds_for_some::<Neighbours>();
}

#[test]
#[ignore = "hundreds of trials take minutes without optimisation: .ci/run runs them"]
fn no_cluster_harms_another_in_hundreds_of_trials() {
    holds_for_hundreds::<Neighbours>();
}

/// `tests/corpus/neighbours`, including known defects: the mark of a fixed one has to be removed.
#[test]
fn neighbours_that_failed_once_do_no_harm_or_are_known() {
    holds_for_past_failures::<Neighbours>();
}

#[test]
fn what_a_third_party_edits_is_repaired_or_told() {
    holds_for_some::<Edits>();
}

#[test]
#[ignore = "hundreds of trials take minutes without optimisation: .ci/run runs them"]
fn what_a_third_party_edits_is_repaired_or_told_in_hundreds_of_trials() {
    holds_for_hundreds::<Edits>();
}

/// `tests/corpus/edits`.
#[test]
fn edits_that_were_not_repaired_once_are_or_are_known() {
    holds_for_past_failures::<Edits>();
}

#[test]
fn good_services_do_not_wait_for_bad_ones() {
    holds_for_some::<Refusals>();
}

#[test]
#[ignore = "hundreds of trials take minutes without optimisation: .ci/run runs them"]
fn good_services_do_not_wait_for_bad_ones_in_hundreds_of_trials() {
    holds_for_hundreds::<Refusals>();
}

/// `tests/corpus/refusals`.
#[test]
fn good_services_that_waited_once_do_not_or_are_known() {
    holds_for_past_failures::<Refusals>();
}
