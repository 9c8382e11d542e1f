//! Roles as they are kept: what definitions and assignments of them are called, and how one leads to the other.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{items, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Refusal};

/// Definitions of roles.
pub(super) const DEFINITION_TYPE: &str = "Microsoft.Authorization/roleDefinitions";
/// Assignments of roles.
pub(super) const ASSIGNMENT_TYPE: &str = "Microsoft.Authorization/roleAssignments";
/// The name of the role that may do everything, access included.
pub const OWNER: &str = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635";

/// The type of a subscription's own role.
pub(super) const CUSTOM: &str = "CustomRole";
/// The type of a built-in role.
pub(super) const BUILT_IN: &str = "BuiltInRole";

/// The id of a role in a subscription.
pub(super) fn id_in(subscription: &ResourceId, name: &str) -> ResourceId {
    subscription.resource("Microsoft.Authorization", "roleDefinitions", name)
}

/// The refusal of an unknown role.
pub(super) fn no_such_role(code: Code, name: &str) -> Refusal {
    code.says(format_args!(
        "The specified role definition with ID '{}' does not exist.",
        name.replace('-', "").to_ascii_lowercase()
    ))
}

/// Whether a role can be assigned at a scope, or (`below`) somewhere below it.
pub(super) fn assignable_at(role: &Record, scope: &ResourceId, below: bool) -> bool {
    items(&role.body, "properties/assignableScopes").iter().filter_map(Value::as_str).any(|assignable| {
        assignable == "/"
            || ResourceId::parse(assignable)
                .is_ok_and(|assignable| scope.is_within(&assignable) || below && assignable.is_within(scope))
    })
}

/// The role that an assignment is of.
pub(super) fn definition_of<'a>(azure: &'a AzureState, assignment: &Record) -> Option<&'a Record> {
    let named = text(&assignment.body, "properties/roleDefinitionId")?;
    let subscription = ResourceId::subscription(assignment.id.subscription_id());
    azure.store.get(&id_in(&subscription, named.rsplit('/').next()?))
}

/// Whether a role is one of Azure's.
pub(super) fn is_built_in(record: &Record) -> bool {
    text(&record.body, "properties/type") == Some(BUILT_IN)
}
