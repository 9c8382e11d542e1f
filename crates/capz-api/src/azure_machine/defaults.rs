//! What an AzureMachine is that did not say all of it.

use super::AzureMachineSpec;
use crate::context::{Context, Lookup, Random};
use crate::field_error::{FieldErrors, Path};
use crate::machine::{
    contributor, default_data_disks, default_diagnostics, default_interfaces, identity_kinds,
};

/// Completes a machine.
///
/// # Errors
/// The machine has an identity of its own, and its cluster's subscription could not be found out.
pub fn set_defaults(
    spec: &mut AzureMachineSpec,
    context: &Context,
    random: &mut dyn Random,
) -> Result<(), FieldErrors> {
    set_common_defaults(spec, random);
    set_eviction_policy(spec);
    default_diagnostics(&mut spec.diagnostics);
    set_role(spec, context, random)
}

/// What machines and templates of machines have in common.
pub(super) fn set_common_defaults(spec: &mut AzureMachineSpec, random: &mut dyn Random) {
    if spec.ssh_public_key.as_deref().unwrap_or_default().is_empty() {
        spec.ssh_public_key = Some(random.ssh_public_key());
    }
    default_data_disks(spec.data_disks.as_mut());
    default_interfaces(&mut spec.network_interfaces, &mut spec.subnet_name, &mut spec.accelerated_networking);
}

/// A machine whose disk is on the host has nothing left to start again with.
fn set_eviction_policy(spec: &mut AzureMachineSpec) {
    let ephemeral = spec.os_disk.as_ref().is_some_and(crate::machine::OsDisk::is_ephemeral);
    if let Some(spot) = &mut spec.spot_vm_options
        && spot.eviction_policy.is_none()
    {
        spot.eviction_policy = Some(if ephemeral { "Delete" } else { "Deallocate" }.to_owned());
    }
}

/// An identity that comes and goes with the machine is Contributor of the subscription, where nothing else was said.
fn set_role(
    spec: &mut AzureMachineSpec,
    context: &Context,
    random: &mut dyn Random,
) -> Result<(), FieldErrors> {
    if spec.identity.as_deref() != Some(identity_kinds::SYSTEM_ASSIGNED) {
        return Ok(());
    }
    let formerly = spec.role_assignment_name.clone().filter(|name| !name.is_empty());
    let role = spec.system_assigned_identity_role.get_or_insert_default();
    let named = role.name.as_deref().is_some_and(|name| !name.is_empty());
    // Both at once is wrong, and is shown as it is.
    if named && formerly.is_some() {
        return Ok(());
    }
    if !named {
        role.name = Some(formerly.unwrap_or_else(|| random.guid()));
        spec.role_assignment_name = None;
    }
    let whole = [&role.scope, &role.definition_id]
        .iter()
        .all(|text| text.as_deref().is_some_and(|text| !text.is_empty()));
    match &context.subscription {
        _ if whole => Ok(()),
        Lookup::Found(subscription) => {
            contributor(role, subscription);
            Ok(())
        }
        Lookup::NotNeeded => Ok(()),
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
