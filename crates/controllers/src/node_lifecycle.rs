//! The cloud-node-lifecycle controller: removes nodes whose machine is gone, and taints those whose
//! machine is shut down (`spec/nodes.md` 2.2).
//!
//! The cloud's answer has three values. *Unknown* does nothing at all.

use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, Existence, LogicalTime, Machines};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s::{Node, Taint, is_deleting, names};
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, call};
use crate::events::Recorder;
use crate::taints::{add, edit_taints, remove};

/// What to do with a node.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// It works again.
    RemoveShutdownTaint,
    /// It does not answer: what does the cloud say?
    Ask,
}

fn step(node: &Node) -> Step {
    if is_deleting(&node.metadata) {
        // Whoever holds a finalizer on it has been asked already.
        Step::Nothing
    } else if !node.is_ready() {
        Step::Ask
    } else if node.has_taint(names::TAINT_SHUTDOWN) {
        Step::RemoveShutdownTaint
    } else {
        Step::Nothing
    }
}

fn is_shutdown_taint(taint: &Taint) -> bool {
    taint.key == names::TAINT_SHUTDOWN && taint.effect == "NoSchedule"
}

fn shutdown_taint() -> Taint {
    Taint {
        key: names::TAINT_SHUTDOWN.to_owned(),
        value: String::new(),
        effect: "NoSchedule".to_owned(),
        time_added: None,
    }
}

/// The cloud-node-lifecycle controller.
pub(crate) struct NodeLifecycle {
    api: Api<Node>,
    machines: Arc<dyn Machines>,
    state: ClusterState,
    recorder: Recorder,
}

impl NodeLifecycle {
    pub fn new(client: Client, machines: Arc<dyn Machines>, state: ClusterState, recorder: Recorder) -> Self {
        Self { api: Api::all(client), machines, state, recorder }
    }

    /// Looks at all nodes, and again a `period` after each round, until `stop`.
    pub async fn run(&self, period: Duration, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.round() => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(period) => {}
            }
        }
    }

    async fn round(&self) {
        let nodes = self.state.nodes();
        // All at once: one list of machines answers the questions of one moment.
        let mut steps: FuturesUnordered<_> = nodes.iter().map(|node| self.look_at(node)).collect();
        while steps.next().await.is_some() {}
    }

    async fn look_at(&self, node: &Node) {
        match step(node) {
            Step::Nothing => {}
            Step::RemoveShutdownTaint => {
                let edited = edit_taints(&self.api, node, |taints| remove(taints, is_shutdown_taint)).await;
                report(node, edited);
            }
            Step::Ask => match self.machines.presence(node, LogicalTime::now()).await {
                Existence::Absent(_) => self.delete(node).await,
                Existence::Present(machine) if machine.shut_down => {
                    let edited = edit_taints(&self.api, node, |taints| add(taints, shutdown_taint())).await;
                    report(node, edited);
                }
                Existence::Present(_) => {}
                Existence::Unknown(reason) => {
                    tracing::warn!(
                        node = node.name(),
                        reason,
                        "not ready, and nobody knows whether its machine exists; nothing is done"
                    );
                }
            },
        }
    }

    async fn delete(&self, node: &Node) {
        let name = node.name();
        tracing::info!(node = name, "deleting the node: its machine does not exist");
        self.recorder.normal(
            node,
            "DeletingNode",
            format!("Deleting node {name} because it does not exist in the cloud provider"),
        );
        // Another machine may have taken the name since the watch spoke.
        let params = DeleteParams::default()
            .preconditions(Preconditions { uid: node.metadata.uid.clone(), resource_version: None });
        match call(|| format!("delete node {name}"), self.api.delete(name, &params)).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) if error.is_conflict() => {
                tracing::info!(node = name, %error, "not deleted: another machine has its name");
            }
            Err(error) => {
                tracing::error!(node = name, %error, "node not deleted");
                self.recorder.warning(
                    node,
                    "DeletingNodeFailed",
                    format!("Failed deleting node {name}: {error}"),
                );
            }
        }
    }
}

fn report(node: &Node, edited: Result<bool, ApiError>) {
    match edited {
        Ok(true) => tracing::info!(node = node.name(), "the shutdown taint was changed"),
        Ok(false) => {}
        Err(error) if error.is_not_found() => {}
        Err(error) => tracing::warn!(node = node.name(), %error, "the shutdown taint was not changed"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_nodes_that_are_not_ready_cost_a_question() {
        let node = |conditions: serde_json::Value, taints: serde_json::Value| -> Node {
            serde_json::from_value(json!({"spec": {"taints": taints}, "status": {"conditions": conditions}}))
                .unwrap()
        };
        let ready = |status: &str| json!([{"type": "Ready", "status": status}]);
        let shutdown = json!([{"key": names::TAINT_SHUTDOWN, "effect": "NoSchedule"}]);
        assert_eq!(step(&node(ready("True"), json!([]))), Step::Nothing);
        assert_eq!(step(&node(ready("True"), shutdown.clone())), Step::RemoveShutdownTaint);
        assert_eq!(step(&node(ready("False"), json!([]))), Step::Ask);
        assert_eq!(step(&node(ready("Unknown"), shutdown)), Step::Ask);
        assert_eq!(step(&node(json!([]), json!([]))), Step::Ask);
    }
}
