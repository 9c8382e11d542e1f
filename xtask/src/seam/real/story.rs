//! The stories with the real tools: each step is a command of the guide, docs/taking-over.md.

use std::path::Path;

use anyhow::ensure;

use super::clusterctl::{BACK, ESTABLISHED, OUR_IMAGE, OURS};
use super::counterparts::Counterparts;
use super::guided;
use super::management::Management;
use super::stage::Stage;
use super::steps::{GONE, delete_with_our_image, established_runs, our_manifest_runs, rests_unchanged};
use crate::print;
use crate::seam::azure::Watch;
use crate::seam::story::Story;

const AGAIN: &str = "the established provider has its objects again, and they are ready";

/// Runs a story in a folder.
///
/// # Errors
/// The first failed step.
pub async fn play(
    story: Story,
    counterparts: &Counterparts,
    flavor: &str,
    directory: &Path,
) -> anyhow::Result<()> {
    let mut stage = Stage::set(counterparts, flavor, directory).await?;
    let played = match story {
        Story::Swap => swap(&mut stage).await,
        Story::Upgrade => upgrade(&mut stage).await,
        Story::UpgradeFirst => upgrade_first(&mut stage).await,
        Story::Move => leave(&mut stage).await,
        Story::Back => back(&mut stage).await,
        Story::Guide => guided::play(&mut stage, directory).await,
    };
    played.map_err(|problem| problem.context(format!("last words of the programs:\n{}\n", stage.words())))
}

/// Installs the established provider with clusterctl, and creates a cluster with it as a user.
async fn made_by_established(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let here = &stage.here;
    stage.clusterctl.init(here.kubeconfig(), ESTABLISHED).await?;
    established_runs(here).await?;
    stage.make_cluster().await?;
    here.until("the established provider has made a cluster", |view| view.all_have("manage")).await
}

/// Waits until the established provider has its objects, and checks that nothing was written to Azure.
async fn established_again(management: &Management, what: &str, azure: &Watch) -> anyhow::Result<()> {
    management.until(what, |view| view.all_have("manage") && view.all_are_ready()).await?;
    rests_unchanged(management, azure).await
}

async fn swap(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    made_by_established(stage).await?;
    let (azure, here) = (stage.watch_azure(), &stage.here);
    let established = here.image().await?;
    stage.check_takeover(here)?;
    for _ in 0..2 {
        here.set_image(OUR_IMAGE).await?;
        here.until_none_left().await?;
        rests_unchanged(here, &azure).await?;
        here.set_image(&established).await?;
        established_again(here, AGAIN, &azure).await?;
    }
    delete_with_our_image(stage).await?;
    let forbidden = here.forbidden()?;
    print::line(format_args!("  not allowed with the established provider's role: {forbidden:?}"));
    // This right is not needed while the operator runs.
    let known = "get  services azureserviceoperator-webhook-service";
    ensure!(
        forbidden.iter().all(|one| one == known),
        "the image needs rights that the established role does not give"
    );
    Ok(())
}

/// The order in the guide: image, wait, labels, clusterctl.
async fn upgrade(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    made_by_established(stage).await?;
    let (azure, here) = (stage.watch_azure(), &stage.here);
    stage.check_takeover(here)?;
    here.set_image(OUR_IMAGE).await?;
    here.until_none_left().await?;
    here.label_definitions()?;
    stage.upgrade(OURS).await?;
    our_manifest_runs(here).await?;
    rests_unchanged(here, &azure).await?;
    stage.upgrade(BACK).await?;
    established_runs(here).await?;
    established_again(here, AGAIN, &azure).await?;
    // The established provider lets its AzureCluster go while objects of the operator are left. The garbage collector deletes them
    // together with the Secret of their credentials, and the operator waits for that Secret for ever.
    delete_with_our_image(stage).await
}

/// The other order: clusterctl first, while the objects exist.
async fn upgrade_first(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    made_by_established(stage).await?;
    let (azure, here) = (stage.watch_azure(), &stage.here);
    here.label_definitions()?;
    stage.upgrade(OURS).await?;
    our_manifest_runs(here).await?;
    here.until_none_left().await?;
    rests_unchanged(here, &azure).await?;
    here.namespace_comes_and_goes().await?;
    stage.upgrade(BACK).await?;
    established_runs(here).await?;
    established_again(here, AGAIN, &azure).await?;
    delete_with_our_image(stage).await
}

/// Moves from a management cluster of the established provider to one of ours, and deletes the cluster there.
async fn leave(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    made_by_established(stage).await?;
    let azure = stage.watch_azure();
    let there = stage.second().await?;
    stage.clusterctl.init(there.kubeconfig(), OURS).await?;
    there.until_runs("our manifest's pods run there", |_| true).await?;
    let here = &stage.here;
    stage.move_cluster(here, &there).await?;
    rests_unchanged(&there, &azure).await?;
    here.until("nothing is left here", |view| {
        view.operators.is_empty() && view.objects.of("AzureCluster").is_empty()
    })
    .await?;
    azure.is_as_it_was()?;
    // clusterctl moves only to a provider that is not older than that of the source.
    let refused = stage.move_cluster(&there, here).await.err().map(|error| format!("{error:#}"));
    let refused = refused.unwrap_or_default();
    ensure!(refused.contains("is older than in the source cluster"), "the way back: {refused}");
    rests_unchanged(&there, &azure).await?;
    stage.delete_cluster(&there).await?;
    there.until(GONE, |view| stage.is_gone(view)).await
}

async fn back(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let here = &stage.here;
    stage.clusterctl.init(here.kubeconfig(), OURS).await?;
    here.until_runs("our manifest's pods run", |_| true).await?;
    stage.make_cluster().await?;
    let azure = stage.watch_azure();
    stage.upgrade(BACK).await?;
    established_runs(here).await?;
    let taken = "the established provider has objects for a cluster of ours, and they are ready";
    established_again(here, taken, &azure).await?;
    delete_with_our_image(stage).await
}
