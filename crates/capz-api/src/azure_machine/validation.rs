//! Validation of an AzureMachine: of a new one, and of changes.

use azure_types::ResourceId;

use super::defaults::completed_as;
use super::immutable;
use super::types::AzureMachineSpec;
use crate::field_error::{FieldErrors, Path};
use crate::machine::{
    check_confidential, check_data_disks, check_diagnostics, check_image, check_interfaces, check_os_disk,
    check_role, check_ssh_key, check_user_assigned,
};

/// Validates a machine; `old` is its previous version. An existing machine is not validated again: only its immutable
/// members are checked.
pub fn validate(new: &AzureMachineSpec, old: Option<&AzureMachineSpec>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    match old {
        Some(old) => immutable::check(new, &completed_as(new, old, true), &mut errors),
        None => {
            check(new, &Path::new("spec"), &mut errors);
            check_role(
                new.identity.as_deref(),
                new.system_assigned_identity_role.as_ref(),
                new.role_assignment_name.as_deref(),
                &Path::new("spec"),
                &mut errors,
            );
        }
    }
    errors
}

/// Validates the parts that machines and templates of machines share. `path` is that of the machine.
pub(super) fn check(spec: &AzureMachineSpec, path: &Path, errors: &mut FieldErrors) {
    check_image(spec.image.as_ref(), &path.child("image"), errors);
    check_os_disk(spec.os_disk.as_ref(), &path.child("osDisk"), errors);
    check_confidential(spec.os_disk.as_ref(), spec.security_profile.as_ref(), path, errors);
    check_ssh_key(spec.ssh_public_key.as_deref(), &path.child("sshPublicKey"), errors);
    check_user_assigned(
        spec.identity.as_deref(),
        spec.user_assigned_identities.as_deref(),
        &path.child("userAssignedIdentities"),
        errors,
    );
    check_data_disks(spec.data_disks.as_deref(), &path.child("dataDisks"), errors);
    check_diagnostics(spec.diagnostics.as_ref(), &path.child("diagnostics"), errors);
    check_interfaces(
        spec.network_interfaces.as_deref(),
        spec.subnet_name.as_deref(),
        spec.accelerated_networking,
        path,
        errors,
    );
    check_id(
        spec.capacity_reservation_group_id.as_deref(),
        None,
        &path.child("capacityReservationGroupID"),
        errors,
    );
    check_id(
        spec.virtual_machine_scale_set_id.as_deref(),
        Some("Microsoft.Compute/virtualMachineScaleSets"),
        &path.child("virtualMachineScaleSetID"),
        errors,
    );
    if spec.disable_extension_operations == Some(true)
        && spec.vm_extensions.as_ref().is_some_and(|extensions| !extensions.is_empty())
    {
        errors.forbidden(
            &path.child("vmExtensions"),
            "VMExtensions must be empty when DisableExtensionOperations is true",
        );
    }
}

/// Validates a member with the ID of a resource, of this type if one is given.
fn check_id(id: Option<&str>, resource_type: Option<&str>, path: &Path, errors: &mut FieldErrors) {
    let Some(id) = id else { return };
    let fits = ResourceId::parse(id)
        .is_ok_and(|id| resource_type.is_none_or(|wanted| id.resource_type().eq_ignore_ascii_case(wanted)));
    if !fits {
        let wanted = resource_type.unwrap_or("NAMESPACE/TYPE");
        errors.invalid(
            path,
            id,
            format_args!(
                "must be the id of a resource: /subscriptions/ID/resourceGroups/NAME/providers/{wanted}/NAME"
            ),
        );
    }
}
