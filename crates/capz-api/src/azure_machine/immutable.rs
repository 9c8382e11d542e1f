//! Immutable members of an AzureMachine: Azure cannot change them, or the machine would have to be created again, which
//! its owner decides.

use serde_json::{Value, json};

use super::types::AzureMachineSpec;
use crate::field_error::{FieldErrors, Path};
use crate::immutable::{Fixed, Rule, at, check as check_rules};

const RULES: [Rule; 20] = [
    // It contains the name of the machine: with another one the existing machine would be abandoned.
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

/// Compares the new spec with the old one.
pub(super) fn check(new: &AzureMachineSpec, old: &AzureMachineSpec, errors: &mut FieldErrors) {
    let (new_value, old_value) = (json!({ "spec": new }), json!({ "spec": old }));
    check_rules(&RULES, &old_value, &new_value, errors);
    // `false` is a choice here, not an absent value.
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

/// The controller sets the first interface's subnet, and moves values of deprecated members.
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
