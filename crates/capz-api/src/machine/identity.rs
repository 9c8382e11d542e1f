//! The identity of a machine in Azure.

use azure_types::ResourceId;
use serde_json::json;

use crate::context::{Context, Lookup, Random};
use crate::field_error::{FieldErrors, Path};
use crate::names;
use crate::object::object;

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
}

object! {
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
    let is_set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
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
            let mut errors = FieldErrors::default();
            errors.required(
                &Path::new("spec.systemAssignedIdentityRole.scope"),
                format_args!("the subscription of the machine's cluster is unknown: {reason}"),
            );
            Err(errors)
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
    let is_set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    if is_set(former_name) && role.name == known.name {
        role.name = former_name.take();
    }
    let named_elsewhere = is_set(former_name);
    for (member, known) in [
        (&mut role.name, known.name.as_ref().filter(|_| !named_elsewhere)),
        (&mut role.scope, known.scope.as_ref()),
        (&mut role.definition_id, known.definition_id.as_ref()),
    ] {
        if !is_set(member) {
            *member = known.cloned();
        }
    }
}

/// User-assigned identities are named if, and only if, the machine has such identities.
pub(crate) fn check_user_assigned(
    kind: Option<&str>,
    identities: Option<&[UserAssignedIdentity]>,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let identities = identities.unwrap_or_default();
    let wanted = kind == Some(kinds::USER_ASSIGNED);
    if wanted && identities.is_empty() {
        errors.required(path, "must be specified for the 'UserAssigned' identity type");
    }
    if !wanted && !identities.is_empty() {
        errors.invalid(
            path,
            json!(identities),
            "userAssignedIdentities needs the identity type 'UserAssigned'",
        );
    }
    for (index, identity) in identities.iter().enumerate() {
        let id = identity.provider_id.as_deref().unwrap_or_default();
        let plain = id.strip_prefix("azure://").unwrap_or(id);
        let path = path.index(index).child("providerID");
        match ResourceId::parse(plain) {
            Ok(id) if id.resource_type().eq_ignore_ascii_case("Microsoft.ManagedIdentity/userAssignedIdentities") => {}
            _ => errors.invalid(
                &path,
                id,
                "must be the id of a user-assigned identity: /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.ManagedIdentity/userAssignedIdentities/NAME",
            ),
        }
    }
}

/// Validates the role of an identity that is created with the machine: complete, and only if there is such an identity.
/// `old_name` is the deprecated member with the role's name.
pub(crate) fn check_role(
    kind: Option<&str>,
    role: Option<&SystemAssignedRole>,
    old_name: Option<&str>,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let old_name = old_name.unwrap_or_default();
    let name = role.and_then(|role| role.name.as_deref()).unwrap_or_default();
    let system = kind == Some(kinds::SYSTEM_ASSIGNED);
    if !old_name.is_empty() && !name.is_empty() {
        errors.invalid(
            &path.child("roleAssignmentName"),
            old_name,
            "cannot set both roleAssignmentName and systemAssignedIdentityRole.name: use the latter",
        );
    }
    let path = path.child("systemAssignedIdentityRole");
    match role {
        Some(role) if system => {
            for (member, value) in [("definitionID", &role.definition_id), ("scope", &role.scope)] {
                if value.as_deref().unwrap_or_default().is_empty() {
                    errors.required(&path.child(member), "the role of a system-assigned identity needs it");
                }
            }
        }
        Some(_) => {
            errors.forbidden(&path, "only a machine with the identity type 'SystemAssigned' has such a role")
        }
        None => {}
    }
    let name_path = path.child("name");
    if system && !names::is_guid(name) {
        errors.invalid(&name_path, name, "the name of a role assignment must be a valid GUID");
    }
    if !system && !name.is_empty() {
        errors.forbidden(
            &name_path,
            "only a machine with the identity type 'SystemAssigned' has a role assignment",
        );
    }
}
