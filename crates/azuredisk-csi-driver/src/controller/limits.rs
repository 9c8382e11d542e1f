//! Nodes hear how many data disks Azure publishes for their machines (section 3.12, trap 5): a node itself has no rights in Azure.

use std::time::Duration;

use tokio::time::sleep;

use super::azure::{Azure, Sizes};
use super::kubernetes::KubernetesView;

/// How often it is looked whether Azure's list is due, and whether a node does not have its number.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Changes of nodes come in bursts.
const GATHERING: Duration = Duration::from_secs(1);

/// Publishes the numbers to nodes that do not have theirs. Ends with its caller.
pub(super) async fn publish(azure: Azure, view: KubernetesView) {
    let sizes = Sizes::new(azure);
    loop {
        let changed = view.changed();
        sizes.refresh().await;
        for (node, number) in view.nodes_without(|size| sizes.published(size)) {
            match view.publish_max_data_disks(&node, number).await {
                Ok(()) => {
                    tracing::info!(node, value = number, "published how many data disks the machine takes")
                }
                Err(error) => {
                    tracing::warn!(node, value = number, %error, "cannot publish how many data disks the machine takes")
                }
            }
        }
        tokio::select! {
            () = changed => {}
            () = sleep(LOOK_INTERVAL) => {}
        }
        sleep(GATHERING).await;
    }
}
