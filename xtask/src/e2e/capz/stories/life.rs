//! A cluster of nine nodes from creation to deletion.

use serde_json::json;

use crate::e2e::capz::example::{CLUSTER, POOL, POOLED, larger, whole};
use crate::e2e::capz::stage::Stage;
use crate::e2e::capz::view::{CORE, View, is_true};

/// The annotation that delays `clusterctl move` until an object is paused.
const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// The size of the replaced workers.
const OTHER_SIZE: &str = "Standard_D4s_v3";

/// The cluster is created, grows, shrinks, is rolled, stays unchanged, and is deleted without a trace.
///
/// # Errors
/// The first failed step.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let example = whole()?;
    stage.create(&example).await?;
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

    stage.scale(CORE, "MachineDeployment", "harbour-workers-1", 2).await?;
    stage.until("another machine comes", |view| view.runs(7, POOLED)).await?;
    stage.scale(CORE, "MachineDeployment", "harbour-workers-2", 0).await?;
    stage.until("one goes again", |view| view.runs(6, POOLED)).await?;
    stage.scale(CORE, "MachinePool", POOL, POOLED + 1).await?;
    stage.until("another machine comes to the pool", |view| view.runs(6, POOLED + 1)).await?;

    stage.create(&[larger(&example, "harbour-workers", "harbour-workers-larger", OTHER_SIZE)]).await?;
    let larger = json!({ "spec": { "template": { "spec": {
        "infrastructureRef": { "name": "harbour-workers-larger" } } } } });
    stage.merge(CORE, "MachineDeployment", "harbour-workers-1", &larger).await?;
    stage
        .until("two workers are replaced by larger ones", |view| {
            view.of_size(OTHER_SIZE) == 2 && view.runs(6, POOLED + 1)
        })
        .await?;

    let blocks =
        |view: &View| !view.get("AzureCluster", CLUSTER)["metadata"]["annotations"][BLOCK_MOVE].is_null();
    stage.merge(CORE, "Cluster", CLUSTER, &json!({ "spec": { "paused": true } })).await?;
    stage.until("the paused cluster may be moved", |view| !blocks(view)).await?;
    stage.merge(CORE, "Cluster", CLUSTER, &json!({ "spec": { "paused": false } })).await?;
    stage.until("it goes on", blocks).await?;
    stage.ends(CLUSTER).await
}
