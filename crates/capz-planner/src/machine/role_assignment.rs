//! The role of an identity that comes and goes with its machine.

use azure_types::ResourceId;
use capz_api::machine::identity_kinds;
use serde_json::json;

use super::{GoalError, MachineScope};
use crate::goal::{Goal, Ownership};
use crate::observed::{Observed, Seen};
use crate::service;

/// The goal appears once Azure has told the identity of the machine.
pub(super) fn goal(scope: &MachineScope<'_>, observed: &Observed) -> Result<Option<Goal>, GoalError> {
    let spec = scope.spec;
    let vm = scope.vm();
    let (true, Some(role), Seen::Present(held)) = (
        spec.identity.as_deref() == Some(identity_kinds::SYSTEM_ASSIGNED),
        &spec.system_assigned_identity_role,
        observed.see(&vm),
    ) else {
        return Ok(None);
    };
    let Some(principal) = held["identity"]["principalId"].as_str() else { return Ok(None) };
    let text = |member: &Option<String>| member.clone().unwrap_or_default();
    let (name, at) = (text(&role.name), text(&role.scope));
    let at = ResourceId::parse(at.trim_end_matches('/')).map_err(|error| {
        GoalError::NotNow(format!("the scope of the machine's role assignment is no id of Azure: {error}"))
    })?;
    let document = json!({
        "properties": {
            "principalId": principal,
            "principalType": "ServicePrincipal",
            "roleDefinitionId": text(&role.definition_id),
        },
    });
    let id = at.resource("Microsoft.Authorization", "roleAssignments", &name);
    let goal = Goal::new(id, &service::ROLE_ASSIGNMENTS, document);
    Ok(Some(goal.owned(Ownership::ByName).once().after([vm])))
}
