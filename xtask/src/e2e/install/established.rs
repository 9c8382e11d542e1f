//! A chart that renders the objects of the established chart, by the facts that are known of it: their names, labels,
//! selectors, commands and flags, its rights, and our images. A change of an image is all that such a release needs to run
//! our programs; `helm upgrade` to our chart changes the objects, too.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::program::root;

/// The facts of the newest versions.
const FACTS: &str = "tests/corpus/charts/established/cloud-provider-azure";

/// The verbs on each resource of the established roles.
const CONTROLLER_MANAGER_RULES: [(&str, &str, &[&str]); 11] = [
    ("", "events", &["create", "patch", "update"]),
    ("", "nodes", &["*"]),
    ("", "nodes/status", &["patch"]),
    ("", "services", &["list", "patch", "update", "watch"]),
    ("", "services/status", &["list", "patch", "update", "watch"]),
    ("", "serviceaccounts", &["create", "get", "list", "watch", "update"]),
    ("", "persistentvolumes", &["get", "list", "update", "watch"]),
    ("", "endpoints", &["create", "get", "list", "watch", "update"]),
    ("", "secrets", &["get", "list", "watch"]),
    ("coordination.k8s.io", "leases", &["get", "create", "update"]),
    ("discovery.k8s.io", "endpointslices", &["get", "list", "watch"]),
];
const NODE_MANAGER_RULES: [(&str, &str, &[&str]); 2] =
    [("", "nodes", &["watch", "list", "get", "update", "patch"]), ("", "nodes/status", &["patch"])];

/// What differs between clusters.
pub struct Settings<'a> {
    /// The registry of the images, and their tag.
    pub registry: &'a str,
    pub tag: &'a str,
    pub cluster_name: &'a str,
    /// Environment variables of the controller manager.
    pub environment: &'a Value,
}

/// Writes the chart into a folder, and returns its path.
///
/// # Errors
/// The facts cannot be read, or the folder cannot be written.
pub fn write(folder: &Path, settings: &Settings<'_>) -> anyhow::Result<PathBuf> {
    let (version, facts) = newest()?;
    let chart = folder.join("established");
    let templates = chart.join("templates");
    std::fs::create_dir_all(&templates)?;
    let about = json!({"apiVersion": "v2", "name": "cloud-provider-azure", "version": version});
    std::fs::write(chart.join("Chart.yaml"), about.to_string())?;
    std::fs::write(chart.join("values.yaml"), "{}")?;
    for (number, fact) in facts["objects"].as_array().into_iter().flatten().enumerate() {
        let object = object(fact, settings).with_context(|| fact.to_string())?;
        std::fs::write(templates.join(format!("{number:02}.yaml")), object.to_string())?;
    }
    Ok(chart)
}

/// The newest version of the established chart whose facts are known.
fn newest() -> anyhow::Result<(String, Value)> {
    let mut newest: Option<(Vec<u64>, String, Value)> = None;
    for entry in std::fs::read_dir(root().join(FACTS)).context(FACTS)? {
        let facts: Value = serde_json::from_slice(&std::fs::read(entry?.path())?)?;
        for version in facts["versions"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let parts = version.split(['.', '+']).map(|part| part.parse().unwrap_or(0)).collect();
            if newest.as_ref().is_none_or(|(other, ..)| *other < parts) {
                newest = Some((parts, version.to_owned(), facts.clone()));
            }
        }
    }
    let (_, version, facts) = newest.with_context(|| format!("{FACTS} has no version"))?;
    Ok((version, facts))
}

fn rules(table: &[(&str, &str, &[&str])]) -> Value {
    let rule = |(group, resource, verbs): &(&str, &str, &[&str])| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    table.iter().map(rule).collect()
}

