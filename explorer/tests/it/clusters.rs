//! The properties of clusters of Cluster API: a fixed number of their trials, and before them former failures; `cargo
//! xtask explore cluster-neighbours`, `cluster-edits` and `cluster-refusals` run as many as time allows.

use explorer::clusters::{Act, ApiServer, Beside, Drift, Flavor, Member, Neighbourhood, Network};

use crate::properties::{holds_for_hundreds, holds_for_past_failures, holds_for_some};

#[test]
fn no_cluster_of_cluster_api_harms_another() {
    holds_for_some::<Neighbourhood>();
}

#[test]
#[ignore = "hundreds of trials take minutes without optimisation: .ci/run runs them"]
fn no_cluster_of_cluster_api_harms_another_in_hundreds_of_trials() {
    holds_for_hundreds::<Neighbourhood>();
}

/// `tests/corpus/cluster-neighbours`, including known defects: the mark of a fixed one has to be removed.
#[test]
fn clusters_that_failed_once_do_no_harm_or_are_known() {
    holds_for_past_failures::<Neighbourhood>();
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
    holds_for_past_failures::<Drift>();
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
    holds_for_past_failures::<Beside>();
}

/// S1: Azure supports no condition on the creation of a resource group. If the managers of two clusters of one name
/// create it at the same moment, one is served, and the other one is refused before any of its resources is in the
/// group.
#[test]
fn one_of_two_clusters_that_make_one_group_at_the_same_moment_is_served() {
    let member = |management: usize, api_server: ApiServer, network: Network| Member {
        management,
        namespace: format!("team-{}", ["a", "b"][management]),
        name: "prod".to_owned(),
        flavor: Flavor::SelfManaged,
        group: None,
        network,
        api_server,
        common_names: false,
        machines: 0,
        common_machines: false,
        pool: false,
    };
    explorer::on_all_cores(0..18, |seed| {
        let api_server = if seed % 2 == 0 { ApiServer::Public } else { ApiServer::Private };
        let mut acts = vec![Act::Create { cluster: 1 }, Act::Create { cluster: 0 }];
        if seed % 3 == 1 {
            acts.swap(0, 1);
        }
        let trial = Neighbourhood {
            seed,
            latency: [0, 3, 1][(seed % 3) as usize],
            users_group: false,
            clusters: vec![member(0, api_server, Network::Own), member(1, api_server, Network::Peered)],
            acts,
        };
        let complaints = explorer::property::all_complaints(&trial);
        assert!(complaints.is_empty(), "{trial:?}: {complaints:#?}");
    });
}
