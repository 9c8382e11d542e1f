//! The flavors `aks-topology` and `aks-aso-topology`, as Cluster API's topology controller expands them from their
//! classes: clones of templates, MachinePools, and patches whose values are templates with the names of built-in
//! variables.

use anyhow::Context as _;
use kube::Client;
use serde_json::{Value, json};

use super::topology::{CLUSTER_NAME, CreatedObjects, DRAWN, OWNED, reference, stored, text};

/// The label of a MachinePool with its name in the topology.
const POOL: &str = "topology.cluster.x-k8s.io/pool-name";

/// The flavor of the class of a flavor; `None` if the flavor has no topology.
pub fn class_of(flavor: &str) -> Option<&'static str> {
    match flavor {
        "aks-topology" => Some("aks-clusterclass"),
        "aks-aso-topology" => Some("aks-aso-clusterclass"),
        _ => None,
    }
}

/// Creates the class's templates, and returns what the controller creates from them for the Cluster.
///
/// # Errors
/// The server refuses a template, or one is missing.
pub async fn expanded(client: &Client, class: &[Value], cluster: &Value) -> anyhow::Result<Vec<Value>> {
    let kinds = match class.iter().any(|it| it["kind"] == "AzureASOManagedClusterTemplate") {
        true => [
            "AzureASOManagedClusterTemplate",
            "AzureASOManagedControlPlaneTemplate",
            "AzureASOManagedMachinePoolTemplate",
        ],
        false => [
            "AzureManagedClusterTemplate",
            "AzureManagedControlPlaneTemplate",
            "AzureManagedMachinePoolTemplate",
        ],
    };
    let patches =
        class.iter().find(|it| it["kind"] == "ClusterClass").map(|it| it["spec"]["patches"].clone());
    let patches = patches.context("there is no ClusterClass")?;
    let created =
        CreatedObjects { cluster: text(&cluster["metadata"]["name"]), stored: stored(client, class).await? };
    let topology = &cluster["spec"]["topology"];
    let version = text(&topology["version"]);
    let name = created.cluster.as_str();
    let patch = |object: &mut Value, place: &str, class: Option<&str>| -> anyhow::Result<()> {
        for patch in patches.as_array().into_iter().flatten() {
            let definition = &patch["definitions"][0];
            let resources = &definition["selector"]["matchResources"];
            let is_meant = match class {
                None => resources[place] == true,
                Some(class) => {
                    resources[place]["names"].as_array().is_some_and(|all| all.contains(&json!(class)))
                }
            };
            if is_meant {
                let value = text(&definition["jsonPatches"][0]["valueFrom"]["template"]);
                let value = value.replace("{{ .builtin.cluster.name }}", name);
                let value = value.replace("{{ .builtin.controlPlane.version }}", &version);
                object["spec"] = serde_saphyr::from_str(&value)?;
            }
        }
        Ok(())
    };

    let mut network = created.clone_of(kinds[0], "", name, &json!({}))?;
    patch(&mut network, "infrastructureCluster", None)?;
    let mut control_plane = created.clone_of(kinds[1], "control-plane", name, &json!({}))?;
    patch(&mut control_plane, "controlPlane", None)?;
    control_plane["spec"]["version"] = json!(version);
    let mut owner = cluster.clone();
    owner["spec"]["infrastructureRef"] = reference(&network);
    owner["spec"]["controlPlaneRef"] = reference(&control_plane);
    let mut objects = vec![owner, network, control_plane];
    for (number, wanted) in topology["workers"]["machinePools"].as_array().into_iter().flatten().enumerate() {
        let class = text(&wanted["class"]);
        let in_topology = text(&wanted["name"]);
        let (prefix, end) = (format!("{name}-{in_topology}"), format!("pool{number}"));
        let mut labels = json!({ POOL: in_topology });
        let mut pool = created.clone_of(kinds[2], &end, &prefix, &labels)?;
        patch(&mut pool, "machinePoolClass", Some(&class))?;
        let bootstrap = created.clone_of("KubeadmConfigTemplate", &end, &prefix, &labels)?;
        labels[CLUSTER_NAME] = json!(name);
        labels[OWNED] = json!("");
        let machine_pool = json!({
            "apiVersion": cluster["apiVersion"], "kind": "MachinePool",
            "metadata": { "name": format!("{prefix}-{DRAWN}"), "namespace": "default", "labels": labels },
            "spec": { "clusterName": name, "replicas": wanted["replicas"],
                "template": { "metadata": { "labels": labels }, "spec": { "clusterName": name, "version": version,
                    "bootstrap": { "configRef": reference(&bootstrap) }, "infrastructureRef": reference(&pool) } } },
        });
        objects.extend([pool, bootstrap, machine_pool]);
    }
    Ok(objects)
}
