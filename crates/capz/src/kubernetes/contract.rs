//! What Cluster API's contract v1beta2 asks of a status, beside what v1beta1 asks: it is derived from that.

use capz_api::{Condition, Initialization, MetaCondition, V1Beta2Status};
use capz_planner::condition::READY;

use crate::kubernetes::status::ReportedStatus;

/// The condition that says whether an object is left alone.
const PAUSED: &str = "Paused";

/// Shows the state of an object of this generation in the form of the contract v1beta2. `is_paused` is unknown before
/// the reconcile has decided it.
pub fn show<S: ReportedStatus>(status: &mut S, generation: Option<i64>, is_paused: Option<bool>, now: &str) {
    let is_ready = status.is_ready();
    let ready =
        status.conditions().iter().flatten().find(|it| it.condition.as_deref() == Some(READY)).map(of);
    let paused = is_paused.map(|paused| {
        let (status, reason) = if paused { ("True", "Paused") } else { ("False", "NotPaused") };
        condition(PAUSED, status, reason, "")
    });
    let contract = status.contract();
    if is_ready {
        let initialization = contract.initialization.get_or_insert_default();
        complete(initialization, contract.is_control_plane);
    }
    for wanted in [ready, paused].into_iter().flatten() {
        let all =
            contract.v1beta2.get_or_insert_with(V1Beta2Status::default).conditions.get_or_insert_default();
        set(all, MetaCondition { observed_generation: generation, ..wanted }, now);
    }
}

fn complete(initialization: &mut Initialization, is_control_plane: bool) {
    if is_control_plane {
        initialization.control_plane_initialized = Some(true);
    } else {
        initialization.provisioned = Some(true);
    }
}

/// A condition of v1beta1 in the form of v1beta2, which demands a reason.
fn of(known: &Condition) -> MetaCondition {
    let status = known.status.as_deref().unwrap_or("Unknown");
    let otherwise = if status == "True" { "Ready" } else { "NotReady" };
    let reason = known.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or(otherwise);
    condition(READY, status, reason, known.message.as_deref().unwrap_or_default())
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> MetaCondition {
    MetaCondition {
        condition: Some(kind.to_owned()),
        status: Some(status.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..MetaCondition::default()
    }
}

/// Sets a condition. Its time is that of the last change of its status.
fn set(all: &mut Vec<MetaCondition>, wanted: MetaCondition, now: &str) {
    let Some(known) = all.iter_mut().find(|known| known.condition == wanted.condition) else {
        all.push(MetaCondition { last_transition_time: Some(now.to_owned()), ..wanted });
        return;
    };
    let time = match known.status == wanted.status {
        true => known.last_transition_time.take(),
        false => Some(now.to_owned()),
    };
    *known = MetaCondition { last_transition_time: time, rest: std::mem::take(&mut known.rest), ..wanted };
}

#[cfg(test)]
mod tests {
    use capz_api::azure_machine::AzureMachineStatus;
    use capz_api::azure_managed_control_plane::AzureManagedControlPlaneStatus;
    use serde_json::{Value, json};

    use super::*;

    fn shown<S: ReportedStatus + serde::de::DeserializeOwned + serde::Serialize>(
        status: Value,
        is_paused: Option<bool>,
        now: &str,
    ) -> Value {
        let mut status: S = serde_json::from_value(status).unwrap();
        show(&mut status, Some(3), is_paused, now);
        serde_json::to_value(status).unwrap()
    }

    #[test]
    fn a_status_says_the_same_in_both_forms() {
        let begun = json!({ "ready": false, "conditions": [
            { "type": "Ready", "status": "False", "reason": "Creating", "message": "m", "severity": "Info", "lastTransitionTime": "t" }] });
        let first = shown::<AzureMachineStatus>(begun.clone(), Some(false), "t1");
        assert_eq!(first["initialization"], Value::Null);
        let expected = json!([
            { "type": "Ready", "status": "False", "reason": "Creating", "message": "m", "observedGeneration": 3, "lastTransitionTime": "t1" },
            { "type": "Paused", "status": "False", "reason": "NotPaused", "message": "", "observedGeneration": 3, "lastTransitionTime": "t1" },
        ]);
        assert_eq!(first["v1beta2"]["conditions"], expected);
        assert_eq!(shown::<AzureMachineStatus>(first.clone(), Some(false), "t2"), first, "nothing changed");

        let mut ready = first;
        ready["ready"] = json!(true);
        ready["conditions"] = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": "t" }]);
        let second = shown::<AzureMachineStatus>(ready, Some(true), "t3");
        assert_eq!(second["initialization"], json!({ "provisioned": true }));
        assert_eq!(second["v1beta2"]["conditions"][0]["reason"], "Ready");
        assert_eq!(second["v1beta2"]["conditions"][0]["lastTransitionTime"], "t3");
        assert_eq!(second["v1beta2"]["conditions"][1]["reason"], "Paused");

        // Complete is complete, whatever happens later.
        let mut lost = second;
        lost["ready"] = json!(false);
        let third = shown::<AzureMachineStatus>(lost, None, "t4");
        assert_eq!(third["initialization"], json!({ "provisioned": true }));
        let control_plane =
            shown::<AzureManagedControlPlaneStatus>(json!({ "ready": true, "initialized": true }), None, "t");
        assert_eq!(control_plane["initialization"], json!({ "controlPlaneInitialized": true }));
    }
}
