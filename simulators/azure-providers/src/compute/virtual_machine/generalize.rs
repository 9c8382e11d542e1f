//! `generalize`: a machine becomes the pattern of an image, and will not run again.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::answer::Answer;
use azure_engine::error::Refusal;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Record};

/// Where the machine keeps that it was.
const HIDDEN: &str = "generalized";

/// Whether a machine was generalized.
pub(crate) fn was(machine: &Record) -> bool {
    machine.hidden.contains_key(HIDDEN)
}

/// Marks a machine that does not run; over at once.
pub(crate) fn begin(azure: &mut AzureState, id: &ResourceId) -> Result<Action, Refusal> {
    let power = azure.store.get(id).and_then(|machine| machine.hidden.get("power")?.as_str());
    if !matches!(power, Some("stopped" | "deallocated")) {
        return Err(Refusal::new(
            409,
            "OperationNotAllowed",
            format!("VM '{}' must be stopped or deallocated before it can be generalized.", id.name()),
        ));
    }
    if let Some(machine) = azure.store.get_mut(id) {
        machine.hidden.insert(HIDDEN.into(), true.into());
    }
    Ok(Action { completion: Completion::Report(Value::Null), answer: Some(Answer::empty(200)) })
}

/// Refuses what a generalized machine cannot do any more.
pub(crate) fn check(machine: &Record, action: &str) -> Result<(), Refusal> {
    if !was(machine) || !["start", "restart", "redeploy", "reapply"].contains(&action) {
        return Ok(());
    }
    Err(Refusal::new(
        409,
        "OperationNotAllowed",
        format!(
            "Operation '{action}' is not allowed on VM '{}' since the VM is generalized.",
            machine.id.name()
        ),
    ))
}