/// The object of a fact, completed to one that the API accepts.
fn object(fact: &Value, settings: &Settings<'_>) -> anyhow::Result<Value> {
    let (kind, name) = (fact["kind"].as_str().context("no kind")?, fact["name"].as_str().context("no name")?);
    let mut metadata = Map::new();
    for member in ["name", "namespace", "labels"] {
        if !fact[member].is_null() {
            metadata.insert(member.to_owned(), fact[member].clone());
        }
    }
    let is_of_nodes = name.contains("node-manager");
    let rbac = "rbac.authorization.k8s.io/v1";
    let rest = match kind {
        "ServiceAccount" => json!({"apiVersion": "v1"}),
        "ConfigMap" => json!({"apiVersion": "v1", "data": {}}),
        "ClusterRole" if is_of_nodes => json!({"apiVersion": rbac, "rules": rules(&NODE_MANAGER_RULES)}),
        "ClusterRole" => json!({"apiVersion": rbac, "rules": rules(&CONTROLLER_MANAGER_RULES)}),
        "ClusterRoleBinding" | "RoleBinding" => {
            let account = if is_of_nodes { "cloud-node-manager" } else { "cloud-controller-manager" };
            let role = if kind == "RoleBinding" { "Role" } else { "ClusterRole" };
            json!({
                "apiVersion": rbac,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": fact["roleRef"]},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}],
            })
        }
        "Deployment" | "DaemonSet" => workload(fact, name, settings),
        other => anyhow::bail!("{other} is not known here"),
    };
    let mut object = json!({"kind": kind, "metadata": metadata});
    if let (Value::Object(object), Value::Object(rest)) = (&mut object, rest) {
        object.extend(rest);
    }
    Ok(object)
}

fn workload(fact: &Value, name: &str, settings: &Settings<'_>) -> Value {
    let Settings { registry, tag, cluster_name, environment } = settings;
    let is_windows = name.ends_with("windows");
    let anywhere = json!([{"operator": "Exists"}]);
    let (image, command, arguments, env, selector, tolerations) = if name == "cloud-controller-manager" {
        let arguments = json!([
            "--allocate-node-cidrs=false",
            "--cloud-config=/etc/kubernetes/azure.json",
            "--cloud-provider=azure",
            "--cluster-cidr=10.244.0.0/16",
            format!("--cluster-name={cluster_name}"),
            "--configure-cloud-routes=false",
            "--controllers=*,-cloud-node",
            "--leader-elect=true",
            "--route-reconciliation-period=10s",
            "--secure-port=10268",
            "--v=2",
        ]);
        let master = json!({"node-role.kubernetes.io/control-plane": ""});
        let tolerations = json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
        (name, name, arguments, (*environment).clone(), master, tolerations)
    } else {
        let arguments = json!(["--node-name=$(NODE_NAME)", "--v=2"]);
        let node = json!([{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]);
        let system = json!({"kubernetes.io/os": if is_windows { "windows" } else { "linux" }});
        ("cloud-node-manager", "cloud-node-manager", arguments, node, system, anywhere)
    };
    let mounts = |kind: &str| -> Value {
        let mount = |name: &str, path: &str| match kind {
            "volumes" => json!({"name": name, "hostPath": {"path": path}}),
            _ => json!({"name": name, "mountPath": path, "readOnly": true}),
        };
        json!([mount("etc-kubernetes", "/etc/kubernetes"), mount("ssl-mount", "/etc/ssl")])
    };
    json!({
        "apiVersion": "apps/v1",
        "spec": {
            "selector": {"matchLabels": fact["selector"]},
            "template": {
                "metadata": {"labels": fact["podLabels"]},
                "spec": {
                    "serviceAccountName": fact["serviceAccount"],
                    "hostNetwork": true,
                    "priorityClassName": "system-node-critical",
                    "nodeSelector": selector,
                    "tolerations": tolerations,
                    "containers": [{
                        "name": name.trim_end_matches("-windows"),
                        "image": format!("{registry}/azure-{image}:{tag}"),
                        "imagePullPolicy": "IfNotPresent",
                        "command": [command],
                        "args": arguments,
                        "env": env,
                        "volumeMounts": mounts("volumeMounts"),
                    }],
                    "volumes": mounts("volumes"),
                },
            },
        },
    })
}
