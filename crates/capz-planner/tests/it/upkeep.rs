//! How long documents are enforced.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_planner::plan::{Facts, plan};
use capz_planner::{Action, Goal, ObservedResources, State, Upkeep, Withdrawn, service};
use serde_json::{Value, json};

fn state_of(goal: Goal, held: Value) -> State {
    let mut observed = ObservedResources::default();
    observed.take(&goal.id, Some(held));
    let (running, refused) = (BTreeMap::new(), BTreeMap::new());
    let facts = Facts { claimant: "c".into(), observed: &observed, running: &running, refused: &refused };
    plan(vec![goal], facts).items.remove(0).1
}

fn machine(upkeep: Upkeep) -> Goal {
    let id = ResourceId::group("s", "g").resource("Microsoft.Compute", "virtualMachines", "vm");
    let owner = capz_planner::tags::owner_key("c");
    let document = json!({ "tags": { owner: "owned", "team": "a" }, "properties": { "size": "new" } });
    Goal::new(id, &service::VIRTUAL_MACHINE, document).held_to(upkeep)
}

fn held(state: &str, team: &str) -> Value {
    let owner = capz_planner::tags::owner_key("c");
    json!({
        "etag": "7",
        "tags": { owner: "owned", "team": team, "theirs": "x", "old": "y" },
        "properties": { "size": "old", "provisioningState": state },
    })
}

/// Some members are enforced by themselves: other members from the creation stay, and are not sent.
#[test]
fn members_are_kept_up_alone() {
    let goal = || {
        machine(Upkeep::Members(&["tags"])).without([Withdrawn::Tag { key: "old".into(), value: "y".into() }])
    };
    let State::Now(step) = state_of(goal(), held("Succeeded", "b")) else { panic!("nothing to do") };
    assert!(step.partial);
    assert_eq!((step.action, step.if_match.as_deref()), (Action::Update, Some("7")));
    let owner = capz_planner::tags::owner_key("c");
    assert_eq!(step.document, json!({ "tags": { owner: "owned", "team": "a", "theirs": "x" } }));
    let words: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["tags.team: b becomes a", "tags.old is no longer declared: y"]);
    // A tag that another writer has changed is left alone.
    let changed = || {
        machine(Upkeep::Members(&["tags"])).without([Withdrawn::Tag { key: "old".into(), value: "x".into() }])
    };
    assert_eq!(state_of(changed(), held("Succeeded", "a")), State::Reached);
    // The values of tags are case-sensitive.
    assert!(matches!(state_of(goal(), held("Succeeded", "A")), State::Now(_)));
}

#[test]
fn what_becomes_of_a_resource_is_told_by_its_upkeep() {
    let members = || machine(Upkeep::Members(&["tags"]));
    for (goal, state, team, expected) in [
        (members(), "Succeeded", "a", "reached"),
        (members(), "Failed", "a", "reached"),
        (members(), "Updating", "a", "reached"),
        (members(), "Updating", "b", "running"),
        (members(), "Creating", "a", "running"),
        (members(), "Deleting", "a", "running"),
        (machine(Upkeep::SingleTry), "Succeeded", "b", "reached"),
        (machine(Upkeep::SingleTry), "Updating", "a", "running"),
        (machine(Upkeep::SingleTry), "Failed", "a", "refused"),
        (machine(Upkeep::SingleTry), "Canceled", "a", "refused"),
        (machine(Upkeep::Once), "Succeeded", "a", "reached"),
        (machine(Upkeep::Once), "Succeeded", "b", "tags"),
        (machine(Upkeep::Once), "Failed", "a", "now"),
        (machine(Upkeep::Once), "Canceled", "a", "now"),
    ] {
        let name = match state_of(goal.clone(), held(state, team)) {
            State::Reached => "reached",
            State::Running(_) => "running",
            State::Refused(Action::Create, _) => "refused",
            State::Now(step) if !step.partial => "now",
            State::Now(step) if step.document.as_object().unwrap().keys().eq(["tags"]) => "tags",
            other => panic!("{other:?}"),
        };
        assert_eq!(name, expected, "{goal:?} {state} {team}");
    }
}
