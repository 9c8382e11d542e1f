//! What of an AzureMachine cannot be changed: Azure has no way to, or the machine would have to be made again, which its owner
//! decides.

use serde_json::{Value, json};

use super::AzureMachineSpec;
use crate::field_error::{FieldErrors, Path};
use crate::immutable::{Fixed, Rule, at, check as check_rules};

const RULES: [Rule; 20] = [
    // The name of the machine is read from it: with another one the machine that is there would belong to no object.
    ("spec.providerID", Fixed::OnceSet),
    ("spec.failureDomain", Fixed::OnceSet),
    ("spec.image", Fixed::Always),
    ("spec.identity", Fixed::Always),
    ("spec.systemAssignedIdentityRole", Fixed::Always),
    ("spec.userAssignedIdentities", Fixed::Always),
    ("spec.roleAssignmentName", Fixed::Always),
    ("spec.osDisk", Fixed::Always),
    ("spec.dataDisks", Fixed::Always),
    ("spec.sshPublicKey", Fixed::Always),
    ("spec.allocatePublicIP", Fixed::Always),
    ("spec.enableIPForwarding", Fixed::Always),
    ("spec.spotVMOptions", Fixed::Always),
    ("spec.securityProfile", Fixed::Always),
    ("spec.capacityReservationGroupID", Fixed::Always),
    ("spec.virtualMachineScaleSetID", Fixed::Always),
    ("spec.disableExtensionOperations", Fixed::Always),
    ("spec.diagnostics", Fixed::OnceSet),
    ("spec.acceleratedNetworking", Fixed::OnlyCleared),
    ("spec.subnetName", Fixed::OnlyCleared),
];

/// Compares what it shall be with what it was.
pub(super) fn check(new: &AzureMachineSpec, old: &AzureMachineSpec, errors: &mut FieldErrors) {
    let (new_value, old_value) = (json!({ "spec": new }), json!({ "spec": old }));
    check_rules(&RULES, &old_value, &new_value, errors);
    // `false` is a choice here, and no absence.
    if old.disable_vm_bootstrap_extension.is_some()
        && old.disable_vm_bootstrap_extension != new.disable_vm_bootstrap_extension
    {
        errors.invalid(
            &Path::new("spec.disableVMBootstrapExtension"),
            json!(new.disable_vm_bootstrap_extension),
            "field is immutable",
        );
    }
    check_interfaces(&old_value, &new_value, errors);
}

/// The controller completes the first interface's subnet, and moves what was said in members that came before.
fn check_interfaces(old: &Value, new: &Value, errors: &mut FieldErrors) {
    let member = "spec.networkInterfaces";
    let (before, now) = (at(old, member), at(new, member));
    if before.is_none() || before == now {
        return;
    }
    let mut completed = before.cloned().unwrap_or_default();
    if let Some(first) = completed.get_mut(0).and_then(Value::as_object_mut)
        && first.get("subnetName").and_then(Value::as_str).unwrap_or_default().is_empty()
        && let Some(subnet) = now.and_then(|now| now.get(0)?.get("subnetName"))
    {
        first.insert("subnetName".to_owned(), subnet.clone());
    }
    if now != Some(&completed) {
        errors.invalid(&Path::new(member), now.cloned().unwrap_or_default(), "field is immutable");
    }
}
