//! Writes taints.

use std::time::Duration;

use k8s::{Node, Taint};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::api::{ApiError, call, patch_params};
use crate::events::Recorder;

/// Number and interval of attempts to write a node that others write concurrently, as in Kubernetes' own library for
/// cloud providers. The node's key is retried anyway.
const MAX_ATTEMPTS: u32 = 5;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(100);

/// Changes a node's taints. Returns whether anything was written.
///
/// `edit` gets the taints and returns whether it changed them. The whole list is written, on condition of the resource
/// version that was read, so that no other program's taint is lost. The first attempt uses the given node, later ones
/// read it again; a node that has another UID by then is not changed.
pub(crate) async fn edit_taints(
    api: &Api<Node>,
    node: &Node,
    edit: impl Fn(&mut Vec<Taint>) -> bool,
) -> Result<bool, ApiError> {
    edit_taints_as(&patch_params(), api, node, edit).await
}

/// Like [`edit_taints`], with another field manager.
pub(crate) async fn edit_taints_as(
    params: &PatchParams,
    api: &Api<Node>,
    node: &Node,
    edit: impl Fn(&mut Vec<Taint>) -> bool,
) -> Result<bool, ApiError> {
    let mut fresh: Option<Node> = None;
    let mut attempt = 1;
    loop {
        let current = fresh.as_ref().unwrap_or(node);
        let mut taints = current.spec.taints.clone();
        if current.metadata.uid != node.metadata.uid || !edit(&mut taints) {
            return Ok(false);
        }
        let name = node.name();
        let patch = json!({
            "metadata": {"resourceVersion": current.metadata.resource_version},
            "spec": {"taints": taints},
        });
        let patch = Patch::Strategic(patch);
        match call(|| format!("write the taints of node {name}"), api.patch(name, params, &patch)).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_conflict() && attempt < MAX_ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(ATTEMPT_INTERVAL).await;
                fresh = Some(call(|| format!("read node {name}"), api.get(name)).await?);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Records an Event on a node whose taint was added or removed, with the reason.
pub(crate) fn tell(recorder: &Recorder, node: &Node, key: &str, is_on: bool, why: &str) {
    let name = node.name();
    let (reason, text) = match is_on {
        true => ("TaintAdded", format!("Put taint {key} on node {name}, because {why}")),
        false => ("TaintRemoved", format!("Took taint {key} off node {name}, because {why}")),
    };
    tracing::info!(
        node = name,
        taint = key,
        reason = why,
        "{}",
        if is_on { "put a taint on" } else { "took a taint off" }
    );
    recorder.normal(node, reason, text);
}

/// Adds a taint unless one with its key and effect exists.
pub(crate) fn add(taints: &mut Vec<Taint>, taint: Taint) -> bool {
    let missing = !taints.iter().any(|other| other.key == taint.key && other.effect == taint.effect);
    if missing {
        taints.push(taint);
    }
    missing
}

/// Removes the taints that `fits` selects. Returns whether there were any.
pub(crate) fn remove(taints: &mut Vec<Taint>, fits: impl Fn(&Taint) -> bool) -> bool {
    let before = taints.len();
    taints.retain(|taint| !fits(taint));
    taints.len() != before
}
