//! Which machines of a pool are deleted now.

use capz_planner::pool::{
    DeletePolicy, Instance, ObservedPool, Pending, PoolMachine, PoolTarget, pending, rollout_in_progress,
    select, sync,
};
use serde_json::json;

use super::pool::{Pool, image_id};

/// A machine from a few words: `ready` or `unready`, `old`, a state other than Succeeded, `marked`, `leaving`.
fn machine(index: usize, words: &str) -> PoolMachine {
    let has = |word: &str| words.split_whitespace().any(|it| it == word);
    let state = ["Failed", "Deleting", "Creating", "Unseen"]
        .into_iter()
        .find(|state| has(state))
        .unwrap_or("Succeeded");
    PoolMachine {
        provider_id: format!("m{index}"),
        created: i64::try_from(index).unwrap(),
        state: Some(state.to_owned()).filter(|state| state != "Unseen"),
        ready: has("ready"),
        latest: !has("old"),
        marked: has("marked"),
        leaving: has("leaving"),
    }
}

fn machines(words: &[&str]) -> Vec<PoolMachine> {
    words.iter().enumerate().map(|(index, words)| machine(index, words)).collect()
}

const PLAIN: PoolTarget = PoolTarget {
    desired: 0,
    max_unavailable: 0,
    policy: DeletePolicy::Oldest,
    rollout: false,
    keep_old_models: false,
    seed: 0,
};

fn check(words: &[&str], target: PoolTarget, expected: &[usize]) {
    assert_eq!(select(&machines(words), target), expected, "{words:?} {target:?}");
}

/// CAPZ-140, CAPZ-141, CAPZ-142, CAPZ-143, CAPZ-144.
#[test]
fn too_many_go_those_first_that_are_missed_least() {
    let target = |desired| PoolTarget { desired, ..PLAIN };
    let rollout = |desired| PoolTarget { rollout: true, ..target(desired) };
    check(&["ready"], target(1), &[]);
    check(&["ready", "ready", "ready old"], target(2), &[2]);
    check(&["ready", "ready", "unready"], target(2), &[2]);
    check(&["ready", "ready", "unready"], target(3), &[]);
    // A machine that is not ready yet is the replacement of one that is deleted when it is.
    check(&["ready old", "ready old", "unready"], rollout(2), &[]);
    check(&["ready old", "ready old", "unready"], target(2), &[2]);
    check(&["ready old", "unready old", "ready"], rollout(2), &[1]);
    // Old ones before those in excess, these before ready ones, old before latest.
    check(&["unready", "unready old", "ready", "ready old", "unready"], target(0), &[1, 0, 4, 3, 2]);
    check(
        &["unready", "unready old", "ready", "ready old", "unready"],
        PoolTarget { desired: 1, ..PLAIN },
        &[1, 0, 4, 3],
    );
    // An instance that was not observed is not judged.
    check(&["Unseen", "ready"], target(1), &[]);
    check(&["ready", "ready leaving"], target(1), &[]);
}

/// CAPZ-145.
#[test]
fn the_policy_says_which_one_goes() {
    let with = |policy, seed| PoolTarget { desired: 2, policy, seed, ..PLAIN };
    let three = ["ready", "ready", "ready"];
    check(&three, with(DeletePolicy::Oldest, 0), &[0]);
    check(&three, with(DeletePolicy::Newest, 0), &[2]);
    check(&["ready", "ready marked", "ready"], with(DeletePolicy::Oldest, 0), &[1]);
    // At random, but a second decision selects the same.
    let chosen = |seed| select(&machines(&three), with(DeletePolicy::Random, seed));
    let all: std::collections::BTreeSet<usize> = (0..50).flat_map(chosen).collect();
    assert_eq!(all.len(), 3);
    assert_eq!(chosen(7), chosen(7));
}

/// CAPZ-146.
#[test]
fn old_ones_go_within_the_budget() {
    let with = |max_unavailable| PoolTarget { desired: 3, max_unavailable, rollout: true, ..PLAIN };
    check(&["ready", "ready old", "ready"], with(1), &[1]);
    check(&["ready", "ready old", "ready old"], with(2), &[1, 2]);
    check(&["ready", "ready old", "ready old"], with(1), &[1]);
    check(&["ready", "ready old", "ready old"], with(0), &[]);
    check(&["ready old", "ready old", "ready old"], with(4), &[0, 1, 2]);
    // A machine that is being drained no longer counts.
    check(&["ready", "ready old leaving", "ready old"], with(1), &[]);
    check(&["unready", "ready old", "ready old"], with(1), &[]);
}

