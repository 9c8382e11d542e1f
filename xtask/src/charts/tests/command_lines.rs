//! The flags that charts give, read by the programs' own command lines.

use cloud_controller_manager::flags::parse;
use serde_json::Value;

use super::Objects;

/// Why programs refuse to start with the arguments that these objects give them.
pub(super) fn refusals(objects: &Objects) -> Vec<String> {
    objects.values().flat_map(containers).flat_map(refused_by_program).collect()
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
        other => vec![format!("{other} is no program of ours")],
    }
}

fn node_manager(arguments: Vec<String>) -> Vec<String> {
    match cloud_node_manager::flags::parse(arguments) {
        Ok(_) => Vec::new(),
        Err(problem) => vec![problem.to_string()],
    }
}
