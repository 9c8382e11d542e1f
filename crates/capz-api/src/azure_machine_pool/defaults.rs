//! What an AzureMachinePool is that did not say all of it.

use super::AzureMachinePoolSpec;
use crate::context::{Context, Lookup, Random};
use crate::field_error::{FieldErrors, Path};
use crate::machine::{contributor, default_diagnostics, default_interfaces, identity_kinds};

/// Completes a pool.
///
/// # Errors
/// The pool has an identity of its own, and its cluster's subscription could not be found out.
pub fn set_defaults(
    spec: &mut AzureMachinePoolSpec,
    context: &Context,
    random: &mut dyn Random,
) -> Result<(), FieldErrors> {
    let template = spec.template.get_or_insert_default();
    if template.ssh_public_key.as_deref().unwrap_or_default().is_empty() {
        template.ssh_public_key = Some(random.ssh_public_key());
    }
    default_diagnostics(&mut template.diagnostics);
    default_interfaces(
        &mut template.network_interfaces,
        &mut template.subnet_name,
        &mut template.accelerated_networking,
    );
    let disk = template.os_disk.get_or_insert_default();
    let empty = |member: &Option<String>| member.as_deref().unwrap_or_default().is_empty();
    if empty(&disk.os_type) {
        disk.os_type = Some("Linux".to_owned());
    }
    if empty(&disk.caching_type) {
        disk.caching_type = Some("None".to_owned());
    }
    if spec.identity.as_deref() != Some(identity_kinds::SYSTEM_ASSIGNED) {
        return Ok(());
    }
    let formerly = spec.role_assignment_name.take().filter(|name| !name.is_empty());
    let role = spec.system_assigned_identity_role.get_or_insert_default();
    if role.name.as_deref().is_some_and(|name| !name.is_empty()) {
        // Both at once is wrong, and is shown as it is.
        spec.role_assignment_name = formerly;
        return Ok(());
    }
    role.name = Some(formerly.unwrap_or_else(|| random.guid()));
    if !empty(&role.scope) && !empty(&role.definition_id) {
        return Ok(());
    }
    match &context.subscription {
        Lookup::Found(subscription) => {
            contributor(role, subscription);
            Ok(())
        }
        Lookup::NotNeeded => Ok(()),
        Lookup::Failed(reason) => {
            let mut errors = FieldErrors::default();
            errors.required(
                &Path::new("spec.systemAssignedIdentityRole.scope"),
                format_args!("the subscription of the pool's cluster could not be found out: {reason}"),
            );
            Err(errors)
        }
    }
}
