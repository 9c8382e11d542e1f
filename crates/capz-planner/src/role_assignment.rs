//! The role assignment of an identity that is created and deleted with its machine or scale set.

use azure_types::ResourceId;
use capz_api::machine::{SystemAssignedRole, identity_kinds};
use serde_json::json;

use crate::goal::{Goal, GoalError, OwnershipRule};
use crate::observed::{Observation, ObservedResources};
use crate::service;

/// The goal exists once the identity of its owner is known.
pub(crate) fn goal(
    owner: &ResourceId,
    identity: Option<&str>,
    role: Option<&SystemAssignedRole>,
    observed: &ObservedResources,
) -> Result<Option<Goal>, GoalError> {
    let (true, Some(role), Observation::Present(held)) =
        (identity == Some(identity_kinds::SYSTEM_ASSIGNED), role, observed.get(owner))
    else {
        return Ok(None);
    };
    let Some(principal) = held["identity"]["principalId"].as_str() else { return Ok(None) };
    let text = |member: &Option<String>| member.clone().unwrap_or_default();
    let (name, at) = (text(&role.name), text(&role.scope));
    let at = ResourceId::parse(at.trim_end_matches('/')).map_err(|error| {
        GoalError::NotNow(format!(
            "the scope of the role assignment is not the ID of an Azure resource: {error}"
        ))
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
    Ok(Some(
        goal.owned(OwnershipRule::ByName("spec.systemAssignedIdentityRole.name"))
            .once()
            .after([owner.clone()]),
    ))
}
