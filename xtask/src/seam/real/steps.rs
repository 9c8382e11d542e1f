//! Steps that several stories have.

use anyhow::ensure;
use serde_json::Value;

use super::clusterctl::OUR_IMAGE;
use super::management::Management;
use super::stage::Stage;
use crate::seam::azure::Watch;

/// The end of a story.
pub const GONE: &str = "the cluster is gone, in Azure and in Kubernetes";

/// Waits until nothing has been written to Kubernetes for a while, and checks that nothing was written to Azure.
///
/// # Errors
/// It takes too long, or something was written.
pub async fn rests_unchanged(management: &Management, azure: &Watch) -> anyhow::Result<()> {
    management.rests().await?;
    azure.is_as_it_was()
}

/// Waits until the established installation runs.
///
/// # Errors
/// It takes too long.
pub async fn established_runs(management: &Management) -> anyhow::Result<()> {
    let is_established = |pod: &Value| pod["spec"]["containers"][0]["image"] != OUR_IMAGE;
    management.until_runs("the established installation runs", is_established).await
}

/// Waits until the pods of our manifest run, without the operator.
///
/// # Errors
/// It takes too long, or the operator is still there.
pub async fn our_manifest_runs(management: &Management) -> anyhow::Result<()> {
    let is_ours = |pod: &Value| pod["spec"]["containers"][0]["image"] == OUR_IMAGE;
    management.until_runs("our manifest's pods run", is_ours).await?;
    ensure!(!management.has_operator().await?, "clusterctl has left the operator");
    Ok(())
}

/// Exchanges the image for ours, and deletes the cluster.
///
/// # Errors
/// It takes too long.
pub async fn delete_with_our_image(stage: &Stage<'_>) -> anyhow::Result<()> {
    stage.here.set_image(OUR_IMAGE).await?;
    stage.delete_cluster(&stage.here).await?;
    stage.here.until(GONE, |view| stage.is_gone(view)).await
}
