//! The status of a pool, derived from the state of its scale set.

use capz_api::Condition;

use crate::condition::{Severity, fails, holds};

const RUNNING: &str = "ScaleSetRunning";
const MODEL: &str = "ScaleSetModelUpdated";
const REPLICAS: &str = "ScaleSetDesiredReplicas";

/// The status of a pool, derived from the state of its scale set.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolStatus {
    /// `status.provisioningState`.
    pub provisioning_state: String,
    /// Conditions that change.
    pub conditions: Vec<Condition>,
    /// `status.ready`; `None` if it is unchanged.
    pub ready: Option<bool>,
}

/// The status for a scale set in this state, of which `desired` machines are desired and `ready` are ready.
pub fn pool_status(state: &str, desired: u32, ready: u32) -> PoolStatus {
    let info = |condition: &str, reason: &str| vec![fails(condition, reason, Severity::Info, "")];
    let (provisioning_state, conditions, ready) = match state {
        "Succeeded" if desired == ready => {
            (state, [RUNNING, MODEL, REPLICAS].map(holds).to_vec(), Some(true))
        }
        "Succeeded" if desired > ready => ("Updating", info(REPLICAS, "ScaleSetScalingUp"), Some(true)),
        "Succeeded" => ("Updating", info(REPLICAS, "ScaleSetScalingDown"), Some(true)),
        "Updating" => (state, info(MODEL, "ScaleSetModelOutOfDate"), Some(true)),
        "Creating" => (state, info(RUNNING, "ScaleSetCreating"), Some(false)),
        "Deleting" => (state, info(RUNNING, "ScaleSetDeleting"), Some(false)),
        "Failed" => (state, info(RUNNING, "ScaleSetProvisionFailed"), Some(false)),
        "Canceled" | "Deleted" => (state, info(RUNNING, state), Some(false)),
        other => (other, info(RUNNING, other), None),
    };
    PoolStatus { provisioning_state: provisioning_state.to_owned(), conditions, ready }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CAPZ-150, and the other states.
    #[test]
    fn states_become_conditions() {
        for (state, desired, ready, provisioning, conditions, is_ready) in [
            (
                "Succeeded",
                3,
                3,
                "Succeeded",
                "ScaleSetRunning=True ScaleSetModelUpdated=True ScaleSetDesiredReplicas=True",
                Some(true),
            ),
            ("Succeeded", 3, 2, "Updating", "ScaleSetDesiredReplicas=ScaleSetScalingUp", Some(true)),
            ("Succeeded", 3, 4, "Updating", "ScaleSetDesiredReplicas=ScaleSetScalingDown", Some(true)),
            ("Updating", 3, 3, "Updating", "ScaleSetModelUpdated=ScaleSetModelOutOfDate", Some(true)),
            ("Creating", 3, 0, "Creating", "ScaleSetRunning=ScaleSetCreating", Some(false)),
            ("Deleting", 3, 0, "Deleting", "ScaleSetRunning=ScaleSetDeleting", Some(false)),
            ("Failed", 3, 3, "Failed", "ScaleSetRunning=ScaleSetProvisionFailed", Some(false)),
            ("Canceled", 3, 3, "Canceled", "ScaleSetRunning=Canceled", Some(false)),
            ("Migrating", 3, 3, "Migrating", "ScaleSetRunning=Migrating", None),
        ] {
            let status = pool_status(state, desired, ready);
            let said: Vec<String> = status
                .conditions
                .iter()
                .map(|it| {
                    let told = it.reason.as_deref().or(it.status.as_deref()).unwrap();
                    format!("{}={told}", it.condition.as_deref().unwrap())
                })
                .collect();
            assert_eq!(said.join(" "), conditions, "{state}");
            assert_eq!(
                (status.provisioning_state.as_str(), status.ready),
                (provisioning, is_ready),
                "{state}"
            );
        }
    }
}
