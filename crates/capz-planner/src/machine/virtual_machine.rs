//! The virtual machine. It is created once; afterwards only its tags are enforced.

use capz_api::machine::{OsDisk, SecurityProfile};
use serde_json::{Value, json};

use super::scope::MachineScope;
use super::{availability_set, names};
use crate::document::text;
use crate::goal::{Goal, GoalError, Upkeep};
use crate::machine_inputs::MachineInputs;
use crate::profile::{self, PROVIDER_ID};
use crate::scope::reference;
use crate::terminal::Terminal;
use crate::{image, service, size_check};

/// Members of an existing machine that others can change.
const CHANGEABLE: [&str; 5] = [
    "/properties/hardwareProfile",
    "/properties/networkProfile",
    "/properties/securityProfile",
    "/properties/diagnosticsProfile",
    "/properties/additionalCapabilities",
];

/// Checks for declarations that Azure would always refuse.
pub(super) fn check(scope: &MachineScope<'_>, inputs: &MachineInputs) -> Result<(), Terminal> {
    size_check::check_machine(scope.spec, &inputs.size, scope.cluster.location(), scope.zone())
}

pub(super) fn goal(scope: &MachineScope<'_>, inputs: &MachineInputs) -> Result<Goal, GoalError> {
    let upkeep = if scope.has_provider_id() { Upkeep::Members(&["tags"]) } else { Upkeep::SingleTry };
    let goal = Goal::new(scope.vm(), &service::VIRTUAL_MACHINE, document(scope, inputs)?).held_to(upkeep);
    Ok(goal.reporting(&CHANGEABLE))
}

fn document(scope: &MachineScope<'_>, inputs: &MachineInputs) -> Result<Value, Terminal> {
    let (spec, cluster, name) = (scope.spec, &scope.cluster, scope.vm_name());
    let image = image::reference(&inputs.image).map_err(|error| Terminal::create(error.to_string()))?;
    let mut system = profile::os_profile(
        scope.os_type(),
        spec.ssh_public_key.as_deref(),
        &inputs.bootstrap,
        &inputs.password,
    )?;
    system["computerName"] = json!(name);
    system["allowExtensionOperations"] = json!(spec.disable_extension_operations != Some(true));
    let scale_set = spec.virtual_machine_scale_set_id.as_deref();
    let scale_set =
        scale_set.map(|id| id.strip_prefix(PROVIDER_ID).unwrap_or(id)).filter(|id| !id.is_empty());
    let reservation = text(&spec.capacity_reservation_group_id);
    let interfaces: Vec<Value> = scope
        .interfaces()
        .iter()
        .enumerate()
        .map(|(index, id)| json!({ "id": id.as_str(), "properties": { "primary": index == 0 } }))
        .collect();
    let mut properties = json!({
        "hardwareProfile": { "vmSize": spec.vm_size },
        "storageProfile": {
            "imageReference": image,
            "osDisk": profile::os_disk(spec.os_disk.as_ref(), Some(names::os_disk(&name))),
            "dataDisks": profile::data_disks(spec.data_disks.as_deref(), &name, true),
        },
        "osProfile": system,
        "networkProfile": { "networkInterfaces": interfaces },
        "securityProfile": spec.security_profile.as_ref().map(|it| security(it, spec.os_disk.as_ref())),
        "diagnosticsProfile": profile::diagnostics(spec.diagnostics.as_ref()),
        "additionalCapabilities":
            profile::capabilities(spec.additional_capabilities.as_ref(), spec.data_disks.as_deref()),
        "availabilitySet": availability_set::id(scope).as_ref().map(reference),
        "virtualMachineScaleSet": scale_set.map(|id| json!({ "id": id })),
        "capacityReservation": reservation.map(|id| json!({ "capacityReservationGroup": { "id": id } })),
    });
    if let Some(properties) = properties.as_object_mut() {
        properties.extend(profile::spot(spec.spot_vm_options.as_ref()).unwrap_or_default());
    }
    Ok(json!({
        "location": cluster.location(),
        "extendedLocation": cluster.extended_location(),
        "tags": scope.tags(Some(scope.role()), &name),
        "plan": image::plan(&inputs.image),
        "zones": scope.zone().map(|zone| [zone]),
        "identity": profile::identity(spec.identity.as_deref(), spec.user_assigned_identities.as_deref()),
        "properties": properties,
    }))
}

/// How the machine is protected from its host. Its requirements were checked before.
fn security(profile: &SecurityProfile, disk: Option<&OsDisk>) -> Value {
    let uefi = profile.uefi_settings.as_ref();
    let confidential = disk.and_then(OsDisk::security_encryption_type).is_some();
    // Except for confidential machines, a setting that is off is left out.
    let said = |setting: Option<bool>| setting.filter(|on| confidential || *on);
    let secure_boot = said(uefi.and_then(|uefi| uefi.secure_boot_enabled));
    let tpm = said(uefi.and_then(|uefi| uefi.v_tpm_enabled));
    let has_type = confidential || secure_boot.is_some() || tpm.is_some();
    json!({
        "encryptionAtHost": profile.encryption_at_host,
        "securityType": profile.security_type.as_ref().filter(|_| has_type),
        "uefiSettings": has_type.then(|| json!({ "secureBootEnabled": secure_boot, "vTpmEnabled": tpm })),
    })
}
