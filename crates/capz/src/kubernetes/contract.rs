//! What Cluster API's contract v1beta2 asks of a status, beside what v1beta1 asks: it is derived from that.

use capz_api::{Condition, Initialization, MetaCondition, V1Beta2Status};
use capz_planner::condition::READY;

use crate::kubernetes::status::ReportedStatus;

/// The condition that says whether an object is left alone.
const PAUSED: &str = "Paused";

/// What is known of an object when its status is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// The generation of the spec that is reconciled.
    pub generation: Option<i64>,
    /// Whether its conditions are of that generation: before, they speak of the one that was reconciled last.
    pub is_judged: bool,
    /// Whether it is left alone; unknown before the reconcile has decided it.
    pub is_paused: Option<bool>,
}

/// Shows the state of an object in the form of the contract v1beta2.
pub fn show<S: ReportedStatus>(status: &mut S, shown: Shown, now: &str) {
    let Shown { generation, is_judged, is_paused } = shown;
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
    for (wanted, is_current) in [(ready, is_judged), (paused, true)] {
        let Some(wanted) = wanted else { continue };
        let all =
            contract.v1beta2.get_or_insert_with(V1Beta2Status::default).conditions.get_or_insert_default();
        let known = all.iter().find(|known| known.condition == wanted.condition);
        let before = known.and_then(|known| known.observed_generation).filter(|_| !is_current);
        set(all, MetaCondition { observed_generation: before.or(generation), ..wanted }, now);
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
        shown_as::<S>(status, Shown { generation: Some(3), is_judged: true, is_paused }, now)
    }

    fn shown_as<S: ReportedStatus + serde::de::DeserializeOwned + serde::Serialize>(
        status: Value,
        shown: Shown,
        now: &str,
    ) -> Value {
        let mut status: S = serde_json::from_value(status).unwrap();
        show(&mut status, shown, now);
        serde_json::to_value(status).unwrap()
    }

    /// CAPZ-207: a condition keeps its generation until the reconcile of a newer one has set it.
    #[test]
    fn a_condition_is_of_the_generation_for_which_it_was_set() {
        let ready = json!({ "ready": true, "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "t" }] });
        let of = |status: Value, generation, is_judged| {
            let shown = Shown { generation: Some(generation), is_judged, is_paused: Some(false) };
            let status = shown_as::<AzureMachineStatus>(status, shown, "t");
            let generations =
                [0, 1].map(|at| status["v1beta2"]["conditions"][at]["observedGeneration"].clone());
            (status, generations)
        };
        let (status, generations) = of(ready, 3, false);
        assert_eq!(generations, [3, 3], "the first");
        let (status, generations) = of(status, 4, false);
        assert_eq!(generations, [3, 4], "it is not judged yet");
        let (_, generations) = of(status, 4, true);
        assert_eq!(generations, [4, 4]);
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
