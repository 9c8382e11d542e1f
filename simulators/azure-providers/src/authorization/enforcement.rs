//! Enforcement: whether the caller may do what a request does, and join the resources that its body references.

use azure_types::ResourceId;

use super::access::{self, Plane, may};
use super::needed::{Needed, needed};
use azure_engine::document::items;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::request::body::Body;
use azure_engine::types::join::joined;
use azure_engine::verbs::dispatch::Located;

/// The caller.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// The application.
    pub client_id: &'a str,
    /// The object id that assignments name.
    pub object_id: &'a str,
}

/// Whether a request may go on; everything may while rights are not enforced.
///
/// # Errors
/// Azure's refusal.
pub fn check(
    azure: &AzureState,
    requester: Requester<'_>,
    located: &Located,
    (method, path, body): (&str, &str, &Body),
) -> Result<()> {
    let Some(needed) = needed(located, method, path).filter(|_| azure.enforce_authorization) else {
        return Ok(());
    };
    let Requester { client_id, object_id } = requester;
    let Needed { action, scope, anywhere } = &needed;
    let allowed = match anywhere {
        false => may(azure, object_id, Plane::Control, action, scope),
        true => access::roles(azure, object_id, |assigned| assigned.is_within(scope))
            .any(|role| access::allows(items(&role.body, "properties/permissions"), Plane::Control, action)),
    };
    Code::azures(403, "AuthorizationFailed").says_when(!allowed, format_args!(
            "The client '{client_id}' with object id '{object_id}' does not have authorization to perform action \
             '{action}' over scope '{scope}' or the scope is invalid. If access was recently granted, please refresh \
             your credentials."
        ))?;
    if !matches!(method, "PUT" | "PATCH" | "POST") {
        return Ok(());
    }
    // A body that is not JSON is refused later.
    let Some(body) = body.readable() else { return Ok(()) };
    let joins = azure.providers.iter().flat_map(|provider| provider.joins);
    for (join, id) in joined(joins, &located.resource_type, body) {
        let Ok(linked) = ResourceId::parse(id) else { continue };
        // A reference to a part of the resource itself needs no further right.
        if linked.is_within(scope) || may(azure, object_id, Plane::Control, join, &linked) {
            continue;
        }
        return Err(Code::azures(403, "LinkedAuthorizationFailed").says(format_args!(
            "The client '{client_id}' with object id '{object_id}' has permission to perform action '{action}' on \
             scope '{scope}'; however, it does not have permission to perform action(s) '{join}' on the linked \
             scope(s) '{linked}' (respectively) or the linked scope(s) are invalid."
        )));
    }
    Ok(())
}
