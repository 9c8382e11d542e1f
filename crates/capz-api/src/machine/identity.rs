//! The identity that a machine has in Azure.

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
    /// One that comes and goes with the machine.
    pub const SYSTEM_ASSIGNED: &str = "SystemAssigned";
    /// Some that exist by themselves.
    pub const USER_ASSIGNED: &str = "UserAssigned";
}

/// The role Contributor (Azure, "Azure built-in roles").
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";

object! {
    /// An identity that exists by itself.
    UserAssignedIdentity {
        /// The id of the identity, with or without azure:// before it.
        #[serde(rename = "providerID")]
        #[schemars(required)]
        provider_id: String,
    }
}

object! {
    /// The role of an identity that comes and goes with the machine.
    SystemAssignedRole {
        /// The id of the role's definition.
        #[serde(rename = "definitionID")]
        definition_id: String,
        /// The name of the role assignment, a GUID.
        name: String,
        /// Where the role holds: the id of a subscription, a resource group or a resource.
        scope: String,
    }
}

/// Gives an identity that comes and goes with the machine its role: Contributor of the cluster's subscription, where nothing
/// else was said. `former_name` is the member that the role's name was in formerly.
///
/// # Errors
/// The subscription is needed and could not be found out.
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
    // Both names at once are wrong, and are shown as they are.
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
                format_args!("the subscription of the machine's cluster could not be found out: {reason}"),
            );
            Err(errors)
        }
    }
}

/// What the role is where an object is applied again that had `known`: what was drawn or found out stays. A file that still
/// names the role's name in the member that it was in formerly says again what it is called.
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

/// Identities that exist by themselves are named where, and only where, the machine has such.
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

/// The role of an identity that comes and goes with the machine: whole, and only where there is such an identity.
/// `old_name` is the member that the role's name was in formerly.
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
