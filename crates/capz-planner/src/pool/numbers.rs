//! How many machines more or fewer than desired are permitted.

use capz_api::azure_machine_pool::{AzureMachinePoolSpec, RollingUpdate};

fn rolling(spec: &AzureMachinePoolSpec) -> Option<&RollingUpdate> {
    spec.strategy.as_ref()?.rolling_update.as_ref()
}

/// How many machines more than `desired` are permitted while machines are replaced.
pub fn max_surge(spec: &AzureMachinePoolSpec, desired: u32) -> u32 {
    let declared = rolling(spec).and_then(|it| it.max_surge.as_ref());
    // Admission permits numbers and percentages only.
    declared.map_or(1, |surge| surge.of(desired, true).unwrap_or(1))
}

/// How many machines fewer than `desired` may be ready while machines are replaced.
pub fn max_unavailable(spec: &AzureMachinePoolSpec, desired: u32) -> u32 {
    let declared = rolling(spec).and_then(|it| it.max_unavailable.as_ref());
    declared.and_then(|unavailable| unavailable.of(desired, false)).unwrap_or_default()
}

/// Which machine is deleted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletePolicy {
    /// The oldest one.
    Oldest,
    /// The newest one.
    Newest,
    /// Any.
    Random,
}

/// The policy of a pool.
pub fn delete_policy(spec: &AzureMachinePoolSpec) -> DeletePolicy {
    match rolling(spec).and_then(|it| it.delete_policy.as_deref()) {
        Some("Oldest") => DeletePolicy::Oldest,
        Some("Newest") => DeletePolicy::Newest,
        _ => DeletePolicy::Random,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// CAPZ-136; CAPZ-146: 45 % of three is one, 30 % none.
    #[test]
    fn numbers_and_shares_are_rounded_to_the_safe_side() {
        let spec = |update: serde_json::Value| -> AzureMachinePoolSpec {
            serde_json::from_value(json!({ "strategy": { "rollingUpdate": update } })).unwrap()
        };
        for (update, desired, surge, unavailable) in [
            (json!({}), 20, 1, 0),
            (json!({ "maxSurge": 2, "maxUnavailable": 1 }), 20, 2, 1),
            (json!({ "maxSurge": "20%", "maxUnavailable": "20%" }), 20, 4, 4),
            (json!({ "maxSurge": "20%", "maxUnavailable": "20%" }), 21, 5, 4),
            (json!({ "maxSurge": 0, "maxUnavailable": "10%" }), 3, 0, 0),
            (json!({ "maxUnavailable": "45%" }), 3, 1, 1),
            (json!({ "maxUnavailable": "30%" }), 3, 1, 0),
        ] {
            let spec = spec(update);
            assert_eq!(
                (max_surge(&spec, desired), max_unavailable(&spec, desired)),
                (surge, unavailable),
                "{spec:?}"
            );
        }
        assert_eq!(delete_policy(&spec(json!({ "deletePolicy": "Newest" }))), DeletePolicy::Newest);
        assert_eq!(delete_policy(&spec(json!({ "deletePolicy": "Oldest" }))), DeletePolicy::Oldest);
        assert_eq!(delete_policy(&AzureMachinePoolSpec::default()), DeletePolicy::Random);
    }
}
