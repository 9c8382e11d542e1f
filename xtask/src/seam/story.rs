//! The stories.

use std::path::Path;

use anyhow::bail;

use super::azure::Watch;
use super::stage::{Programs, Stage};

/// A story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Story {
    /// The image of the manager is exchanged while the operator runs, there and back and there again; then the cluster is deleted.
    Swap,
    /// clusterctl exchanges the provider, and takes the operator away; it comes back, and the established provider deletes the cluster.
    Upgrade,
    /// With a real API server alone: clusterctl first, while all objects of the operator are there.
    UpgradeFirst,
    /// The cluster is paused before ours looks at it, rolled back, paused again, and leaves the management cluster while the operator runs.
    Move,
    /// Ours makes the cluster, the established provider takes it over and hands it back; it is deleted at that moment.
    Back,
    /// With a real API server alone: the commands of docs/switching.md, to ours and back; then the cluster is deleted.
    Guide,
}

impl Story {
    /// All stories with a simulated API server.
    pub const SIMULATED: [Self; 4] = [Self::Swap, Self::Upgrade, Self::Move, Self::Back];
    /// All stories with a real API server.
    pub const REAL: [Self; 6] =
        [Self::Swap, Self::Upgrade, Self::UpgradeFirst, Self::Move, Self::Back, Self::Guide];
    /// All stories in which the established provider may be played.
    pub const PLAYED: [Self; 1] = [Self::Guide];

    /// The title of the story.
    pub fn title(self) -> &'static str {
        match self {
            Self::Swap => {
                "the image is exchanged while the operator runs, back, and again; then the cluster is deleted"
            }
            Self::Upgrade => {
                "the provider is upgraded and the operator gone; rolled back, and then the cluster is deleted"
            }
            Self::UpgradeFirst => {
                "the provider is upgraded before anything else, and rolled back; then the cluster is deleted"
            }
            Self::Move => "the cluster is moved away while the operator runs",
            Self::Back => "a cluster of ours is taken over, handed back, and deleted at that moment",
            Self::Guide => {
                "the guide to switching is followed, to ours and back; then the cluster is deleted"
            }
        }
    }

    /// Runs the story.
    ///
    /// # Errors
    /// The first failed step.
    pub async fn play(self, programs: &Programs, directory: &Path) -> anyhow::Result<()> {
        let mut stage = Stage::set(programs, directory).await?;
        let played = match self {
            Self::Swap => swap(&mut stage).await,
            Self::Upgrade | Self::UpgradeFirst => upgrade(&mut stage).await,
            Self::Move => leave(&mut stage).await,
            Self::Back => back(&mut stage).await,
            Self::Guide => bail!("the guide needs a real API server (--kubernetes real)"),
        };
        played.map_err(|problem| crate::program::with_logs(problem, &stage.programs()))
    }
}

const AGAIN: &str = "the established provider has its objects again, and they are ready";
const NO_OBJECTS: &str = "no object of the operator is left";

async fn made_by_established(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    stage.start_operator().await?;
    stage.established().await?;
    stage.make_cluster().await?;
    stage.until("the established provider has made a cluster", |stage| stage.all_have("manage")).await
}

/// Waits until the established provider has its objects, and checks that nothing was written to Azure.
async fn established_again(stage: &mut Stage<'_>, what: &str, azure: &Watch) -> anyhow::Result<()> {
    stage.until(what, |stage| stage.all_have("manage") && stage.all_are_ready()).await?;
    stage.rests().await?;
    azure.is_as_it_was()
}

/// Starts our manager, waits until no object of the operator is left, and checks that nothing was written to Azure.
async fn ours_without_objects(stage: &mut Stage<'_>, azure: &Watch) -> anyhow::Result<()> {
    stage.ours().await?;
    stage.until(NO_OBJECTS, |stage| stage.policies().is_empty()).await?;
    stage.rests().await?;
    stage.is_content()?;
    azure.is_as_it_was()
}

/// Pauses the cluster, starts our manager, and waits until the cluster may be moved.
async fn paused_with_ours(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    stage.end_manager().await?;
    stage.pause(true).await?;
    stage.ours().await?;
    let may_move = "the cluster may be moved, and the operator does nothing for it";
    stage.until(may_move, |stage| !stage.blocks_move() && stage.all_have("skip")).await
}

async fn delete(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    stage.delete_cluster().await?;
    stage.until("the cluster is gone", Stage::is_gone).await
}

async fn swap(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    made_by_established(stage).await?;
    let azure = stage.watch_azure();
    for _ in 0..2 {
        ours_without_objects(stage, &azure).await?;
        stage.established().await?;
        established_again(stage, AGAIN, &azure).await?;
    }
    stage.ours().await?;
    delete(stage).await
}

async fn upgrade(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    made_by_established(stage).await?;
    let azure = stage.watch_azure();
    stage.take_operator_away().await?;
    ours_without_objects(stage, &azure).await?;
    stage.bring_operator_back().await?;
    stage.watch().await?;
    azure.is_as_it_was()?;
    stage.established().await?;
    established_again(stage, AGAIN, &azure).await?;
    delete(stage).await
}

async fn leave(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    made_by_established(stage).await?;
    let azure = stage.watch_azure();
    // The objects are not harmless yet when our manager starts: the established provider does not see the pause.
    paused_with_ours(stage).await?;
    stage.established().await?;
    stage.pause(false).await?;
    established_again(stage, AGAIN, &azure).await?;
    paused_with_ours(stage).await?;
    stage.leave().await?;
    stage.until("its objects are gone", |stage| stage.policies().is_empty()).await?;
    stage.watch().await?;
    azure.is_as_it_was()
}

async fn back(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    stage.start_operator().await?;
    stage.ours().await?;
    stage.make_cluster().await?;
    let azure = stage.watch_azure();
    stage.established().await?;
    let taken = "the established provider has objects for a cluster of ours, and they are ready";
    established_again(stage, taken, &azure).await?;
    stage.ours().await?;
    delete(stage).await
}
