//! The properties of clusters of Cluster API: a fixed share of their trials, and before them those that failed once;
//! `cargo xtask explore cluster-neighbours`, `cluster-edits` and `cluster-refusals` run as many as there is time for.

use explorer::clusters::{Beside, Drift, Neighbourhood};

use crate::properties::{holds_for_hundreds, holds_for_kept, holds_for_some};

#[test]
fn no_cluster_of_cluster_api_harms_another() {
    holds_for_some::<Neighbourhood>();
}

#[test]
#[ignore = "hundreds of trials take minutes without optimisation: .ci/run runs them"]
fn no_cluster_of_cluster_api_harms_another_in_hundreds_of_trials() {
    holds_for_hundreds::<Neighbourhood>();
}

/// `tests/corpus/cluster-neighbours`, known defects among them: the mark of one that is mended has to go.
#[test]
fn clusters_that_failed_once_do_no_harm_or_are_known() {
    holds_for_kept::<Neighbourhood>();
}

#[test]
fn what_a_third_party_edits_of_a_cluster_is_repaired_or_reported() {
    holds_for_some::<Drift>();
}

#[test]
#[ignore = "hundreds of trials take minutes without optimisation: .ci/run runs them"]
fn what_a_third_party_edits_of_a_cluster_is_repaired_or_reported_in_hundreds_of_trials() {
    holds_for_hundreds::<Drift>();
}

/// `tests/corpus/cluster-edits`.
#[test]
fn edits_of_clusters_that_failed_once_are_repaired_or_known() {
    holds_for_kept::<Drift>();
}

#[test]
fn refused_clusters_and_machines_hold_up_no_good_ones() {
    holds_for_some::<Beside>();
}

#[test]
#[ignore = "hundreds of trials take minutes without optimisation: .ci/run runs them"]
fn refused_clusters_and_machines_hold_up_no_good_ones_in_hundreds_of_trials() {
    holds_for_hundreds::<Beside>();
}

/// `tests/corpus/cluster-refusals`.
#[test]
fn refusals_that_held_up_clusters_once_hold_up_none() {
    holds_for_kept::<Beside>();
}
