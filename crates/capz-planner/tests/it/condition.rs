//! Conditions as a projection of the states of goals.

use std::collections::BTreeMap;

use capz_planner::condition::{project, set, summary};
use capz_planner::plan::{Facts, plan};
use capz_planner::service::CLUSTER;
use capz_planner::{Action, ObservedResources};
use serde_json::json;

use super::azure::Azure;
use super::cluster::Cluster;

fn said(conditions: &[capz_api::Condition], name: &str) -> Option<(String, String, String)> {
    let condition = conditions.iter().find(|it| it.condition.as_deref() == Some(name))?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some((text(&condition.status), text(&condition.reason), text(&condition.message)))
}

fn triple(status: &str, reason: &str, message: &str) -> Option<(String, String, String)> {
    Some((status.into(), reason.into(), message.into()))
}

/// CAPZ-074: a running operation is Creating, a service that has not begun has no condition, one without goals is True.
#[test]
fn conditions_tell_where_goals_stand() {
    let cluster = Cluster::new(json!({}));
    let azure = Azure::default();
    let goals = cluster.goals();
    let observed = azure.observed(&goals);
    let running = BTreeMap::from([(cluster.scope().group(), Action::Create)]);
    let none = BTreeMap::new();
    let facts =
        Facts { claimant: "my-cluster".into(), observed: &observed, running: &running, refused: &none };
    let conditions = project(&CLUSTER, &plan(goals.clone(), facts));
    assert_eq!(
        said(&conditions, "ResourceGroupReady"),
        triple("False", "Creating", "group creating or updating")
    );
    assert_eq!(said(&conditions, "VNetReady"), None);
    assert_eq!(said(&conditions, "BastionHostReady"), triple("True", "", ""));
    assert_eq!(said(&conditions, "VnetPeeringReady"), None);

    let refused = BTreeMap::from([(cluster.scope().group(), "LocationNotAvailable: no".to_owned())]);
    let facts = Facts { running: &none_running(), refused: &refused, ..facts };
    let conditions = project(&CLUSTER, &plan(goals.clone(), facts));
    assert_eq!(
        said(&conditions, "ResourceGroupReady"),
        triple("False", "Failed", "group failed to create or update. err: LocationNotAvailable: no")
    );

    let mut azure = Azure::default();
    let reached = azure.settle("my-cluster", &goals);
    let conditions = project(&CLUSTER, &reached);
    assert!(conditions.iter().all(|it| it.status.as_deref() == Some("True")), "{conditions:?}");
}

fn none_running() -> BTreeMap<azure_types::ResourceId, Action> {
    BTreeMap::new()
}

/// Unknown is not absent: no write is planned without an observation.
#[test]
fn nothing_is_planned_for_what_nobody_has_seen() {
    let cluster = Cluster::new(json!({}));
    let (observed, running, refused) = (ObservedResources::default(), BTreeMap::new(), BTreeMap::new());
    let facts =
        Facts { claimant: "my-cluster".into(), observed: &observed, running: &running, refused: &refused };
    assert_eq!(plan(cluster.goals(), facts).steps().count(), 0);
}

/// The definitions permit messages of 10,240 characters: a longer one would make every write of the status fail.
#[test]
fn messages_are_cut() {
    use capz_planner::condition::{Severity, fails, set_all, untold};
    for (length, expected) in [(10_240, 10_240), (10_241, 10_240), (30_000, 10_240)] {
        let words = "ü".repeat(length);
        let mut conditions = Vec::new();
        set_all(
            &mut conditions,
            [fails("VMRunning", "Failed", Severity::Error, format!("err: {words}"))],
            "t1",
        );
        assert_eq!(conditions.len(), 2, "and the one that sums up");
        for condition in &conditions {
            let message = condition.message.as_deref().unwrap();
            assert_eq!(message.chars().count(), expected.min(length + 5));
            assert!(message.starts_with("err: ü") && message.ends_with('…'));
        }
        assert_eq!(untold(Some(&conditions), "VMRunning", "Failed", &words), None, "it is reported already");
        let before = conditions.clone();
        set_all(
            &mut conditions,
            [fails("VMRunning", "Failed", Severity::Error, format!("err: {words}"))],
            "t2",
        );
        assert_eq!(conditions, before, "nothing new is said");
    }
}

#[test]
fn ready_sums_up_and_times_change_with_what_is_said() {
    use capz_planner::condition::{Severity, fails, holds};
    let mut conditions = Vec::new();
    set(&mut conditions, holds("VNetReady"), "t1");
    set(&mut conditions, fails("SubnetsReady", "Creating", Severity::Info, "a"), "t1");
    set(&mut conditions, fails("LoadBalancersReady", "Failed", Severity::Error, "b"), "t1");
    let ready = summary(&conditions).unwrap();
    assert_eq!((ready.reason.as_deref(), ready.message.as_deref()), (Some("Failed"), Some("b")));
    set(&mut conditions, ready, "t1");
    set(&mut conditions, holds("VNetReady"), "t2");
    set(&mut conditions, holds("SubnetsReady"), "t2");
    let times: Vec<_> = conditions
        .iter()
        .map(|it| (it.condition.clone().unwrap(), it.last_transition_time.clone().unwrap()))
        .collect();
    assert_eq!(
        times,
        [("Ready", "t1"), ("LoadBalancersReady", "t1"), ("SubnetsReady", "t2"), ("VNetReady", "t1")]
            .map(|(name, time)| (name.to_owned(), time.to_owned()))
    );
}