/// CAPZ-147.
#[test]
fn broken_ones_go_first() {
    let target = PoolTarget { desired: 3, ..PLAIN };
    check(&["ready", "Failed", "ready"], target, &[1]);
    check(&["Failed", "Deleting", "ready marked", "Failed marked"], target, &[3, 0, 1]);
    check(&["Deleting leaving", "ready", "ready"], target, &[]);
    check(&["Failed leaving", "ready", "ready", "ready"], target, &[]);
}

/// C8: instances that Azure reports as failed and whose nodes are ready are deleted like the others, within what may be
/// unavailable; at least one is deleted, for they would stay for ever.
#[test]
fn failed_ones_that_serve_go_within_the_budget() {
    let with = |max_unavailable| PoolTarget { desired: 3, max_unavailable, ..PLAIN };
    let all = ["ready Failed", "ready Failed", "ready Failed"];
    check(&all, with(0), &[0]);
    check(&all, with(1), &[0]);
    check(&all, with(2), &[0, 1]);
    check(&["Failed", "ready Failed", "ready Failed"], with(2), &[0, 1]);
    check(&["ready Failed leaving", "ready Failed", "ready"], with(1), &[]);
    check(&["ready Failed leaving", "ready Failed", "ready"], with(2), &[1]);
}

/// CAPZ-148.
#[test]
fn old_models_stay_where_the_gate_says_so() {
    let target = |desired| PoolTarget { desired, keep_old_models: true, max_unavailable: 1, ..PLAIN };
    check(&["ready old", "ready old", "ready"], target(3), &[]);
    check(&["ready", "ready old", "ready old"], target(2), &[0]);
    check(&["ready old", "unready", "unready old"], target(1), &[1, 2]);
    check(&["ready old", "ready", "unready", "unready"], PoolTarget { rollout: true, ..target(2) }, &[2]);
}

/// CAPZ-152: objects follow instances, and the Machines of deleted instances are deleted before any others.
#[test]
fn objects_follow_instances() {
    let pool = Pool::new(json!({}));
    let set = pool.document();
    let instances =
        [pool.instance(0, 1, "Succeeded"), pool.instance(1, 1, "Deleting"), pool.instance(2, 1, "Creating")];
    let object = |instance: usize, words: &str| PoolMachine {
        provider_id: instances[instance].provider_id.to_uppercase(),
        ..machine(instance, words)
    };
    let pool = |machines| ObservedPool {
        scale_set: &set,
        instances: &instances,
        machines,
        last_reconciled: None,
        operation: false,
        external: false,
    };
    let target = PoolTarget { desired: 0, ..PLAIN };
    let none: &[PoolMachine] = &[];
    assert_eq!(sync(pool(none), target).create, [0, 2]);
    let gone = [object(0, "ready"), machine(7, "ready"), machine(8, "ready leaving")];
    let decided = sync(pool(&gone), target);
    assert_eq!((decided.create, decided.delete, decided.last_reconciled), (vec![2], vec![1], None));
    let all = [object(0, "ready"), object(2, "unready Creating")];
    assert_eq!(sync(pool(&all), target).delete, [1, 0]);
    assert_eq!(sync(pool(&all), target).last_reconciled, Some(0));
    assert_eq!(sync(ObservedPool { operation: true, ..pool(&all) }, target).delete, Vec::<usize>::new());
    assert_eq!(sync(ObservedPool { external: true, ..pool(&all) }, target).delete, Vec::<usize>::new());
}

