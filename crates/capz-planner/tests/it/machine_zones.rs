//! Machines that are tried in one zone after the other, because Azure lacks capacity.

use capz_planner::ObservedResources;
use capz_planner::machine::{TRIED_ZONES, next_zone, observed_machine, unproven_end};
use capz_planner::sku::{Skus, VIRTUAL_MACHINES};
use capz_planner::tags::{OWNED, owner_key};
use serde_json::{Value, json};

use super::machine::{Machine, SIZE};

const FULL: &str = "AllocationFailed: no capacity";

/// A worker of a region with zones 1 to 3, tried in these.
fn worker(tried: &str) -> Machine {
    let mut machine = Machine::worker(json!({}));
    machine.cluster.zones = ["1", "2", "3"].map(str::to_owned).to_vec();
    if !tried.is_empty() {
        machine.annotations.insert(TRIED_ZONES.to_owned(), tried.to_owned());
    }
    machine
}

fn next(machine: &Machine, words: &str) -> Option<String> {
    let size = json!({
        "name": SIZE, "resourceType": VIRTUAL_MACHINES, "capabilities": [],
        "locationInfo": [{ "location": "eastus", "zones": ["1", "2", "4"] }],
    });
    let skus = Skus::read("eastus", &[size]);
    next_zone(&machine.scope(), skus.get(SIZE, VIRTUAL_MACHINES).unwrap(), words)
}

#[test]
fn each_zone_of_the_size_is_tried_once() {
    for (tried, expected) in [("", Some("1")), ("1", Some("1,2")), ("2", Some("2,1")), ("1,2", None)] {
        assert_eq!(next(&worker(tried), FULL).as_deref(), expected, "{tried}");
    }
    for (words, expected) in [
        ("ZonalAllocationFailed", true),
        ("OverconstrainedAllocationRequest", true),
        ("OverconstrainedZonalAllocationRequest", true),
        ("SkuNotAvailable", true),
        ("QuotaExceeded", false),
        ("", false),
    ] {
        assert_eq!(next(&worker(""), words).is_some(), expected, "{words}");
    }
}

/// An owner who has chosen a zone, by whatever means, keeps it.
#[test]
fn a_chosen_zone_is_not_left() {
    let edits: [fn(&mut Machine); 6] = [
        |machine| machine.failure_domain = Some("1".into()),
        |machine| machine.spec.failure_domain = Some("1".into()),
        |machine| machine.spec.provider_id = Some("azure:///vm".into()),
        |machine| machine.spec.capacity_reservation_group_id = Some("/group".into()),
        |machine| machine.spec.virtual_machine_scale_set_id = Some("/set".into()),
        |machine| {
            let edge = json!({ "name": "edge", "type": "EdgeZone" });
            machine.cluster.spec.extended_location = serde_json::from_value(edge).unwrap();
        },
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut machine = worker("");
        edit(&mut machine);
        assert_eq!(next(&machine, FULL), None, "edit {number}");
    }
    let mut empty = worker("");
    empty.failure_domain = Some(String::new());
    empty.spec.provider_id = Some(String::new());
    assert_eq!(next(&empty, FULL).as_deref(), Some("1"), "empty texts choose nothing");
}

/// The resources that are deleted before the machine is created in its next zone.
fn remains(machine: &Machine, vm: Option<Value>, disk: Option<Value>) -> Vec<String> {
    let (scope, mut observed) = (machine.scope(), ObservedResources::default());
    observed.take(&scope.vm(), vm);
    let disk_id = machine.cluster.scope().group().resource("Microsoft.Compute", "disks", "my-machine_OSDisk");
    observed.take(&disk_id, disk);
    // A machine that failed to create, or is foreign, has no goals.
    let goals = machine.try_goals(&observed).unwrap_or_default();
    goals.iter().filter(|goal| !goal.wanted).map(|goal| goal.id.name().to_owned()).collect()
}

