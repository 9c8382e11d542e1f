//! Conditions of an AzureMachine.

use capz_api::Condition;

use crate::condition;
use crate::plan::Plan;
use crate::service::{self, MACHINE};

const STARTING: &str =
    "the extension is still being installed: the machine has probably not joined its cluster yet";
const NOT_STARTED: &str =
    "the machine has probably not joined its cluster, or not in time: look at its boot diagnostics";

/// The conditions of a machine's plan.
pub fn conditions(plan: &Plan) -> Vec<Condition> {
    let mut conditions = condition::project(&MACHINE, plan);
    for condition in &mut conditions {
        if condition.condition.as_deref() == service::EXTENSIONS.condition {
            hint(condition);
        }
    }
    // Disks are created with the machine, and only deleted by themselves.
    let is = |condition: &Condition, service: &service::Service| {
        condition.condition.as_deref() == service.condition
    };
    if !conditions.iter().any(|known| is(known, &service::DISKS))
        && let Some(machine) = conditions.iter().find(|known| is(known, &service::VIRTUAL_MACHINE))
    {
        let condition = service::DISKS.condition.map(str::to_owned);
        conditions.push(Condition { condition, ..machine.clone() });
    }
    conditions
}

/// The condition of a machine that is as declared, and does not run.
pub fn stopped(state: &str, id: &str) -> Condition {
    let words = format!(
        "the virtual machine is {}, and not by Cluster API: start it (az vm start --ids {id}), or delete its Machine to have it \
         replaced",
        state.to_lowercase()
    );
    condition::fails("VMRunning", &format!("VM{state}"), condition::Severity::Warning, words)
}

/// Adds the most likely cause for an extension that takes long, or fails.
fn hint(condition: &mut Condition) {
    let hint = match condition.reason.as_deref() {
        Some("Creating") => STARTING,
        Some("Failed") => NOT_STARTED,
        _ => return,
    };
    let message = condition.message.take().unwrap_or_default();
    condition.message = Some(format!("{message}. {hint}"));
}