/// The objects' model may be from before it changed; the state in Azure counts.
#[test]
fn the_model_is_what_azure_shows() {
    let mut pool = Pool::new(json!({}));
    pool.image = json!({ "id": image_id(2) });
    let set = pool.document();
    let instances = [pool.instance(0, 1, "Succeeded"), pool.instance(1, 2, "Succeeded")];
    let machines: Vec<PoolMachine> = (0..2)
        .map(|index| PoolMachine {
            provider_id: instances[index].provider_id.clone(),
            ..machine(1 - index, "ready")
        })
        .collect();
    let pool = ObservedPool {
        scale_set: &set,
        instances: &instances,
        machines: &machines,
        last_reconciled: Some(2),
        operation: false,
        external: false,
    };
    assert_eq!(sync(pool, PoolTarget { desired: 1, ..PLAIN }).delete, [0]);
    assert!(rollout_in_progress(pool, 2));
    assert!(!rollout_in_progress(pool, 1), "a pool that was scaled down");
    assert!(!rollout_in_progress(ObservedPool { instances: &instances[1..], ..pool }, 2));
}

/// Only observations show an operation in Azure; other changes are seen in Kubernetes, or end a call of ours.
#[test]
fn a_pool_waits_for_azure_or_for_machines() {
    let pool = Pool::new(json!({}));
    let mut set = pool.document();
    let of = |words: &[&str]| -> Vec<_> {
        words.iter().zip(0..).map(|(state, index)| pool.instance(index, 1, state)).collect()
    };
    let two = ["Succeeded", "Succeeded"];
    for (state, capacity, instances, leaving, desired, expected) in [
        ("Succeeded", 2, &two[..], None, 2, Pending::Nothing),
        ("Failed", 2, &two, None, 2, Pending::Nothing),
        ("Updating", 2, &two, None, 2, Pending::Azure),
        ("Creating", 0, &[], None, 0, Pending::Azure),
        ("Succeeded", 2, &two, None, 3, Pending::Machines),
        ("Succeeded", 2, &two, Some(1), 2, Pending::Machines),
        // The list lags behind the requests; a failed set gets no more machines.
        ("Succeeded", 3, &two, None, 3, Pending::Azure),
        ("Failed", 3, &two, None, 3, Pending::Machines),
        ("Succeeded", 2, &["Succeeded", "Creating"], None, 2, Pending::Azure),
        ("Succeeded", 2, &["Succeeded", "Failed"], None, 2, Pending::Nothing),
        // An instance that another actor deletes has to be observed; the end of our own deletions is known.
        ("Succeeded", 1, &["Succeeded", "Deleting"], None, 1, Pending::Azure),
        ("Succeeded", 1, &["Succeeded", "Deleting"], Some(0), 1, Pending::Azure),
        ("Succeeded", 1, &["Succeeded", "Deleting"], Some(1), 1, Pending::Machines),
    ] {
        set["properties"]["provisioningState"] = json!(state);
        set["sku"]["capacity"] = json!(capacity);
        let instances = of(instances);
        let machines: Vec<PoolMachine> = instances
            .iter()
            .enumerate()
            .map(|(index, instance)| PoolMachine {
                provider_id: instance.provider_id.to_uppercase(),
                ..machine(index, if leaving == Some(index) { "ready leaving" } else { "ready" })
            })
            .collect();
        let pool = ObservedPool {
            scale_set: &set,
            instances: &instances,
            machines: &machines,
            last_reconciled: None,
            operation: false,
            external: false,
        };
        let found = pending(pool, desired, false);
        assert_eq!(found, expected, "{state} {capacity} {instances:?} {leaving:?}");
    }
}

/// Machines of another model are replaced, unless they are to stay; one that is still starting is observed.
#[test]
fn a_pool_waits_for_machines_of_another_model() {
    let mut pool = Pool::new(json!({}));
    pool.image = json!({ "id": image_id(2) });
    let mut set = pool.document();
    set["properties"]["provisioningState"] = json!("Succeeded");
    set["sku"]["capacity"] = json!(1);
    let mut instances = [pool.instance(0, 1, "Succeeded")];
    let waits = |instances: &[Instance], keep: bool| {
        let pool = ObservedPool {
            scale_set: &set,
            instances,
            machines: &[],
            last_reconciled: None,
            operation: false,
            external: false,
        };
        pending(pool, 1, keep)
    };
    assert_eq!(waits(&instances, false), Pending::Machines);
    assert_eq!(waits(&instances, true), Pending::Nothing);
    instances[0].bootstrapping = Some("Creating".to_owned());
    assert_eq!(waits(&instances, true), Pending::Azure);
}
