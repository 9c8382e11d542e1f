//! What a user does, and what must come of it.

use std::time::Duration;

use anyhow::{bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::objects::{api, create, merge, read_all};
use super::place::{CLIENT_SECRET, Place};
use crate::print;
use crate::program::{Program, root};

const CORE: &str = "cluster.x-k8s.io/v1beta2";
/// The cluster of the example.
const CLUSTER: &str = "harbour";
const MACHINES: &str = "Microsoft.Compute/virtualMachines";
/// The annotation that keeps `clusterctl move` waiting until an object is paused.
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Its machine pool, and how many machines that has.
const POOL: &str = "harbour-spot";
const POOLED: usize = 3;
/// The size to which workers are changed.
const OTHER_SIZE: &str = "Standard_D4s_v3";
/// How long a step may take.
const STEP: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);

/// A cluster comes, grows, shrinks, is rolled, rests, and goes without a trace.
///
/// # Errors
/// The first step that does not come true.
pub async fn play(place: &Place, programs: &mut [Program]) -> anyhow::Result<()> {
    let before = place.azure.azure.documents();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "azure-identity", "namespace": "default" },
        "data": { "clientSecret": STANDARD.encode(CLIENT_SECRET) } });
    create(&place.client, &secret).await?;
    for object in read_all(&root().join("examples/clusters"))? {
        create(&place.client, &object).await?;
    }
    let mut stage = Stage { place, programs };
    stage
        .until("the core knows that the network is there", |place| {
            let cluster = get(place, "Cluster", CLUSTER);
            condition(place, "AzureCluster", CLUSTER, "Ready")
                && cluster["status"]["initialization"]["infrastructureProvisioned"] == true
                && cluster["spec"]["controlPlaneEndpoint"]
                    == get(place, "AzureCluster", CLUSTER)["spec"]["controlPlaneEndpoint"]
        })
        .await?;
    stage.until("nine nodes are ready, and the core calls their machines running", |it| runs(it, 6)).await?;

    stage.scale("harbour-workers-1", 2).await?;
    stage.until("another machine comes", |place| runs(place, 7)).await?;
    stage.scale("harbour-workers-2", 0).await?;
    stage.until("one goes again", |place| runs(place, 6)).await?;

    let mut template = get(place, "AzureMachineTemplate", "harbour-workers");
    template["metadata"] = json!({ "name": "harbour-workers-larger", "namespace": "default" });
    template["spec"]["template"]["spec"]["vmSize"] = OTHER_SIZE.into();
    create(&place.client, &template).await?;
    let larger = json!({ "spec": { "template": { "spec": {
        "infrastructureRef": { "name": "harbour-workers-larger" } } } } });
    merge(&place.client, (CORE, "MachineDeployment"), "harbour-workers-1", &larger).await?;
    stage
        .until("two workers are replaced by larger ones", |place| {
            let machines = place.azure.azure.documents_of_type(MACHINES);
            let is_larger = |it: &&Value| it["properties"]["hardwareProfile"]["vmSize"] == OTHER_SIZE;
            machines.iter().filter(is_larger).count() == 2 && runs(place, 6)
        })
        .await?;

    let blocked =
        |place: &Place| !get(place, "AzureCluster", CLUSTER)["metadata"]["annotations"][BLOCK_MOVE].is_null();
    merge(&place.client, (CORE, "Cluster"), CLUSTER, &json!({ "spec": { "paused": true } })).await?;
    stage.until("the paused cluster may be moved", |place| !blocked(place)).await?;
    merge(&place.client, (CORE, "Cluster"), CLUSTER, &json!({ "spec": { "paused": false } })).await?;
    stage.until("it goes on", blocked).await?;

    let clusters = api(&place.client, CORE, "Cluster", Some("default"));
    clusters.delete(CLUSTER, &kube::api::DeleteParams::default()).await?;
    stage.until("the cluster is gone", |place| get(place, "Cluster", CLUSTER).is_null()).await?;
    for kind in ["AzureCluster", "AzureMachine", "AzureMachinePool", "AzureMachinePoolMachine", "Machine"] {
        let left = place.kubernetes.list(kind);
        ensure!(left.is_empty(), "{} objects of the kind {kind} are left", left.len());
    }
    let after = place.azure.azure.documents();
    ensure!(after == before, "Azure is not as before: {}", Value::from(after));
    Ok(())
}

