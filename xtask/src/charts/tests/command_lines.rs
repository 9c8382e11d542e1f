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

/// The arguments of a container, with the values of its environment as the kubelet sets them in: what a field of the pod gives is the
/// node's name.
pub(super) fn arguments(container: &Value) -> Vec<String> {
    let variables = container["env"].as_array().into_iter().flatten();
    let variables: Vec<(String, &str)> = variables
        .map(|one| {
            (format!("$({})", one["name"].as_str().unwrap()), one["value"].as_str().unwrap_or("node-1"))
        })
        .collect();
    let filled = |argument: &Value| {
        let text = argument.as_str().expect("an argument is a text").to_owned();
        variables.iter().fold(text, |text, (name, value)| text.replace(name, value))
    };
    container["args"].as_array().into_iter().flatten().map(filled).collect()
}

/// Why a driver refuses a command line.
macro_rules! of_driver {
    ($driver:ident, $line:expr) => {
        match $driver::flags::parse($line.map(Into::into)) {
            Ok($driver::flags::Start::Driver(line)) => {
                line.problems().iter().map(ToString::to_string).collect()
            }
            other => vec![format!("{other:?}")],
        }
    };
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
        "azuredisk" => of_driver!(azuredisk_csi_driver, line()),
        "azurefile" => of_driver!(azurefile_csi_driver, line()),
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

fn node_manager(arguments: Vec<String>) -> Vec<String> {
    match cloud_node_manager::flags::parse(arguments) {
        Ok(_) => Vec::new(),
        Err(problem) => vec![problem.to_string()],
    }
}
