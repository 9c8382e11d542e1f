//! The flags that charts give, read by the programs' own command lines.

use cloud_controller_manager::flags::parse;
use serde_json::Value;

use super::Objects;

/// Why programs refuse to start with the arguments that these objects give them.
pub(super) fn refusals(objects: &Objects) -> Vec<String> {
    let all: Vec<&Value> = objects.values().flat_map(containers).collect();
    let without_port = |container: &&&Value| {
        let ports = container["ports"].as_array();
        ports.into_iter().flatten().any(|port| port["containerPort"] == 0)
    };
    let without = all.iter().filter(without_port).map(|one| format!("{} has a port 0", one["name"]));
    all.iter().flat_map(|container| refused_by_program(container)).chain(without).collect()
}

fn containers(object: &Value) -> Vec<&Value> {
    let spec = &object["spec"]["template"]["spec"];
    ["containers", "initContainers"]
        .iter()
        .flat_map(|key| spec[*key].as_array().into_iter().flatten())
        .collect()
}

/// The arguments of a container.
pub(super) fn arguments(container: &Value) -> Vec<String> {
    let all = container["args"].as_array().into_iter().flatten();
    all.map(|argument| argument.as_str().expect("an argument is a text").replace("$(NODE_NAME)", "node-1"))
        .collect()
}

fn refused_by_program(container: &Value) -> Vec<String> {
    let arguments = arguments(container);
    let line = || std::iter::once("program".to_owned()).chain(arguments.iter().cloned());
    let name = container["command"][0].as_str().or(container["name"].as_str()).unwrap();
    match name.rsplit('/').next().unwrap() {
        "cloud-controller-manager" => match parse(line().map(Into::into)) {
            Ok(line) => line.problems().iter().map(ToString::to_string).collect(),
            Err(exit) => vec![format!("{exit:?}")],
        },
        "cloud-node-manager" => node_manager(arguments.clone()),
        "azuredisk" => unknown(&arguments, &OF_DISK_DRIVER),
        "azurefile" => unknown(&arguments, &OF_FILE_DRIVER),
        // It makes a folder.
        "powershell.exe" if arguments.is_empty() => Vec::new(),
        // Behind a script that gives it the rest of its arguments, each in quotes.
        "powershell.exe" => {
            let rest = arguments.iter().skip(1);
            node_manager(rest.map(|argument| argument.trim_matches('\'').to_owned()).collect())
        }
        "manager" => match capz_controller_manager::flags::parse(line().map(Into::into)) {
            Ok(capz_controller_manager::flags::Start::Manager(line)) => {
                line.problems().iter().map(ToString::to_string).collect()
            }
            other => vec![format!("{other:?}")],
        },
        "health-probe-proxy" => match health_probe_proxy::flags::Flags::parse(arguments.clone()) {
            Ok(_) => Vec::new(),
            Err(problem) => vec![format!("{problem:?}")],
        },
        "health-probe-proxy.exe" | "pause" | "acr-credential-provider" => Vec::new(),
        name if OF_OTHERS.contains(&name) => Vec::new(),
        other => vec![format!("{other} is no program of ours")],
    }
}

/// Programs of other projects.
const OF_OTHERS: [&str; 11] = [
    "csi-provisioner",
    "csi-attacher",
    "csi-snapshotter",
    "csi-resizer",
    "liveness-probe",
    "node-driver-registrar",
    "csi-node-driver-registrar.exe",
    "csi-snapshot-controller",
    "azurediskplugin.exe",
    "azurefileplugin.exe",
    "ccp-auto-thrust",
];

/// The flags of the disk driver that the chart gives.
const OF_DISK_DRIVER: [&str; 32] = [
    "allow-empty-cloud-config",
    "check-disk-lun-collision",
    "cloud-config-secret-name",
    "cloud-config-secret-namespace",
    "custom-user-agent",
    "disable-avset-nodes",
    "drivername",
    "enable-disk-online-resize",
    "enable-list-snapshots",
    "enable-list-volumes",
    "enable-otel-tracing",
    "enable-perf-optimization",
    "enable-traffic-manager",
    "endpoint",
    "force-detach-backoff",
    "get-node-info-from-labels",
    "get-nodeid-from-imds",
    "kube-api-burst",
    "kube-api-qps",
    "metrics-address",
    "nodeid",
    "remove-not-ready-taint",
    "reserved-data-disk-slot-num",
    "support-zone",
    "traffic-manager-port",
    "user-agent-suffix",
    "v",
    "vm-type",
    "vmss-cache-ttl-seconds",
    "vmss-detach-timeout-seconds",
    "volume-attach-limit",
    "wait-for-snapshot-ready",
];

/// The flags of the driver for file shares: those of section 4.9 of the facts about the drivers, and `--v`.
const OF_FILE_DRIVER: [&str; 24] = [
    "allow-empty-cloud-config",
    "allow-inline-volume-key-access-with-identity",
    "append-closetimeo-option",
    "azurefile-proxy-endpoint",
    "cloud-config-secret-name",
    "cloud-config-secret-namespace",
    "custom-user-agent",
    "drivername",
    "enable-azurefile-proxy",
    "enable-get-volume-stats",
    "enable-kata-cc-mount",
    "enable-vhd",
    "enable-volume-mount-group",
    "endpoint",
    "fsgroup-change-policy",
    "inline-volume-secret-authz",
    "kubeconfig",
    "metrics-address",
    "mount-permissions",
    "nodeid",
    "use-aznfs-for-nfs-mounts",
    "user-agent-suffix",
    "v",
    "vol-stats-cache-expire-in-minutes",
];

fn unknown(arguments: &[String], flags: &[&str]) -> Vec<String> {
    let is_unknown = |argument: &&String| {
        let name = argument.strip_prefix("--").and_then(|flag| flag.split_once('='));
        !name.is_some_and(|(name, _)| flags.contains(&name))
    };
    arguments
        .iter()
        .filter(is_unknown)
        .map(|argument| format!("{argument} is no flag of the driver"))
        .collect()
}

fn node_manager(arguments: Vec<String>) -> Vec<String> {
    match cloud_node_manager::flags::parse(arguments) {
        Ok(_) => Vec::new(),
        Err(problem) => vec![problem.to_string()],
    }
}
