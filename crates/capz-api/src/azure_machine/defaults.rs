//! Defaults of an AzureMachine.

use super::types::AzureMachineSpec;
use crate::context::{Context, Random};
use crate::field_error::FieldErrors;
use crate::machine::{
    OsDisk, default_data_disks, default_diagnostics, default_interfaces, default_role, keep_interfaces,
    keep_role,
};
use crate::text::{is_set, keep as keep_text};

/// Sets the defaults of a machine; `old` is its previous version, whose defaults stay.
///
/// # Errors
/// The machine has an identity of its own, and its cluster's subscription is unknown.
pub fn set_defaults(
    spec: &mut AzureMachineSpec,
    old: Option<&AzureMachineSpec>,
    context: &Context,
    random: &mut dyn Random,
) -> Result<(), FieldErrors> {
    if let Some(old) = old {
        keep(spec, old);
        keep_text(&mut spec.provider_id, &old.provider_id);
    }
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

/// Keeps previous defaults, of a machine or a template of machines.
pub(super) fn keep(spec: &mut AzureMachineSpec, old: &AzureMachineSpec) {
    keep_text(&mut spec.ssh_public_key, &old.ssh_public_key);
    keep_interfaces(
        &mut spec.network_interfaces,
        &mut spec.subnet_name,
        &mut spec.accelerated_networking,
        old.network_interfaces.as_deref().unwrap_or_default(),
    );
    keep_role(
        spec.identity.as_deref(),
        &mut spec.system_assigned_identity_role,
        &mut spec.role_assignment_name,
        old.system_assigned_identity_role.as_ref(),
    );
}

/// Defaults that machines and templates of machines share.
pub(super) fn set_common_defaults(spec: &mut AzureMachineSpec, random: &mut dyn Random) {
    if !is_set(&spec.ssh_public_key) {
        spec.ssh_public_key = Some(random.ssh_public_key());
    }
    default_data_disks(spec.data_disks.as_mut());
    default_interfaces(&mut spec.network_interfaces, &mut spec.subnet_name, &mut spec.accelerated_networking);
}

/// A machine with its disk on the host cannot be started again after an eviction.
fn set_eviction_policy(spec: &mut AzureMachineSpec) {
    let ephemeral = spec.os_disk.as_ref().is_some_and(OsDisk::is_ephemeral);
    if let Some(spot) = &mut spec.spot_vm_options
        && spot.eviction_policy.is_none()
    {
        spot.eviction_policy = Some(if ephemeral { "Delete" } else { "Deallocate" }.to_owned());
    }
}

/// The older one of two, with the defaults of the newer one: objects that were stored before a default existed compare
/// equal. In a template, defaults that depend on a single machine stay unset.
pub(super) fn completed_as(
    new: &AzureMachineSpec,
    old: &AzureMachineSpec,
    is_machine: bool,
) -> AzureMachineSpec {
    /// The key of the newer one, for an older one without a key.
    struct SameKey(String);
    impl Random for SameKey {
        fn guid(&mut self) -> String {
            String::new()
        }
        fn ssh_public_key(&mut self) -> String {
            self.0.clone()
        }
    }
    let mut completed = old.clone();
    if new != old {
        set_common_defaults(&mut completed, &mut SameKey(new.ssh_public_key.clone().unwrap_or_default()));
        if is_machine {
            set_eviction_policy(&mut completed);
        }
    }
    completed
}
