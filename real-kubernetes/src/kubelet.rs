//! The kubelet's configuration.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::json;

/// Configures a kubelet to report each second, so that its absence is noticed soon, and not to use the machine's own
/// control groups: they may be of either version, and belong to other programs.
pub(crate) fn configuration(folder: &Path, address: Ipv4Addr) -> String {
    let configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "containerRuntimeEndpoint": format!("unix://{}/containerd.sock", folder.display()),
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        "nodeLeaseDurationSeconds": 4,
        "nodeStatusUpdateFrequency": "1s",
        "podLogsDir": folder.join("logs"),
        "resolvConf": "",
        // How soon a kubelet notices that a volume of its pod has grown.
        "syncFrequency": "3s",
    });
    // JSON is YAML.
    format!("{configuration:#}\n")
}
