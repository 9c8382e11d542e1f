//! The acts of the cluster that Azure manages: it has two pools, one of them grows.

use azure_simulator::view::Stand;
use serde_json::{Value, json};

use super::stage::Stage;

/// The cluster of the examples that Azure manages.
pub const MANAGED: &str = "quay";
/// Its pools, by the names of their MachinePools, with the numbers of machines in the examples.
const POOLS: [(&str, usize); 2] = [("quay-pool0", 2), (GROWING, 2)];
const GROWING: &str = "quay-pool1";
/// The number of machines of the growing pool after it has grown.
const GROWN: usize = 3;

const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
const AGENT_POOLS: &str = "Microsoft.ContainerService/managedClusters/agentPools";
/// The label of a node with the name of its pool in Azure.
const POOL_LABEL: &str = "kubernetes.azure.com/agentpool";

/// Waits until its pools have their nodes, and checks what the manager has written.
pub async fn ready(stage: &mut Stage) -> anyhow::Result<()> {
    stage
        .until(&format!("{MANAGED} has two pools of two nodes"), async |stage: &mut Stage| {
            Ok(POOLS.iter().all(|(pool, count)| is_ready(stage, pool, *count)).then_some(()))
        })
        .await?;
    stage.serve(MANAGED).await
}

/// Checks the cluster in Azure, and its kubeconfig.
pub fn claim(stage: &Stage) -> anyhow::Result<()> {
    let clusters = stage.in_azure(CLUSTERS);
    let host =
        clusters.first().and_then(|cluster| cluster["properties"]["fqdn"].as_str()).unwrap_or_default();
    let endpoint = stage.object("Cluster", MANAGED)["spec"]["controlPlaneEndpoint"]["host"].clone();
    let text = format!("{MANAGED} has the API server that Azure runs for it, {host}");
    stage.screen.claim(clusters.len() == 1 && endpoint == host, &text)?;
    let pools = stage.in_azure(AGENT_POOLS);
    let is_mode = |name: &str, mode: &str| {
        pools.iter().any(|pool| pool["name"] == name && pool["properties"]["mode"] == mode)
    };
    let both = pools.len() == 2 && is_mode("pool0", "System") && is_mode("pool1", "User");
    stage.screen.claim(both, "its pools are pool0 for the system and pool1 for users")?;
    // The manager writes this with the kubeconfig that Azure gives it.
    let cluster = stage.workload_cluster(MANAGED)?;
    let info = cluster.kubernetes.get("ConfigMap", "kube-public", "cluster-info");
    stage.screen.claim(info.is_some(), format!("the kubeconfig in Secret {MANAGED}-kubeconfig leads there"))
}

/// One of its pools grows by a machine.
pub async fn grow(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading(format_args!("kubectl scale machinepool {GROWING} --replicas {GROWN}"));
    stage.change("MachinePool", GROWING, json!({ "spec": { "replicas": GROWN } })).await?;
    stage
        .until("the pool has three nodes", async |stage: &mut Stage| {
            Ok(is_ready(stage, GROWING, GROWN).then_some(()))
        })
        .await?;
    let pools = stage.in_azure(AGENT_POOLS);
    let grown = pools.iter().any(|pool| pool["name"] == "pool1" && pool["properties"]["count"] == GROWN);
    stage.screen.claim(grown, "its third machine is a node, and ready; the other pool is as it was")
}

/// Whether a pool has this number of nodes, all of them ready, and its MachinePool knows them.
fn is_ready(stage: &Stage, pool: &str, count: usize) -> bool {
    let Ok(cluster) = stage.workload_cluster(MANAGED) else { return false };
    let in_azure = pool.rsplit('-').next().unwrap_or_default();
    let ids: Vec<Value> = cluster
        .kubernetes
        .list("Node")
        .iter()
        .map(|node| node.value())
        .filter(|node| node["metadata"]["labels"][POOL_LABEL] == in_azure)
        .filter(|node| {
            let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
        })
        .map(|node| node["spec"]["providerID"].clone())
        .collect();
    let known = stage.object("MachinePool", pool)["spec"]["providerIDList"].as_array().cloned();
    // The tree shows it, too.
    let title = format!("MachinePool {pool}");
    let is_shown = stage.tree().iter().any(|part| part.name == title && part.stand == Stand::Done);
    is_shown
        && ids.len() == count
        && known.is_some_and(|known| known.len() == count && ids.iter().all(|id| known.contains(id)))
}

#[cfg(test)]
mod tests {
    use simulated_cluster::manifests;

    use super::super::acts::EXAMPLES;

    /// The example is the flavor aks, but for the identity, which the examples share.
    #[test]
    fn the_example_is_the_flavor_with_values() {
        let flavor = include_str!("../../../../deploy/capz/templates/cluster-template-aks.yaml");
        let mut flavor = flavor.to_owned();
        for (variable, value) in [
            ("${AZURE_RESOURCE_GROUP:=${CLUSTER_NAME}}", "quay"),
            ("${CLUSTER_NAME}", "quay"),
            ("${AZURE_SSH_PUBLIC_KEY_B64:=\"\"}", "\"\""),
            ("${WORKER_MACHINE_COUNT:=2}", "2"),
            ("${CLUSTER_IDENTITY_NAME}", "azure"),
            ("${AZURE_LOCATION}", "westeurope"),
            ("${AZURE_SUBSCRIPTION_ID}", "5ca1ab1e-0000-4000-8000-000000000001"),
            ("${KUBERNETES_VERSION}", "v1.33.2"),
            ("${AZURE_NODE_MACHINE_TYPE}", "Standard_D2s_v3"),
        ] {
            flavor = flavor.replace(variable, value);
        }
        let mut flavor = manifests::read("aks", &flavor).unwrap();
        flavor.retain(|object| object["kind"] != "AzureClusterIdentity");
        let examples = EXAMPLES.iter().filter(|(file, _)| file.contains("/managed/"));
        let examples: Vec<_> =
            examples.flat_map(|(file, text)| manifests::read(file, text).unwrap()).collect();
        assert_eq!(examples, flavor);
    }
}
