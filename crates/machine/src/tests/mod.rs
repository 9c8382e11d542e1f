//! Cases of `docs/rules/nodes.md` about single machines, and their shared documents.

mod facts;
mod identity;

use azure_types::{ResourceId, ScaleSet, ScaleSetInstance, VirtualMachine};
use serde_json::json;

/// The id of a compute resource in the resource group of all cases.
fn compute(kind: &str, name: &str) -> ResourceId {
    ResourceId::group("subscription", "rg").resource("Microsoft.Compute", kind, name)
}

fn scale_set_id(name: &str) -> ResourceId {
    compute("virtualMachineScaleSets", name)
}

/// A scale set whose machines' names start with a prefix.
fn scale_set(name: &str, prefix: &str) -> ScaleSet {
    serde_json::from_value(json!({
        "id": scale_set_id(name), "name": name, "location": "westus",
        "properties": {"virtualMachineProfile": {"osProfile": {"computerNamePrefix": prefix}}},
    }))
    .unwrap()
}

/// A running instance of a uniform scale set.
fn instance(set: &str, number: u32) -> ScaleSetInstance {
    serde_json::from_value(json!({
        "id": scale_set_id(set).child("virtualMachines", &number.to_string()), "location": "westus",
        "instanceId": number.to_string(), "sku": {"name": "Standard_D4s_v5"}, "zones": ["1"],
        "properties": {
            "provisioningState": "Succeeded", "osProfile": {"computerName": format!("{set}{number:06}")},
            "instanceView": {"statuses": [{"code": "PowerState/running"}], "platformFaultDomain": 3},
        },
    }))
    .unwrap()
}

/// A running virtual machine, in a flexible scale set if one is named.
fn virtual_machine(name: &str, set: Option<&str>) -> VirtualMachine {
    let mut document = json!({
        "id": compute("virtualMachines", name), "name": name, "location": "westus2", "zones": ["1"],
        "properties": {
            "provisioningState": "Succeeded", "hardwareProfile": {"vmSize": "Basic_A0"},
            "osProfile": {"computerName": name},
            "instanceView": {"statuses": [{"code": "PowerState/running"}], "platformFaultDomain": 1},
        },
    });
    if let Some(set) = set {
        document["properties"]["virtualMachineScaleSet"] = json!({"id": scale_set_id(set)});
    }
    serde_json::from_value(document).unwrap()
}
