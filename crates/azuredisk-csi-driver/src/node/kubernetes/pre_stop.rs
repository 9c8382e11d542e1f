//! The hook before the driver's container stops: while a node is drained for good, the driver stays until its volumes are
//! detached.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use k8s::api::api::core::v1::Node;
use k8s::api::api::storage::v1::VolumeAttachment;
use k8s::names::TAINT_TO_BE_DELETED;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::time::sleep;

use super::call::call;

/// Taints of a node that is drained, or about to go.
const DRAINING: [&str; 4] = [
    "node.kubernetes.io/unschedulable",
    TAINT_TO_BE_DELETED,
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
];

/// The pause after an error; the pod's grace period ends all of them.
const PAUSE: Duration = Duration::from_secs(2);

/// The hook cannot do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreStopError {
    /// The node's name is not given.
    #[error("KUBE_NODE_NAME is not set; let the pod's spec set it to spec.nodeName")]
    NoNodeName,
}

/// Waits until no volume of the driver is attached to a node that is gone, drained or about to go. Returns at once if the node
/// stays. What cannot be read counts as "not yet": the pod's grace period is the limit.
///
/// # Errors
/// The node's name is empty.
pub async fn wait_before_stop(client: Client, node: &str, driver: &str) -> Result<(), PreStopError> {
    if node.is_empty() {
        return Err(PreStopError::NoNodeName);
    }
    if stays(&client, node).await {
        return Ok(());
    }
    let attachments = Api::<VolumeAttachment>::all(client);
    let mut events = pin!(watcher(attachments, watcher::Config::default()));
    let is_ours = |one: &VolumeAttachment| one.spec.node_name == node && one.spec.attacher == driver;
    let (mut attached, mut is_listed) = (BTreeSet::new(), false);
    loop {
        match events.next().await {
            Some(Ok(Event::Init)) => {
                attached.clear();
                is_listed = false;
            }
            Some(Ok(Event::InitApply(one) | Event::Apply(one))) if is_ours(&one) => {
                attached.insert(one.name_any());
            }
            Some(Ok(Event::InitDone)) => is_listed = true,
            Some(Ok(Event::Delete(one))) => {
                attached.remove(&one.name_any());
            }
            Some(Ok(Event::InitApply(_) | Event::Apply(_))) => {}
            Some(Err(error)) => {
                tracing::warn!(%error, "cannot read the attachments of volumes; it is tried again");
                sleep(PAUSE).await;
            }
            None => return Ok(()),
        }
        if is_listed && attached.is_empty() {
            return Ok(());
        }
    }
}

/// Whether a node goes on after the driver's container has stopped.
async fn stays(client: &Client, name: &str) -> bool {
    let nodes = Api::<Node>::all(client.clone());
    loop {
        match call(format!("read node {name}"), nodes.get(name)).await {
            Ok(node) => {
                let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
                return !taints.iter().any(|taint| DRAINING.contains(&taint.key.as_str()));
            }
            Err(error) if error.is_not_found() => return false,
            Err(error) => {
                tracing::warn!(node = name, %error, "cannot read the node; it is tried again");
                sleep(PAUSE).await;
            }
        }
    }
}