struct Stage<'a> {
    place: &'a Place,
    programs: &'a mut [Program],
}

impl Stage<'_> {
    async fn scale(&self, deployment: &str, replicas: u64) -> anyhow::Result<()> {
        let patch = json!({ "spec": { "replicas": replicas } });
        merge(&self.place.client, (CORE, "MachineDeployment"), deployment, &patch).await
    }

    /// Waits until this holds.
    async fn until(&mut self, what: &str, holds: impl Fn(&Place) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !holds(self.place) {
            for program in self.programs.iter_mut() {
                program.must_run()?;
            }
            if begun.elapsed() > STEP {
                bail!("not within {} s: {what}\n{}", STEP.as_secs(), shown(self.place));
            }
            tokio::time::sleep(LOOK).await;
        }
        print::line(format_args!("  ok    {what} ({:.1} s)", begun.elapsed().as_secs_f64()));
        Ok(())
    }
}

/// As many machines as this run beside those of the pool: in the core's eyes, in ours, in Azure, and as nodes.
fn runs(place: &Place, count: usize) -> bool {
    let machines = place.kubernetes.list("Machine");
    let ours = place.kubernetes.list("AzureMachine");
    machines.len() == count + POOLED
        && machines.iter().all(|it| it["status"]["phase"] == "Running")
        && get(place, "AzureMachinePool", POOL)["status"]["ready"] == true
        && ours.len() == count
        && ours.iter().all(|it| condition(place, "AzureMachine", it.name(), "Ready"))
        && place.azure.azure.documents_of_type(MACHINES).len() == count
        && ready_nodes(place) == count + POOLED
}

fn ready_nodes(place: &Place) -> usize {
    let Some(cluster) = place.workloads.cluster(CLUSTER) else { return 0 };
    cluster.kubernetes.list("Node").iter().filter(|node| is_true(&node["status"], "Ready")).count()
}

/// An object in the namespace `default`; Null where there is none.
fn get(place: &Place, kind: &str, name: &str) -> Value {
    place.kubernetes.get(kind, "default", name).map(|object| object.value().clone()).unwrap_or_default()
}

fn condition(place: &Place, kind: &str, name: &str, condition: &str) -> bool {
    is_true(&get(place, kind, name)["status"], condition)
}

fn is_true(status: &Value, condition: &str) -> bool {
    let conditions = status["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|it| it["type"] == condition && it["status"] == "True"))
}

/// What objects say that is not true, for whoever looks for the reason.
fn shown(place: &Place) -> String {
    let kinds = [
        "Cluster",
        "AzureCluster",
        "KubeadmControlPlane",
        "MachineDeployment",
        "MachineSet",
        "Machine",
        "AzureMachine",
        "MachinePool",
        "AzureMachinePool",
        "AzureMachinePoolMachine",
        "KubeadmConfig",
    ];
    let mut lines = Vec::new();
    for object in kinds.iter().flat_map(|kind| place.kubernetes.list(kind)) {
        let (kind, name) = (object["kind"].as_str().unwrap_or_default(), object.name());
        let deleted = !object["metadata"]["deletionTimestamp"].is_null();
        lines.push(format!("{kind} {name}: phase {}, deleted: {deleted}", object["status"]["phase"]));
        for one in object["status"]["conditions"].as_array().into_iter().flatten() {
            if one["status"] != "True" {
                lines.push(format!(
                    "    {} {} {} {}",
                    one["type"], one["status"], one["reason"], one["message"]
                ));
            }
        }
    }
    lines.push(format!("ready nodes: {}", ready_nodes(place)));
    lines.join("\n")
}
