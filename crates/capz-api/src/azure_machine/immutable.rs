//! Immutable members of an AzureMachine: Azure cannot change them, or the machine would have to be created again, which
//! its owner decides.

use serde_json::{Value, json};

use super::types::AzureMachineSpec;
use crate::field_error::Field;
use crate::immutable::{Fixed, Rule, at, check as check_rules};

const RULES: [Rule; 21] = [
    // It contains the name of the machine: with another one the existing machine would be abandoned.
    ("providerID", Fixed::OnceSet),
    ("failureDomain", Fixed::OnceSet),
    ("image", Fixed::Always),
    ("identity", Fixed::Always),
    ("systemAssignedIdentityRole", Fixed::Always),
    ("userAssignedIdentities", Fixed::Always),
    ("roleAssignmentName", Fixed::Always),
    ("osDisk", Fixed::Always),
    ("dataDisks", Fixed::Always),
    ("sshPublicKey", Fixed::Always),
    ("allocatePublicIP", Fixed::Always),
    ("enableIPForwarding", Fixed::Always),
    ("spotVMOptions", Fixed::Always),
    ("securityProfile", Fixed::Always),
    ("capacityReservationGroupID", Fixed::Always),
    ("virtualMachineScaleSetID", Fixed::Always),
    ("disableExtensionOperations", Fixed::Always),
    ("disableVMBootstrapExtension", Fixed::OnceChosen),
    ("diagnostics", Fixed::OnceSet),
    ("acceleratedNetworking", Fixed::OnlyCleared),
    ("subnetName", Fixed::OnlyCleared),
];

/// Compares the new spec with the old one.
pub(super) fn check(new: &AzureMachineSpec, old: &AzureMachineSpec, spec: &Field<'_>) {
    let (new_value, old_value) = (json!(new), json!(old));
    check_rules(&RULES, &old_value, &new_value, spec);
    check_interfaces(&old_value, &new_value, spec);
}

/// The controller sets the first interface's subnet, and moves values of deprecated members.
fn check_interfaces(old: &Value, new: &Value, spec: &Field<'_>) {
    let member = "networkInterfaces";
    let (Some(before), now) = (at(old, member), at(new, member)) else { return };
    let mut completed = before.clone();
    if let Some(first) = completed.get_mut(0).and_then(Value::as_object_mut)
        && first.get("subnetName").and_then(Value::as_str).unwrap_or_default().is_empty()
        && let Some(subnet) = now.and_then(|now| now.get(0)?.get("subnetName"))
    {
        first.insert("subnetName".to_owned(), subnet.clone());
    }
    let is_changed = now != Some(before) && now != Some(&completed);
    spec.child(member).invalid_if(is_changed, now, "field is immutable");
}
