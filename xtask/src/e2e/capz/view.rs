//! The state at a moment: objects in the management cluster, machines in Azure, and nodes of the workload cluster.

use std::collections::BTreeSet;

use kube::Client;
use kube::api::ListParams;
use serde_json::Value;

use super::objects::api;
use crate::world::World;

/// The version of Cluster API's own kinds.
pub const CORE: &str = "cluster.x-k8s.io/v1beta2";
/// The version of the control plane kinds.
pub const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io/v1beta2";
/// The version of the bootstrap kinds.
pub const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io/v1beta2";
/// The version of our kinds.
pub const OURS: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const MACHINES: &str = "Microsoft.Compute/virtualMachines";

/// Kinds whose objects are checked.
const KINDS: &[(&str, &str)] = &[
    (CORE, "Cluster"),
    (CORE, "Machine"),
    (CORE, "MachinePool"),
    (OURS, "AzureCluster"),
    (OURS, "AzureMachine"),
    (OURS, "AzureMachinePool"),
    (OURS, "AzureMachinePoolMachine"),
    (OURS, "AzureManagedCluster"),
    (OURS, "AzureManagedControlPlane"),
    (OURS, "AzureManagedMachinePool"),
    (OURS, "AzureASOManagedCluster"),
    (OURS, "AzureASOManagedControlPlane"),
    (OURS, "AzureASOManagedMachinePool"),
];
/// Additional kinds whose objects are printed if a step fails.
const MORE_KINDS: &[(&str, &str)] = &[
    (CORE, "MachineDeployment"),
    (CORE, "MachineSet"),
    (CONTROL_PLANE, "KubeadmControlPlane"),
    (BOOTSTRAP, "KubeadmConfig"),
];
/// Additional kinds whose objects are printed if the real core serves them.
const CORES_OWN: &[(&str, &str)] = &[(CORE, "MachineHealthCheck"), (CORE, "ClusterClass")];

/// The state at a moment: objects by kind, machines and nodes.
pub struct View {
    objects: Vec<(&'static str, Value)>,
    /// The virtual machines in Azure that are part of no scale set.
    machines: Vec<Value>,
    ready_nodes: usize,
}

impl View {
    /// Reads the state.
    ///
    /// # Errors
    /// The server's error.
    pub async fn read(place: &World, client: &Client) -> anyhow::Result<Self> {
        let mut machines = place.azure.azure.documents_of_type(MACHINES);
        machines.retain(|it| it["properties"]["virtualMachineScaleSet"].is_null());
        let clusters = place.workloads.clusters();
        let nodes = clusters.iter().flat_map(|cluster| cluster.kubernetes.list("Node"));
        let ready_nodes = nodes.filter(|node| is_true(node, "Ready")).count();
        Ok(Self { objects: read(client, KINDS).await?, machines, ready_nodes })
    }

    /// The objects of a kind.
    pub fn all<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |(one, _)| *one == kind).map(|(_, object)| object)
    }

    /// An object, or `Null` if it does not exist.
    pub fn get(&self, kind: &str, name: &str) -> &Value {
        self.all(kind).find(|object| object["metadata"]["name"] == name).unwrap_or(&Value::Null)
    }

    /// The names of all objects of a kind.
    pub fn names(&self, kind: &str) -> BTreeSet<String> {
        self.all(kind).filter_map(|it| it["metadata"]["name"].as_str()).map(str::to_owned).collect()
    }

    /// The Machines with this label.
    pub fn machines<'a>(&'a self, label: &'a str, value: &'a str) -> impl Iterator<Item = &'a Value> {
        self.all("Machine").filter(move |it| it["metadata"]["labels"][label] == value)
    }

    /// The number of standalone machines of this size in Azure.
    pub fn of_size(&self, size: &str) -> usize {
        self.machines.iter().filter(|it| it["properties"]["hardwareProfile"]["vmSize"] == size).count()
    }

    /// Whether exactly so many standalone machines and so many machines of pools run, according to the core's objects,
    /// ours, Azure, and the nodes.
    pub fn runs(&self, own: usize, pooled: usize) -> bool {
        let replicas = self.all("AzureMachinePool").map(|pool| pool["status"]["replicas"].as_u64());
        self.all("Machine").count() == own + pooled
            && self.all("Machine").all(|it| it["status"]["phase"] == "Running")
            && self.all("AzureMachinePool").all(|pool| pool["status"]["ready"] == true)
            && replicas.map(Option::unwrap_or_default).sum::<u64>() == pooled as u64
            && self.all("AzureMachinePoolMachine").count() == pooled
            && self.all("AzureMachine").count() == own
            && self.all("AzureMachine").all(|it| is_true(it, "Ready"))
            && self.machines.len() == own
            && self.ready_nodes == own + pooled
    }

    /// A description of the state, for debugging.
    pub async fn words(&self, client: &Client) -> String {
        let mut more = read(client, MORE_KINDS).await.unwrap_or_default();
        more.extend(read(client, CORES_OWN).await.unwrap_or_default());
        let mut lines = Vec::new();
        for (kind, object) in self.objects.iter().chain(&more) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let deleted = !object["metadata"]["deletionTimestamp"].is_null();
            let (phase, replicas) = (&object["status"]["phase"], &object["status"]["replicas"]);
            lines.push(format!("{kind} {name}: phase {phase}, replicas {replicas}, deleted: {deleted}"));
            for one in object["status"]["conditions"].as_array().into_iter().flatten() {
                if one["status"] != "True" {
                    lines.push(format!(
                        "    {} {} {} {}",
                        one["type"], one["status"], one["reason"], one["message"]
                    ));
                }
            }
        }
        lines.push(format!("machines in Azure: {}, ready nodes: {}", self.machines.len(), self.ready_nodes));
        lines.join("\n")
    }
}

async fn read(
    client: &Client,
    kinds: &[(&'static str, &'static str)],
) -> anyhow::Result<Vec<(&'static str, Value)>> {
    let mut objects = Vec::new();
    for (version, kind) in kinds {
        let all = api(client, version, kind, Some("default"));
        let listed = match all.list(&ListParams::default()).await {
            // An idle connection may just have been closed by the server.
            Err(kube::Error::Service(_)) => all.list(&ListParams::default()).await,
            listed => listed,
        };
        for object in listed? {
            objects.push((*kind, serde_json::to_value(object)?));
        }
    }
    Ok(objects)
}

/// Whether a condition of an object is true.
pub fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|it| it["type"] == condition && it["status"] == "True"))
}
