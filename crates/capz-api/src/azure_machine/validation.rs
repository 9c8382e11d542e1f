//! Validation of an AzureMachine: of a new one, and of changes.

use azure_types::ResourceId;

use super::defaults::completed_as;
use super::immutable;
use super::types::AzureMachineSpec;
use crate::field_error::{Field, FieldErrors};
use crate::machine::{
    check_confidential, check_data_disks, check_diagnostics, check_image, check_interfaces, check_os_disk,
    check_role, check_ssh_key, check_user_assigned,
};

/// Validates a machine; `old` is its previous version. An existing machine is not validated again: only its immutable
/// members are checked.
pub fn validate(new: &AzureMachineSpec, old: Option<&AzureMachineSpec>) -> FieldErrors {
    FieldErrors::of(|object| {
        let field = object.child("spec");
        match old {
            Some(old) => immutable::check(new, &completed_as(new, old, true), &field),
            None => {
                check(new, &field);
                let role = new.system_assigned_identity_role.as_ref();
                check_role(new.identity.as_deref(), role, new.role_assignment_name.as_deref(), &field);
            }
        }
    })
}

/// Validates the parts that machines and templates of machines share.
pub(super) fn check(spec: &AzureMachineSpec, field: &Field<'_>) {
    check_image(spec.image.as_ref(), &field.child("image"));
    check_os_disk(spec.os_disk.as_ref(), &field.child("osDisk"));
    check_confidential(spec.os_disk.as_ref(), spec.security_profile.as_ref(), field);
    check_ssh_key(spec.ssh_public_key.as_deref(), &field.child("sshPublicKey"));
    check_user_assigned(spec.identity.as_deref(), spec.user_assigned_identities.as_deref(), field);
    check_data_disks(spec.data_disks.as_deref(), &field.child("dataDisks"));
    check_diagnostics(spec.diagnostics.as_ref(), &field.child("diagnostics"));
    check_interfaces(
        spec.network_interfaces.as_deref(),
        spec.subnet_name.as_deref(),
        spec.accelerated_networking,
        field,
    );
    let reservation = field.child("capacityReservationGroupID");
    check_id(spec.capacity_reservation_group_id.as_deref(), None, &reservation);
    let scale_sets = Some("Microsoft.Compute/virtualMachineScaleSets");
    let scale_set = field.child("virtualMachineScaleSetID");
    check_id(spec.virtual_machine_scale_set_id.as_deref(), scale_sets, &scale_set);
    let has_extensions = spec.vm_extensions.as_ref().is_some_and(|extensions| !extensions.is_empty());
    field.child("vmExtensions").forbidden_if(
        spec.disable_extension_operations == Some(true) && has_extensions,
        "VMExtensions must be empty when DisableExtensionOperations is true",
    );
}

/// Validates a member with the ID of a resource, of this type if one is given.
fn check_id(id: Option<&str>, resource_type: Option<&str>, field: &Field<'_>) {
    let Some(id) = id else { return };
    let fits = ResourceId::parse(id)
        .is_ok_and(|id| resource_type.is_none_or(|wanted| id.resource_type().eq_ignore_ascii_case(wanted)));
    let wanted = resource_type.unwrap_or("NAMESPACE/TYPE");
    field.invalid_if(
        !fits,
        id,
        format_args!(
            "must be the id of a resource: /subscriptions/ID/resourceGroups/NAME/providers/{wanted}/NAME"
        ),
    );
}
