//! `Microsoft.Authorization`: locks, roles and their assignments, and the access checks that follow from them ("What is
//! Azure role-based access control").

mod access;
mod assignment;
mod built_in;
mod changed;
mod definition;
mod enforcement;
mod filter;
mod guid;
mod lock;
mod needed;
mod permission;
mod permissions;
mod protocol;
mod role;

use azure_engine::provider::Provider;
use azure_engine::refusal::{Code, Refusal};
use azure_engine::settings::limits::Limit;
use azure_engine::types::names::NameRule;

pub use self::access::{Plane, may};
pub use self::assignment::assign;
pub use self::enforcement::{Requester, check};
pub use self::role::OWNER;

pub(crate) fn provider() -> Provider {
    Provider {
        extensions: vec![permissions::answer],
        limits: LIMITS,
        names: NAMES,
        built_in: Some(built_in::add_built_in),
        guards: &[lock::check],
        ..Provider::new(
            "Microsoft.Authorization",
            vec![&definition::RoleDefinitions, &assignment::RoleAssignments, &lock::Locks],
        )
    }
}

static LIMITS: &[Limit] = &[
    Limit::of("authorization.roleAssignmentsPerSubscription", 4_000),
    Limit::of("authorization.customRolesPerDirectory", 5_000),
];

/// Definitions and assignments are named by GUIDs.
static NAMES: &[NameRule] = &[NameRule { of: "*/role*", fits: guid::is_guid, refusal: no_guid }];

const INVALID_ROLE_ASSIGNMENT_ID: Code = Code::azures(400, "InvalidRoleAssignmentId");
const INVALID_ROLE_DEFINITION_ID: Code = Code::ours(400, "InvalidRoleDefinitionId");

fn no_guid(full_type: &str, name: &str) -> Refusal {
    let (code, what) = match full_type.ends_with("roleDefinitions") {
        true => (INVALID_ROLE_DEFINITION_ID, "role definition"),
        false => (INVALID_ROLE_ASSIGNMENT_ID, "role assignment"),
    };
    code.says(format_args!("The {what} ID '{name}' is not valid. The {what} ID must be a GUID."))
}
