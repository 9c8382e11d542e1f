//! What an AzureMachine is that did not say all of it.

use super::AzureMachineSpec;
use crate::context::{Context, Random};
use crate::field_error::FieldErrors;
use crate::machine::{OsDisk, default_data_disks, default_diagnostics, default_interfaces, default_role};

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
    default_role(
        spec.identity.as_deref(),
        &mut spec.system_assigned_identity_role,
        &mut spec.role_assignment_name,
        context,
        random,
    )
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
    let ephemeral = spec.os_disk.as_ref().is_some_and(OsDisk::is_ephemeral);
    if let Some(spot) = &mut spec.spot_vm_options
        && spot.eviction_policy.is_none()
    {
        spot.eviction_policy = Some(if ephemeral { "Delete" } else { "Deallocate" }.to_owned());
    }
}
