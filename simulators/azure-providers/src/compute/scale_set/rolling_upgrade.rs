//! Rolling upgrades of uniform scale sets: instances follow their model a batch at a time, with pauses,
//! until all have it, somebody cancels, or too many fail.

use std::time::Duration;

use azure_types::ResourceId;
use jiff::Span;
use serde_json::{Value, json};

use crate::compute::scale_set::members::instances;
use crate::compute::scale_set::uniform;
use crate::compute::scale_set::uniform::{apply_model, is_latest};
use azure_engine::document::{Object, at, fill, integer, into_object, items, text};
use azure_engine::error::Refusal;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Record};
use azure_engine::store::State;

/// Where the scale set keeps the state of its upgrade, the running one or the last.
const HIDDEN: &str = "rollingUpgrade";

/// The steps that an upgrade waits for.
const BATCH: &str = "rollingUpgradeBatch";
const PAUSE: &str = "rollingUpgradePause";

/// Members of the policy that are shares of the instances, with their defaults.
const SHARES: [&str; 3] =
    ["maxBatchInstancePercent", "maxUnhealthyInstancePercent", "maxUnhealthyUpgradedInstancePercent"];
const USUAL_SHARE: i64 = 20;

/// Checks and fills `rollingUpgradePolicy`.
pub(crate) fn normalise(upgrade_policy: &mut Object) -> Result<(), Refusal> {
    let rolling = upgrade_policy.get("mode").is_some_and(|mode| mode == "Rolling");
    let Some(policy) = upgrade_policy.remove("rollingUpgradePolicy").or_else(|| rolling.then(|| json!({})))
    else {
        return Ok(());
    };
    let mut policy = into_object(policy);
    for member in SHARES {
        fill(&mut policy, member, USUAL_SHARE);
        let least = if member == "maxUnhealthyUpgradedInstancePercent" { 0 } else { 5 };
        let share = integer(&policy, member)?.unwrap_or(USUAL_SHARE);
        if !(least..=100).contains(&share) {
            return Err(Refusal::invalid_parameter(
                &format!("rollingUpgradePolicy.{member}"),
                format!(
                    "The value {share} of parameter '{member}' is out of range. It must be between {least} and 100."
                ),
            ));
        }
    }
    fill(&mut policy, "pauseTimeBetweenBatches", "PT0S");
    pause(&policy)?;
    upgrade_policy.insert("rollingUpgradePolicy".into(), Value::Object(policy));
    Ok(())
}

/// How long an upgrade waits between two batches.
fn pause(policy: &Object) -> Result<Duration, Refusal> {
    let given = policy.get("pauseTimeBetweenBatches").and_then(Value::as_str).unwrap_or("PT0S");
    let seconds = given
        .parse::<Span>()
        .and_then(|span| span.total((jiff::Unit::Second, jiff::SpanRelativeTo::days_are_24_hours())));
    let fits = seconds.ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    fits.ok_or_else(|| {
        Refusal::invalid_parameter(
            "rollingUpgradePolicy.pauseTimeBetweenBatches",
            format!("The value '{given}' of parameter 'pauseTimeBetweenBatches' is no ISO 8601 duration."),
        )
    })
}

/// Starts an upgrade where the policy wants one and the model is not everywhere yet.
pub(crate) fn follow_model(azure: &mut AzureState, id: &ResourceId) {
    let rolling = azure
        .store
        .get(id)
        .is_some_and(|set| text(&set.body, "properties/upgradePolicy/mode") == Some("Rolling"));
    if !rolling {
        return;
    }
    let behind: Vec<ResourceId> = instances(azure, id)
        .into_iter()
        .filter(|instance| azure.store.get(instance).is_some_and(|one| !is_latest(azure, one)))
        .collect();
    if !behind.is_empty() {
        start(azure, id, &behind);
    }
}

/// Starts an upgrade of these instances. One that runs goes on with them instead.
fn start(azure: &mut AzureState, id: &ResourceId, instances: &[ResourceId]) {
    let now = azure.now().to_string();
    let Some(set) = azure.store.get_mut(id) else { return };
    let before = set.hidden.get(HIDDEN);
    let running = before.is_some_and(|upgrade| upgrade["code"] == "RollingForward");
    let batch = before.map_or(json!([]), |upgrade| upgrade["batch"].clone());
    let idle = !running && ids(&batch).is_empty();
    let upgrade = json!({
        "code": "RollingForward",
        "start": before.filter(|_| running).map_or(json!(now), |upgrade| upgrade["start"].clone()),
        "lastAction": "Start",
        "lastActionTime": now,
        "pending": instances,
        "batch": batch,
        "successful": 0,
        "failed": 0,
    });
    set.hidden.insert(HIDDEN.into(), upgrade);
    if idle {
        next_batch(azure, id);
    }
}