#[test]
fn what_a_failed_attempt_left_is_deleted_before_the_next() {
    let vm = worker("").scope().vm().to_string();
    let held = |zone: &str, state: &str| {
        let tags = json!({ owner_key("my-cluster"): OWNED });
        Some(json!({ "zones": [zone], "tags": tags, "properties": { "provisioningState": state } }))
    };
    let by = |by: &str| Some(json!({ "managedBy": by }));
    let both = &["my-machine", "my-machine_OSDisk"][..];
    for (tried, machine, disk, expected) in [
        ("1,2", held("1", "Failed"), by(&vm.to_uppercase()), both),
        ("1,2", held("1", "Failed"), None, &both[..1]),
        ("1,2", held("1", "Failed"), by("/another"), &both[..1]),
        ("1,2", held("1", "Failed"), Some(json!({})), &both[..1]),
        // The machine of this attempt, and one that runs.
        ("1,2", held("2", "Failed"), by(&vm), &[]),
        ("1,2", held("1", "Succeeded"), by(&vm), &[]),
        ("1,2", held("2", "Succeeded"), by(&vm), &[]),
        // The machine is gone, and its disk is not.
        ("1,2", None, by(&vm), both),
        ("1,2", None, by("/another"), &[]),
        ("1,2", None, None, &[]),
        ("", held("1", "Failed"), by(&vm), &[]),
    ] {
        assert_eq!(
            remains(&worker(tried), machine.clone(), disk.clone()),
            expected,
            "{tried} {machine:?} {disk:?}"
        );
    }
    let mut made = worker("1,2");
    made.spec.provider_id = Some(format!("azure://{vm}"));
    assert_eq!(remains(&made, held("1", "Failed"), by(&vm)), [""; 0], "it was made");
}

/// A provider ID is no proof: any user can write it.
#[test]
fn a_machine_that_is_not_proven_is_not_deleted() {
    let mut machine = Machine::worker(json!({}));
    let vm = machine.scope().vm();
    let owned = json!({ "tags": { owner_key("my-cluster"): OWNED } });
    let others = json!({ "tags": { owner_key("other"): OWNED } });
    for (id, held, expected) in [
        (Some("azure:///vm"), Some(json!({})), true),
        (Some("azure:///vm"), Some(owned), false),
        (Some("azure:///vm"), Some(others), true),
        (Some("azure:///vm"), None, false),
        (Some(""), Some(json!({})), false),
        (None, Some(json!({})), false),
    ] {
        machine.spec.provider_id = id.map(str::to_owned);
        let mut observed = ObservedResources::default();
        observed.take(&vm, held.clone());
        let words = unproven_end(&machine.scope(), &observed);
        assert_eq!(words.is_some(), expected, "{id:?} {held:?}: {words:?}");
        if let Some(words) = words {
            let lacks = format!("it lacks the tag {}={OWNED}", owner_key("my-cluster"));
            assert!(
                words.starts_with("virtual machine my-machine is named") && words.contains(&lacks),
                "{words}"
            );
        }
    }
    machine.spec.provider_id = Some("azure:///vm".into());
    assert_eq!(unproven_end(&machine.scope(), &ObservedResources::default()), None, "nothing is known");
}

/// A machine is observed once it is created, or recorded.
#[test]
fn a_machine_is_observed_from_its_creation() {
    for (id, state, expected) in [
        (None, "Creating", false),
        (Some(""), "Creating", false),
        (None, "Failed", false),
        (None, "Succeeded", true),
        (Some("azure:///vm"), "Creating", true),
    ] {
        let mut machine = Machine::worker(json!({}));
        machine.spec.provider_id = id.map(str::to_owned);
        let tags = json!({ owner_key("my-cluster"): OWNED });
        let mut observed = ObservedResources::default();
        let held =
            json!({ "name": "my-machine", "tags": tags, "properties": { "provisioningState": state } });
        observed.take(&machine.scope().vm(), Some(held));
        let found = observed_machine(&machine.scope(), &observed);
        assert_eq!(found.map(|found| found.vm_state), expected.then(|| state.to_owned()), "{id:?} {state}");
    }
    let machine = Machine::worker(json!({}));
    assert_eq!(
        observed_machine(&machine.scope(), &ObservedResources::default()).map(|found| found.vm_state),
        None
    );
    assert_ne!(machine.scope().image().unwrap(), capz_api::machine::Image::default());
}
