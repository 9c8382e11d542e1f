//! MachineHealthChecks: marks machines with unhealthy or missing nodes for replacement by their owners.
//!
//! Machine sets replace them; control planes do not. Left out: remediation by external templates, ranges, and
//! conditions of machines.

use std::time::Duration;

use serde_json::{Value, json};

use crate::machine_deployment::scaled;
use crate::objects::{Kind, is_deleting, list, name, observed, selects, text, time};
use crate::round::{Round, condition_of};

/// The default time limit for a node to join.
const STARTUP_SECONDS: u64 = 600;

/// The result of the checks for a machine.
pub(crate) struct Health {
    /// What is wrong: a reason and a message.
    pub(crate) unhealthy: Option<(&'static str, String)>,
    /// Whether the machine is marked for replacement.
    pub(crate) remediate: bool,
}

/// Reconciles all MachineHealthChecks of the cluster.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for before in round.of(Kind::MachineHealthCheck) {
        let mut after = before.clone();
        let targets = targets(round, before);
        let healthy = targets.iter().filter(|machine| judge(round, before, machine).is_none()).count();
        after["status"]["expectedMachines"] = targets.len().into();
        after["status"]["currentHealthy"] = healthy.into();
        after["status"]["targets"] = targets.iter().map(|machine| json!(name(machine))).collect();
        let allowed = is_allowed(before, targets.len(), healthy);
        let message = "More machines are not healthy than may be replaced";
        let words = ("Warning", "TooManyUnhealthy", message);
        round.old_condition(&mut after, "RemediationAllowed", allowed, words);
        let (reason, message) =
            if allowed { ("RemediationAllowed", "") } else { ("TooManyUnhealthy", message) };
        round.condition(&mut after, "RemediationAllowed", allowed, reason, message);
        observed(&mut after);
        round.save(&Kind::MachineHealthCheck.into(), before, &after);
    }
}

/// The result of all checks that select a machine; `None` without such a check.
pub(crate) fn check(round: &mut Round<'_>, machine: &Value) -> Option<Health> {
    let mut health = None;
    for check in round.of(Kind::MachineHealthCheck) {
        if !selects(&check["spec"]["selector"], machine) {
            continue;
        }
        let unhealthy = judge(round, check, machine);
        if unhealthy.is_none() && health.is_some() {
            continue;
        }
        let all = targets(round, check);
        let healthy = all.iter().filter(|one| judge(round, check, one).is_none()).count();
        let remediate = unhealthy.is_some() && is_allowed(check, all.len(), healthy);
        health = Some(Health { unhealthy, remediate });
    }
    health
}

fn targets<'a>(round: &Round<'a>, check: &Value) -> Vec<&'a Value> {
    round.of(Kind::Machine).into_iter().filter(|one| selects(&check["spec"]["selector"], one)).collect()
}

fn is_allowed(check: &Value, targets: usize, healthy: usize) -> bool {
    let limit = &check["spec"]["remediation"]["triggerIf"]["unhealthyLessThanOrEqualTo"];
    let limit = scaled(limit, targets as u64, false).unwrap_or(targets as u64);
    (targets - healthy) as u64 <= limit
}

/// Returns what is wrong with a machine, if anything.
fn judge(round: &mut Round<'_>, check: &Value, machine: &Value) -> Option<(&'static str, String)> {
    if is_deleting(machine) {
        return None;
    }
    let Some(reference) = machine["status"]["nodeRef"]["name"].as_str() else {
        let limit = check["spec"]["checks"]["nodeStartupTimeoutSeconds"].as_u64().unwrap_or(STARTUP_SECONDS);
        let born = time(&machine["metadata"]["creationTimestamp"])?;
        // A node can only join once the control plane is initialized.
        let joinable =
            condition_of(round.cluster, "ControlPlaneInitialized").filter(|one| one["status"] == "True")?;
        let since = time(&joinable["lastTransitionTime"]).map_or(born, |at| at.max(born));
        let late = limit > 0 && round.has_come(since + Duration::from_secs(limit));
        return late.then(|| ("NodeStartupTimeout", format!("Node failed to report startup in {limit}s")));
    };
    let workload = round.workload?;
    let Some(node) = workload.node(reference) else {
        return Some(("NodeDeleted", format!("Node {reference} has been deleted")));
    };
    list(&check["spec"]["checks"]["unhealthyNodeConditions"]).iter().find_map(|wanted| {
        let kind = text(&wanted["type"]);
        let found = condition_of(node, kind).filter(|one| one["status"] == wanted["status"])?;
        let limit = wanted["timeoutSeconds"].as_u64().unwrap_or_default();
        let since = time(&found["lastTransitionTime"])?;
        let words = || {
            format!(
                "Condition {kind} on Node is reporting status {} for more than {limit}s",
                text(&wanted["status"])
            )
        };
        round.has_come(since + Duration::from_secs(limit)).then(|| ("UnhealthyNode", words()))
    })
}
