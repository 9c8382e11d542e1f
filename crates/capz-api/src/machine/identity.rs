//! The identity of a machine in Azure.

use azure_types::ResourceId;

use crate::context::{Context, Lookup, Random};
use crate::field_error::{Field, FieldErrors};
use crate::names;
use crate::object::object;
use crate::text::{is_set, keep, text};

/// Kinds of identities.
pub mod kinds {
    /// No identity.
    pub const NONE: &str = "None";
    /// One that is created and deleted with the machine.
    pub const SYSTEM_ASSIGNED: &str = "SystemAssigned";
    /// Independent ones.
    pub const USER_ASSIGNED: &str = "UserAssigned";
}

/// The role Contributor (Azure, "Azure built-in roles").
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";

object! {
    /// A user-assigned identity.
    UserAssignedIdentity {
        /// The id of the identity, with or without azure:// before it.
        #[serde(rename = "providerID")]
        #[schemars(required)]
        provider_id: String,
    }

    /// The role of the system-assigned identity.
    SystemAssignedRole {
        /// The id of the role's definition.
        #[serde(rename = "definitionID")]
        definition_id: String,
        /// The name of the role assignment, a GUID.
        name: String,
        /// The scope of the role: the id of a subscription, a resource group or a resource.
        scope: String,
    }
}

/// Sets the default role of an identity that is created with the machine: Contributor of the cluster's subscription.
/// `former_name` is the deprecated member with the role's name.
///
/// # Errors
/// The subscription is needed and unknown.
pub(crate) fn default_role(
    kind: Option<&str>,
    role: &mut Option<SystemAssignedRole>,
    former_name: &mut Option<String>,
    context: &Context,
    random: &mut dyn Random,
) -> Result<(), FieldErrors> {
    if kind != Some(kinds::SYSTEM_ASSIGNED) {
        return Ok(());
    }
    let role = role.get_or_insert_default();
    // Setting both names is invalid, and is reported as it is.
    if is_set(&role.name) && is_set(former_name) {
        return Ok(());
    }
    if !is_set(&role.name) {
        role.name = Some(former_name.take().filter(|name| !name.is_empty()).unwrap_or_else(|| random.guid()));
    }
    if is_set(&role.scope) && is_set(&role.definition_id) {
        return Ok(());
    }
    match &context.subscription {
        Lookup::NotNeeded => Ok(()),
        Lookup::Found(subscription) => {
            if !is_set(&role.scope) {
                role.scope = Some(format!("/subscriptions/{subscription}/"));
            }
            if !is_set(&role.definition_id) {
                role.definition_id = Some(format!(
                    "/subscriptions/{subscription}/providers/Microsoft.Authorization/roleDefinitions/{CONTRIBUTOR}"
                ));
            }
            Ok(())
        }
        Lookup::Failed(reason) => {
            let words = format!("the subscription of the machine's cluster is unknown: {reason}");
            let scope = "spec.systemAssignedIdentityRole.scope";
            Err(FieldErrors::of(|object| object.child(scope).required(words)))
        }
    }
}

/// The role after an object that had `known` is applied again: random and looked-up values stay. A file that still sets
/// the deprecated member for the role's name sets the name again.
pub(crate) fn keep_role(
    kind: Option<&str>,
    role: &mut Option<SystemAssignedRole>,
    former_name: &mut Option<String>,
    known: Option<&SystemAssignedRole>,
) {
    let Some(known) = known.filter(|_| kind == Some(kinds::SYSTEM_ASSIGNED)) else { return };
    let role = role.get_or_insert_default();
    if is_set(former_name) && role.name == known.name {
        role.name = former_name.take();
    }
    if !is_set(former_name) {
        keep(&mut role.name, &known.name);
    }
    keep(&mut role.scope, &known.scope);
    keep(&mut role.definition_id, &known.definition_id);
}

/// User-assigned identities are named if, and only if, the machine has such identities.
pub(crate) fn check_user_assigned(
    kind: Option<&str>,
    identities: Option<&[UserAssignedIdentity]>,
    machine: &Field<'_>,
) {
    let list = machine.child("userAssignedIdentities");
    let identities = identities.unwrap_or_default();
    let wanted = kind == Some(kinds::USER_ASSIGNED);
    let words = "must be specified for the 'UserAssigned' identity type";
    list.required_if(wanted && identities.is_empty(), words);
    let words = "userAssignedIdentities needs the identity type 'UserAssigned'";
    list.invalid_if(!wanted && !identities.is_empty(), identities, words);
    for (index, identity) in identities.iter().enumerate() {
        let id = text(&identity.provider_id);
        let kind = ResourceId::parse(id.strip_prefix("azure://").unwrap_or(id)).map(|id| id.resource_type());
        list.index(index).child("providerID").invalid_if(
            !kind.is_ok_and(|kind| kind.eq_ignore_ascii_case("Microsoft.ManagedIdentity/userAssignedIdentities")),
            id,
            "must be the id of a user-assigned identity: /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.ManagedIdentity/userAssignedIdentities/NAME",
        );
    }
}

/// Validates the role of an identity that is created with the machine: complete, and only if there is such an identity.
/// `old_name` is the deprecated member with the role's name.
pub(crate) fn check_role(
    kind: Option<&str>,
    role: Option<&SystemAssignedRole>,
    old_name: Option<&str>,
    machine: &Field<'_>,
) {
    let old_name = old_name.unwrap_or_default();
    let name = role.map(|role| text(&role.name)).unwrap_or_default();
    let system = kind == Some(kinds::SYSTEM_ASSIGNED);
    machine.child("roleAssignmentName").invalid_if(
        !old_name.is_empty() && !name.is_empty(),
        old_name,
        "cannot set both roleAssignmentName and systemAssignedIdentityRole.name: use the latter",
    );
    let field = machine.child("systemAssignedIdentityRole");
    if let Some(role) = role.filter(|_| system) {
        for (member, value) in [("definitionID", &role.definition_id), ("scope", &role.scope)] {
            let words = "the role of a system-assigned identity needs it";
            field.child(member).required_if(!is_set(value), words);
        }
    }
    let words = "only a machine with the identity type 'SystemAssigned' has such a role";
    field.forbidden_if(role.is_some() && !system, words);
    let words = "the name of a role assignment must be a valid GUID";
    field.child("name").invalid_if(system && !names::is_guid(name), name, words);
    let words = "only a machine with the identity type 'SystemAssigned' has a role assignment";
    field.child("name").forbidden_if(!system && !name.is_empty(), words);
}