/// Brings the next instances to the model, or ends the upgrade where none are left.
fn next_batch(azure: &mut AzureState, id: &ResourceId) {
    let Some(set) = azure.store.get(id) else { return };
    let goes_on =
        |upgrade: &&Value| upgrade["code"] == "RollingForward" && items(upgrade, "batch").is_empty();
    let Some(upgrade) = set.hidden.get(HIDDEN).filter(goes_on) else { return };
    let share = share(set, "maxBatchInstancePercent");
    let most = (instances(azure, id).len() * share).div_ceil(100).max(1);
    let mut pending = ids(&upgrade["pending"]);
    pending.retain(|one| azure.store.get(one).is_some_and(|one| one.state != State::Deleting));
    let batch: Vec<ResourceId> = pending.drain(..pending.len().min(most)).collect();
    if batch.is_empty() {
        update(azure, id, json!({ "code": "Completed", "pending": [], "batch": [] }));
        return;
    }
    update(azure, id, json!({ "pending": pending, "batch": batch }));
    let Some(key) = azure.later(id, BATCH, None) else { return };
    for instance in batch {
        apply_model(azure, &instance);
        if let Some(record) = azure.store.get_mut(&instance) {
            record.state = State::Updating;
            record.operation = Some(key.clone());
        }
    }
}

/// Goes on after a step: instances of a batch are done, or a pause is over.
pub(crate) fn step(azure: &mut AzureState, id: &ResourceId, step: &str, failed: bool) {
    let Some(set) = azure.store.get(id) else { return };
    let Some(upgrade) = set.hidden.get(HIDDEN).cloned() else { return };
    if step == PAUSE {
        return next_batch(azure, id);
    }
    let batch = ids(&upgrade["batch"]);
    for instance in &batch {
        uniform::settle(azure, instance, failed);
    }
    let count = |member: &str| upgrade[member].as_u64().unwrap_or_default();
    let done = batch.len() as u64;
    let (successful, failures) = if failed {
        (count("successful"), count("failed") + done)
    } else {
        (count("successful") + done, count("failed"))
    };
    update(azure, id, json!({ "batch": [], "successful": successful, "failed": failures }));
    let Some(set) = azure.store.get(id) else { return };
    let upgraded = (successful + failures).max(1) as usize;
    if failures as usize * 100 > share(set, "maxUnhealthyUpgradedInstancePercent") * upgraded {
        update(azure, id, json!({ "code": "Faulted" }));
        return;
    }
    let wait = at(&set.body, "properties/upgradePolicy/rollingUpgradePolicy")
        .and_then(|policy| pause(policy.as_object()?).ok())
        .unwrap_or_default();
    if wait.is_zero() || ids(&upgrade["pending"]).is_empty() {
        return next_batch(azure, id);
    }
    azure.later(id, PAUSE, Some(wait));
}

/// `rollingUpgrades/cancel`, `osRollingUpgrade` and `extensionRollingUpgrade`.
pub(crate) fn begin(
    azure: &mut AzureState,
    id: &ResourceId,
    action: &str,
) -> Option<Result<Action, Refusal>> {
    let report = Action { completion: Completion::Report(json!({})), answer: None };
    match action.to_ascii_lowercase().as_str() {
        "rollingupgrades/cancel" => {
            let running = azure
                .store
                .get(id)?
                .hidden
                .get(HIDDEN)
                .is_some_and(|upgrade| upgrade["code"] == "RollingForward");
            if !running {
                return Some(Err(Refusal::new(
                    409,
                    "OperationNotAllowed",
                    format!("There is no rolling upgrade of {id} that could be cancelled."),
                )));
            }
            let now = azure.now().to_string();
            update(
                azure,
                id,
                json!({ "code": "Cancelled", "pending": [], "lastAction": "Cancel", "lastActionTime": now }),
            );
            Some(Ok(report))
        }
        "osrollingupgrade" | "extensionrollingupgrade" => {
            let all = instances(azure, id);
            start(azure, id, &all);
            Some(Ok(report))
        }
        _ => None,
    }
}

/// `rollingUpgrades/latest`.
pub(crate) fn latest(set: &Record) -> Result<Value, Refusal> {
    let Some(upgrade) = set.hidden.get(HIDDEN) else {
        return Err(Refusal::new(
            404,
            "NotFound",
            format!("The entity was not found: {} had no rolling upgrade yet.", set.id),
        ));
    };
    let count = |member: &str| items(upgrade, member).len();
    Ok(json!({
        "name": "latest",
        "id": set.id.child("rollingUpgrades", "latest"),
        "type": "Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades",
        "location": set.body.get("location"),
        "properties": {
            "policy": at(&set.body, "properties/upgradePolicy/rollingUpgradePolicy"),
            "runningStatus": {
                "code": upgrade["code"],
                "startTime": upgrade["start"],
                "lastAction": upgrade["lastAction"],
                "lastActionTime": upgrade["lastActionTime"],
            },
            "progress": {
                "successfulInstanceCount": upgrade["successful"],
                "failedInstanceCount": upgrade["failed"],
                "inProgressInstanceCount": count("batch"),
                "pendingInstanceCount": count("pending"),
            },
        },
    }))
}

/// Changes some members of the upgrade's state.
fn update(azure: &mut AzureState, id: &ResourceId, members: Value) {
    let upgrade = azure.store.get_mut(id).and_then(|set| set.hidden.get_mut(HIDDEN));
    if let (Some(Value::Object(upgrade)), Value::Object(members)) = (upgrade, members) {
        upgrade.extend(members);
    }
    azure.revision += 1;
}

fn ids(list: &Value) -> Vec<ResourceId> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|id| ResourceId::parse(id.as_str()?).ok()).collect()
}

/// A share of the set's policy, in percent.
fn share(set: &Record, member: &str) -> usize {
    at(&set.body, &format!("properties/upgradePolicy/rollingUpgradePolicy/{member}"))
        .and_then(|share| usize::try_from(share.as_u64()?).ok())
        .unwrap_or(USUAL_SHARE as usize)
}
