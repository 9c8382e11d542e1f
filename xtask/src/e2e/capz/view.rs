//! What there is at a moment: objects in the management cluster, machines in Azure, and nodes of the workload cluster.

use kube::api::ListParams;
use serde_json::Value;

use super::objects::api;
use super::place::Place;

/// The version of Cluster API's own kinds.
pub const CORE: &str = "cluster.x-k8s.io/v1beta2";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io/v1beta2";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io/v1beta2";
const OURS: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
/// The cluster of the example.
pub const CLUSTER: &str = "harbour";
/// Its machine pool.
pub const POOL: &str = "harbour-spot";
const MACHINES: &str = "Microsoft.Compute/virtualMachines";

/// Kinds whose objects are looked at.
const KINDS: &[(&str, &str)] = &[
    (CORE, "Cluster"),
    (CORE, "Machine"),
    (OURS, "AzureCluster"),
    (OURS, "AzureMachine"),
    (OURS, "AzureMachinePool"),
    (OURS, "AzureMachinePoolMachine"),
];
/// Kinds that are shown beside them if something does not come true.
const MORE_KINDS: &[(&str, &str)] = &[
    (CORE, "MachineDeployment"),
    (CORE, "MachineSet"),
    (CORE, "MachinePool"),
    (CONTROL_PLANE, "KubeadmControlPlane"),
    (BOOTSTRAP, "KubeadmConfig"),
];

/// Objects by their kinds, and the rest.
pub struct View {
    objects: Vec<(&'static str, Value)>,
    /// The sizes of the virtual machines that Azure has.
    pub sizes: Vec<String>,
    ready_nodes: usize,
}

impl View {
    /// Looks at it.
    ///
    /// # Errors
    /// What the server says.
    pub async fn read(place: &Place) -> anyhow::Result<Self> {
        let machines = place.azure.azure.documents_of_type(MACHINES);
        let size = |it: &Value| it["properties"]["hardwareProfile"]["vmSize"].as_str().map(str::to_owned);
        let nodes = place.workloads.cluster(CLUSTER).map(|cluster| cluster.kubernetes.list("Node"));
        let nodes = nodes.unwrap_or_default();
        Ok(Self {
            objects: read(place, KINDS).await?,
            sizes: machines.iter().map(|it| size(it).unwrap_or_default()).collect(),
            ready_nodes: nodes.iter().filter(|node| is_true(node, "Ready")).count(),
        })
    }

    /// The objects of a kind.
    pub fn all<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |(one, _)| *one == kind).map(|(_, object)| object)
    }

    /// An object; Null where there is none.
    pub fn get(&self, kind: &str, name: &str) -> &Value {
        self.all(kind).find(|object| object["metadata"]["name"] == name).unwrap_or(&Value::Null)
    }

    /// So many machines of their own run, and so many of the pool: in the core's eyes, in ours, in Azure, and as nodes.
    pub fn runs(&self, own: usize, pooled: usize) -> bool {
        let pool = &self.get("AzureMachinePool", POOL)["status"];
        self.all("Machine").count() == own + pooled
            && self.all("Machine").all(|it| it["status"]["phase"] == "Running")
            && pool["ready"] == true
            && pool["replicas"] == pooled
            && self.all("AzureMachinePoolMachine").count() == pooled
            && self.all("AzureMachine").count() == own
            && self.all("AzureMachine").all(|it| is_true(it, "Ready"))
            && self.sizes.len() == own
            && self.ready_nodes == own + pooled
    }

    /// What is not true, for whoever looks for the reason.
    pub async fn words(&self, place: &Place) -> String {
        let more = read(place, MORE_KINDS).await.unwrap_or_default();
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
        lines.push(format!("machines in Azure: {}, ready nodes: {}", self.sizes.len(), self.ready_nodes));
        lines.join("\n")
    }
}

async fn read(
    place: &Place,
    kinds: &[(&'static str, &'static str)],
) -> anyhow::Result<Vec<(&'static str, Value)>> {
    let mut objects = Vec::new();
    for (version, kind) in kinds {
        let listed = api(&place.client, version, kind, Some("default")).list(&ListParams::default()).await?;
        for object in listed {
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
