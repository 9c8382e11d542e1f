//! The objects of a cluster that Azure manages, as Cluster API's core leaves them, after admission.

use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};

use super::objects::{
    Application, CLUSTER_NAME, CORE, IDENTITY, NAMESPACE, OURS, VERSION, admit, owner_reference,
};

/// A Cluster with its AzureManagedControlPlane, AzureManagedCluster and node pools of two machines, the first of which
/// is a System pool.
pub fn cluster(
    kubernetes: &Kubernetes,
    application: &Application<'_>,
    name: &str,
    pools: usize,
) -> anyhow::Result<()> {
    let reference =
        |kind: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name });
    let owner = kubernetes.create(json!({
        "apiVersion": CORE, "kind": "Cluster",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "clusterNetwork": { "services": { "cidrBlocks": ["192.168.0.0/16"] } },
            "controlPlaneRef": reference("AzureManagedControlPlane"),
            "infrastructureRef": reference("AzureManagedCluster"),
        },
    }))?;
    let ours = |kind: &str, owner: Value, name: &str, cluster: &str, spec: Value| {
        json!({
            "apiVersion": OURS, "kind": kind,
            "metadata": { "name": name, "namespace": NAMESPACE, "labels": { (CLUSTER_NAME): cluster },
                "ownerReferences": [owner] },
            "spec": spec,
        })
    };
    let owner = owner_reference("Cluster", &owner);
    let spec = json!({
        "location": "eastus", "resourceGroupName": name, "version": VERSION,
        "subscriptionID": application.subscription,
        "identityRef": { "kind": "AzureClusterIdentity", "name": IDENTITY, "namespace": NAMESPACE },
    });
    // The pools come first: Azure creates a cluster with its pools in one write.
    for index in 0..pools {
        let pool = pool_name(name, index);
        let owner = kubernetes.create(json!({
            "apiVersion": CORE, "kind": "MachinePool",
            "metadata": { "name": pool, "namespace": NAMESPACE, "labels": { (CLUSTER_NAME): name } },
            "spec": { "clusterName": name, "replicas": 2, "template": { "spec": {
                "clusterName": name, "version": VERSION, "bootstrap": { "dataSecretName": "" },
                "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "AzureManagedMachinePool", "name": pool } } } },
        }))?;
        let mode = if index == 0 { "System" } else { "User" };
        let spec = json!({ "name": format!("pool{index}"), "sku": "Standard_D2s_v3", "mode": mode });
        let object =
            ours("AzureManagedMachinePool", owner_reference("MachinePool", &owner), &pool, name, spec);
        admit(kubernetes, application, "AzureManagedMachinePool", object)?;
    }
    let object = ours("AzureManagedControlPlane", owner.clone(), name, name, spec);
    admit(kubernetes, application, "AzureManagedControlPlane", object)?;
    let object = ours("AzureManagedCluster", owner, name, name, json!({}));
    admit(kubernetes, application, "AzureManagedCluster", object)
}

/// The name of a cluster's pool.
pub fn pool_name(cluster: &str, index: usize) -> String {
    format!("{cluster}-pool{index}")
}
