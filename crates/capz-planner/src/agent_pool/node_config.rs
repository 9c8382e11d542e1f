//! The configuration of kubelets and of the operating system of nodes, under Azure's names: those of the declaration,
//! but for a few kernel parameters.

use capz_api::azure_managed_machine_pool::{KubeletConfig, LinuxOsConfig};
use serde_json::{Map, Value};

/// Parts of names of kernel parameters that Azure spells in another way.
const SPELLED: [(&str, &str); 2] = [("TCP", "Tcp"), ("IPLocal", "IpLocal")];

pub(super) fn kubelet(declared: &KubeletConfig) -> Value {
    serde_json::to_value(declared).unwrap_or_default()
}

pub(super) fn linux(declared: &LinuxOsConfig) -> Value {
    let mut document = serde_json::to_value(declared).unwrap_or_default();
    if let Some(parameters) = document.get_mut("sysctls").and_then(Value::as_object_mut) {
        let spelled =
            |name: String| SPELLED.iter().fold(name, |name, (ours, azures)| name.replace(ours, azures));
        let named: Map<String, Value> =
            std::mem::take(parameters).into_iter().map(|(name, value)| (spelled(name), value)).collect();
        *parameters = named;
    }
    document
}
