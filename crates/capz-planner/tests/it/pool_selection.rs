//! Which machines of a pool go now.

use capz_planner::pool::{
    DeletePolicy, Known, PoolMachine, Wanted, needs_another_look, rollout_in_progress, select, sync,
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

const PLAIN: Wanted = Wanted {
    desired: 0,
    max_unavailable: 0,
    policy: DeletePolicy::Oldest,
    rollout: false,
    keep_old_models: false,
    seed: 0,
};

fn check(words: &[&str], wanted: Wanted, expected: &[usize]) {
    assert_eq!(select(&machines(words), wanted), expected, "{words:?} {wanted:?}");
}

/// CAPZ-140, CAPZ-141, CAPZ-142, CAPZ-143, CAPZ-144.
#[test]
fn too_many_go_those_first_that_are_missed_least() {
    let wanted = |desired| Wanted { desired, ..PLAIN };
    let rollout = |desired| Wanted { rollout: true, ..wanted(desired) };
    check(&["ready"], wanted(1), &[]);
    check(&["ready", "ready", "ready old"], wanted(2), &[2]);
    check(&["ready", "ready", "unready"], wanted(2), &[2]);
    check(&["ready", "ready", "unready"], wanted(3), &[]);
    // What is not ready yet stands for one that goes when it is.
    check(&["ready old", "ready old", "unready"], rollout(2), &[]);
    check(&["ready old", "ready old", "unready"], wanted(2), &[2]);
    check(&["ready old", "unready old", "ready"], rollout(2), &[1]);
    // Old ones before those in excess, these before ready ones, old before latest.
    check(&["unready", "unready old", "ready", "ready old", "unready"], wanted(0), &[1, 0, 4, 3, 2]);
    check(
        &["unready", "unready old", "ready", "ready old", "unready"],
        Wanted { desired: 1, ..PLAIN },
        &[1, 0, 4, 3],
    );
    // What nobody has looked at is not judged.
    check(&["Unseen", "ready"], wanted(1), &[]);
    check(&["ready", "ready leaving"], wanted(1), &[]);
}

/// CAPZ-145.
#[test]
fn the_policy_says_which_one_goes() {
    let with = |policy, seed| Wanted { desired: 2, policy, seed, ..PLAIN };
    let three = ["ready", "ready", "ready"];
    check(&three, with(DeletePolicy::Oldest, 0), &[0]);
    check(&three, with(DeletePolicy::Newest, 0), &[2]);
    check(&["ready", "ready marked", "ready"], with(DeletePolicy::Oldest, 0), &[1]);
    // At random, but a second look chooses the same.
    let chosen = |seed| select(&machines(&three), with(DeletePolicy::Random, seed));
    let all: std::collections::BTreeSet<usize> = (0..50).flat_map(chosen).collect();
    assert_eq!(all.len(), 3);
    assert_eq!(chosen(7), chosen(7));
}

/// CAPZ-146.
#[test]
fn old_ones_go_within_the_budget() {
    let with = |max_unavailable| Wanted { desired: 3, max_unavailable, rollout: true, ..PLAIN };
    check(&["ready", "ready old", "ready"], with(1), &[1]);
    check(&["ready", "ready old", "ready old"], with(2), &[1, 2]);
    check(&["ready", "ready old", "ready old"], with(1), &[1]);
    check(&["ready", "ready old", "ready old"], with(0), &[]);
    check(&["ready old", "ready old", "ready old"], with(4), &[0, 1, 2]);
    // One that is drained counts no more.
    check(&["ready", "ready old leaving", "ready old"], with(1), &[]);
    check(&["unready", "ready old", "ready old"], with(1), &[]);
}

/// CAPZ-147.
#[test]
fn broken_ones_go_first() {
    let wanted = Wanted { desired: 3, ..PLAIN };
    check(&["ready", "Failed", "ready"], wanted, &[1]);
    check(&["Failed", "Deleting", "ready marked", "Failed marked"], wanted, &[3, 0, 1]);
    check(&["Deleting leaving", "ready", "ready"], wanted, &[]);
    check(&["Failed leaving", "ready", "ready", "ready"], wanted, &[]);
}

/// CAPZ-148.
#[test]
fn old_models_stay_where_the_gate_says_so() {
    let wanted = |desired| Wanted { desired, keep_old_models: true, max_unavailable: 1, ..PLAIN };
    check(&["ready old", "ready old", "ready"], wanted(3), &[]);
    check(&["ready", "ready old", "ready old"], wanted(2), &[0]);
    check(&["ready old", "unready", "unready old"], wanted(1), &[1, 2]);
    check(&["ready old", "ready", "unready", "unready"], Wanted { rollout: true, ..wanted(2) }, &[2]);
}

/// CAPZ-152: objects follow instances, and instances that are gone take their Machines along before anything else goes.
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
    let known = |machines| Known {
        scale_set: &set,
        instances: &instances,
        machines,
        last_reconciled: None,
        operation: false,
        external: false,
    };
    let wanted = Wanted { desired: 0, ..PLAIN };
    let none: &[PoolMachine] = &[];
    assert_eq!(sync(known(none), wanted).create, [0, 2]);
    let gone = [object(0, "ready"), machine(7, "ready"), machine(8, "ready leaving")];
    let decided = sync(known(&gone), wanted);
    assert_eq!((decided.create, decided.delete, decided.last_reconciled), (vec![2], vec![1], None));
    let all = [object(0, "ready"), object(2, "unready Creating")];
    assert_eq!(sync(known(&all), wanted).delete, [1, 0]);
    assert_eq!(sync(known(&all), wanted).last_reconciled, Some(0));
    assert_eq!(sync(Known { operation: true, ..known(&all) }, wanted).delete, Vec::<usize>::new());
    assert_eq!(sync(Known { external: true, ..known(&all) }, wanted).delete, Vec::<usize>::new());
}

/// What the objects remember of the model is from before it changed; what Azure shows counts.
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
    let known = Known {
        scale_set: &set,
        instances: &instances,
        machines: &machines,
        last_reconciled: Some(2),
        operation: false,
        external: false,
    };
    assert_eq!(sync(known, Wanted { desired: 1, ..PLAIN }).delete, [0]);
    assert!(rollout_in_progress(known, 2));
    assert!(!rollout_in_progress(known, 1), "a pool that somebody made smaller");
    assert!(!rollout_in_progress(Known { instances: &instances[1..], ..known }, 2));
    for (instances, state, desired, keep, again) in [
        (&instances[..], "Succeeded", 2, false, true),
        (&instances[..], "Succeeded", 2, true, false),
        (&instances[1..], "Succeeded", 1, false, false),
        (&instances[1..], "Succeeded", 2, false, true),
        (&instances[1..], "Updating", 1, false, true),
        (&instances[1..], "Failed", 1, false, false),
    ] {
        assert_eq!(needs_another_look(instances, &set, state, desired, keep), again);
    }
}
