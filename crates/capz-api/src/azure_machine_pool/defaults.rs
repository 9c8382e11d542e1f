//! Defaults of an AzureMachinePool.

use super::types::AzureMachinePoolSpec;
use crate::context::{Context, Random};
use crate::field_error::FieldErrors;
use crate::machine::{default_diagnostics, default_interfaces, default_role, keep_interfaces, keep_role};
use crate::text::{fill, is_set, keep as keep_text};

/// Sets the defaults of a pool; `old` is its previous version, whose defaults stay.
///
/// # Errors
/// The pool has an identity of its own, and its cluster's subscription is unknown.
pub fn set_defaults(
    spec: &mut AzureMachinePoolSpec,
    old: Option<&AzureMachinePoolSpec>,
    context: &Context,
    random: &mut dyn Random,
) -> Result<(), FieldErrors> {
    if let Some(old) = old {
        keep(spec, old);
    }
    let template = spec.template.get_or_insert_default();
    if !is_set(&template.ssh_public_key) {
        template.ssh_public_key = Some(random.ssh_public_key());
    }
    default_diagnostics(&mut template.diagnostics);
    default_interfaces(
        &mut template.network_interfaces,
        &mut template.subnet_name,
        &mut template.accelerated_networking,
    );
    let disk = template.os_disk.get_or_insert_default();
    fill(&mut disk.os_type, "Linux");
    fill(&mut disk.caching_type, "None");
    default_role(
        spec.identity.as_deref(),
        &mut spec.system_assigned_identity_role,
        &mut spec.role_assignment_name,
        context,
        random,
    )
}

/// Keeps previous defaults.
fn keep(spec: &mut AzureMachinePoolSpec, old: &AzureMachinePoolSpec) {
    keep_text(&mut spec.provider_id, &old.provider_id);
    if spec.provider_id_list.is_none() {
        spec.provider_id_list.clone_from(&old.provider_id_list);
    }
    keep_role(
        spec.identity.as_deref(),
        &mut spec.system_assigned_identity_role,
        &mut spec.role_assignment_name,
        old.system_assigned_identity_role.as_ref(),
    );
    let (Some(template), Some(old)) = (spec.template.as_mut(), old.template.as_ref()) else { return };
    keep_text(&mut template.ssh_public_key, &old.ssh_public_key);
    keep_interfaces(
        &mut template.network_interfaces,
        &mut template.subnet_name,
        &mut template.accelerated_networking,
        old.network_interfaces.as_deref().unwrap_or_default(),
    );
}
