//! A cluster that moves to another management cluster, and back.

use std::mem::swap;

use anyhow::{Context as _, ensure};

use crate::e2e::capz::clusterctl::move_all;
use crate::e2e::capz::example::{CLUSTER, POOLED, whole};
use crate::e2e::capz::management::Management;
use crate::e2e::capz::stage::Stage;
use crate::e2e::capz::view::View;
use crate::print;

/// Runs `clusterctl move` there and back: no machine is replaced, and nothing is deleted in Azure.
///
/// # Errors
/// The first failed step.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let clusterctl = stage.programs.clusterctl.clone().context("--clusterctl is missing")?;
    stage.create(&whole()?).await?;
    stage.until("nine nodes are ready", |view| view.runs(6, POOLED)).await?;
    let other = Management::start(stage.programs, &stage.directory.join("other"), stage.place).await?;
    stage.other = Some(other);
    stage.rests().await?;
    for way in ["there", "back"] {
        let machines = stage.view().await?.names("Machine");
        let azure = stage.place.azure.azure.documents();
        let since = stage.moment();
        let other = stage.other.as_mut().context("there is one management cluster")?;
        let directory = stage.directory.join(way);
        std::fs::create_dir_all(&directory)?;
        move_all(&clusterctl, &directory, &stage.management.server.kubeconfig, &other.server.kubeconfig)
            .await?;
        print::line(format_args!("  ok    clusterctl move, {way}"));
        swap(&mut stage.management, other);
        let left = View::read(stage.place, &other.server.client).await?;
        for kind in ["Cluster", "Machine", "AzureCluster", "AzureMachine", "AzureMachinePool"] {
            ensure!(left.all(kind).count() == 0, "{kind}: some are left where the cluster was");
        }
        stage.until("nine nodes run as before", |view| view.runs(6, POOLED)).await?;
        stage.rests().await?;
        ensure!(stage.view().await?.names("Machine") == machines, "machines were replaced");
        let writes = stage.writes_since(since);
        ensure!(writes.is_empty(), "written to Azure: {writes:?}");
        ensure!(stage.place.azure.azure.documents() == azure, "Azure is not as it was");
        print::line("  ok    nothing was written to Azure");
    }
    stage.ends(CLUSTER).await
}
