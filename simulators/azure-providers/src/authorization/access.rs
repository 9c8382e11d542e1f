//! Access checks: the roles assigned to a principal at a scope or above it.

use azure_types::ResourceId;
use serde_json::Value;

use super::permission;
use super::role::{ASSIGNMENT_TYPE, DEFINITION_TYPE, OWNER, definition_of};
use azure_engine::document::{items, text};
use azure_engine::provider::{AzureState, Record};

/// The list of a role in which an action is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plane {
    /// Resource Manager: `actions` and `notActions`.
    Control,
    /// What services do with data: `dataActions` and `notDataActions`.
    Data,
}

impl Plane {
    fn members(self) -> (&'static str, &'static str) {
        match self {
            Self::Control => ("actions", "notActions"),
            Self::Data => ("dataActions", "notDataActions"),
        }
    }
}

/// Whether a principal, by its object id, may carry out an action at a scope.
pub fn may(azure: &AzureState, object_id: &str, plane: Plane, action: &str, scope: &ResourceId) -> bool {
    roles(azure, object_id, |assigned| scope.is_within(assigned))
        .any(|role| allows(items(&role.body, "properties/permissions"), plane, action))
}

/// Whether a role's permissions allow an action.
pub(super) fn allows(permissions: &[Value], plane: Plane, action: &str) -> bool {
    permission::allow(permissions, plane.members(), action)
}

/// The roles that a principal has on scopes of a kind.
pub(super) fn roles<'a>(
    azure: &'a AzureState,
    object_id: &'a str,
    on: impl Fn(&ResourceId) -> bool + 'a,
) -> impl Iterator<Item = &'a Record> {
    azure
        .store
        .of_type(ASSIGNMENT_TYPE)
        .filter(move |record| {
            text(&record.body, "properties/principalId")
                .is_some_and(|principal| principal.eq_ignore_ascii_case(object_id))
        })
        .filter(move |record| record.id.parent().is_some_and(|assigned| on(&assigned)))
        .filter_map(|record| definition_of(azure, record))
}

/// The permissions that a principal has at a scope; those of an owner where callers are not identified.
pub(super) fn permissions_at(azure: &AzureState, object_id: Option<&str>, scope: &ResourceId) -> Vec<Value> {
    match object_id {
        Some(object_id) => roles(azure, object_id, |assigned| scope.is_within(assigned))
            .flat_map(|role| items(&role.body, "properties/permissions").iter().cloned())
            .collect(),
        None => azure
            .store
            .of_type(DEFINITION_TYPE)
            .filter(|role| role.id.name() == OWNER)
            .take(1)
            .flat_map(|role| items(&role.body, "properties/permissions").iter().cloned())
            .collect(),
    }
}
