//! What a user does, and what must come of it.

use std::time::Duration;

use anyhow::{bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::objects::{api, create, merge, read_all};
use super::place::{CLIENT_SECRET, Place};
use super::view::{CLUSTER, CORE, POOL, View, is_true};
use crate::print;
use crate::program::{Program, root};

/// The annotation that keeps `clusterctl move` waiting until an object is paused.
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// How many machines the example has in its pool.
const POOLED: usize = 3;
/// The size to which workers are changed.
const OTHER_SIZE: &str = "Standard_D4s_v3";
/// How long a step may take.
const STEP: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(200);

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
    let example = read_all(&root().join("examples/clusters"))?;
    for object in &example {
        create(&place.client, object).await?;
    }
    let mut stage = Stage { place, programs };
    stage
        .until("the core knows that the network is there", |view| {
            let (cluster, ours) = (view.get("Cluster", CLUSTER), view.get("AzureCluster", CLUSTER));
            is_true(ours, "Ready")
                && cluster["status"]["initialization"]["infrastructureProvisioned"] == true
                && cluster["spec"]["controlPlaneEndpoint"] == ours["spec"]["controlPlaneEndpoint"]
        })
        .await?;
    let nine = "nine nodes are ready, and the core calls their machines running";
    stage.until(nine, |view| view.runs(6, POOLED)).await?;

    stage.scale("MachineDeployment", "harbour-workers-1", 2).await?;
    stage.until("another machine comes", |view| view.runs(7, POOLED)).await?;
    stage.scale("MachineDeployment", "harbour-workers-2", 0).await?;
    stage.until("one goes again", |view| view.runs(6, POOLED)).await?;
    stage.scale("MachinePool", POOL, POOLED + 1).await?;
    stage.until("another machine comes to the pool", |view| view.runs(6, POOLED + 1)).await?;

    let mut template = example
        .into_iter()
        .find(|it| it["kind"] == "AzureMachineTemplate" && it["metadata"]["name"] == "harbour-workers")
        .unwrap_or_default();
    template["metadata"]["name"] = "harbour-workers-larger".into();
    template["spec"]["template"]["spec"]["vmSize"] = OTHER_SIZE.into();
    create(&place.client, &template).await?;
    let larger = json!({ "spec": { "template": { "spec": {
        "infrastructureRef": { "name": "harbour-workers-larger" } } } } });
    merge(&place.client, (CORE, "MachineDeployment"), "harbour-workers-1", &larger).await?;
    stage
        .until("two workers are replaced by larger ones", |view| {
            view.sizes.iter().filter(|size| *size == OTHER_SIZE).count() == 2 && view.runs(6, POOLED + 1)
        })
        .await?;

    let blocks =
        |view: &View| !view.get("AzureCluster", CLUSTER)["metadata"]["annotations"][BLOCK_MOVE].is_null();
    merge(&place.client, (CORE, "Cluster"), CLUSTER, &json!({ "spec": { "paused": true } })).await?;
    stage.until("the paused cluster may be moved", |view| !blocks(view)).await?;
    merge(&place.client, (CORE, "Cluster"), CLUSTER, &json!({ "spec": { "paused": false } })).await?;
    stage.until("it goes on", blocks).await?;

    let clusters = api(&place.client, CORE, "Cluster", Some("default"));
    clusters.delete(CLUSTER, &kube::api::DeleteParams::default()).await?;
    stage.until("the cluster is gone", |view| view.get("Cluster", CLUSTER).is_null()).await?;
    let left = View::read(place).await?;
    for kind in ["AzureCluster", "AzureMachine", "AzureMachinePool", "AzureMachinePoolMachine", "Machine"] {
        let count = left.all(kind).count();
        ensure!(count == 0, "{count} objects of the kind {kind} are left");
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
    async fn scale(&self, kind: &str, name: &str, replicas: usize) -> anyhow::Result<()> {
        merge(&self.place.client, (CORE, kind), name, &json!({ "spec": { "replicas": replicas } })).await
    }

    /// Waits until this holds.
    async fn until(&mut self, what: &str, holds: impl Fn(&View) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            for program in self.programs.iter_mut() {
                program.must_run()?;
            }
            let view = View::read(self.place).await?;
            if holds(&view) {
                break;
            }
            if begun.elapsed() > STEP {
                bail!("not within {} s: {what}\n{}", STEP.as_secs(), view.words(self.place).await);
            }
            tokio::time::sleep(LOOK).await;
        }
        print::line(format_args!("  ok    {what} ({:.1} s)", begun.elapsed().as_secs_f64()));
        Ok(())
    }
}
