//! Immutable members of an AzureManagedMachinePool: AKS cannot change them, a pool would have to be created again.

use serde_json::{Value, json};

use super::types::AzureManagedMachinePoolSpec;
use crate::field_error::Field;
use crate::immutable::{Fixed, Rule, check as check_rules};

const RULES: [Rule; 17] = [
    ("name", Fixed::Always),
    ("osType", Fixed::Always),
    ("sku", Fixed::Always),
    ("osDiskSizeGB", Fixed::Always),
    ("osDiskType", Fixed::Always),
    // The controller sets it to the control plane's.
    ("subnetName", Fixed::OnceSet),
    ("enableFIPS", Fixed::OnceChosen),
    ("enableEncryptionAtHost", Fixed::OnceChosen),
    ("availabilityZones", Fixed::Always),
    ("maxPods", Fixed::Always),
    ("scaleSetPriority", Fixed::Always),
    ("enableUltraSSD", Fixed::Always),
    ("enableNodePublicIP", Fixed::Always),
    ("nodePublicIPPrefixID", Fixed::Always),
    ("kubeletConfig", Fixed::Always),
    ("kubeletDiskType", Fixed::Always),
    ("linuxOSConfig", Fixed::Always),
];

/// Compares the new spec with the old one.
pub(super) fn check(new: &AzureManagedMachinePoolSpec, old: &AzureManagedMachinePoolSpec, spec: &Field<'_>) {
    check_rules(&RULES, &comparable(old), &comparable(new), spec);
}

/// The order of zones does not matter.
fn comparable(spec: &AzureManagedMachinePoolSpec) -> Value {
    let mut spec = spec.clone();
    if let Some(zones) = &mut spec.availability_zones {
        zones.sort();
    }
    json!(spec)
}
