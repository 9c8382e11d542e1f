//! Reads documents of machines, for several files.

use serde_json::Value;

/// The full type of machines in uniform scale sets.
pub(crate) const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// The host name of an instance, which is its node's name.
pub(crate) fn host_name(instance: &Value) -> Option<String> {
    Some(instance.pointer("/properties/osProfile/computerName")?.as_str()?.to_ascii_lowercase())
}
