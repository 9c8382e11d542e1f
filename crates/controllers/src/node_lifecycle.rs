//! The cloud-node-lifecycle controller: deletes nodes whose machine does not exist, and taints those whose machine is
//! shut down until it runs again (NODE-085, NODE-086, NODE-241).
//!
//! Each node that is not ready is a key in a queue. Its machine is looked up at once, and again after pauses that grow
//! to a minute, because a machine that has been dead for a day is less urgent than one that has just failed. The pauses
//! of all nodes end together, so that one list serves all of them.
//!
//! The cloud's answer has three values. *Unknown* has no effect at all, and *absent* means that the cloud was asked for
//! this one machine.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, Existence, LogicalTime, Machines, Presence, Proof};
use freshness::{AgeLimits, Due, Pauses, Schedule};
use k8s::{Node, Taint, is_deleting, names};
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use parking_lot::Mutex;

use crate::api::call;
use crate::events::Recorder;
use crate::out_of_service;
use crate::queue::Next;
use crate::repeated_warning::RepeatedWarnings;
use crate::taints::{add, edit_taints, tell};

/// Maximum age of a list of machines that shows a machine. Half a minute in which nodes die one after the other costs
/// three lists, of the ten a minute that Azure allows for a scale set.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(10);

/// The longest pause between two lookups: a node is deleted within about a minute after its machine, and a dead one
/// costs one list a minute.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The action for a node.
#[derive(Debug, PartialEq, Eq)]
enum NodeAction {
    Nothing,
    /// It runs again.
    RemoveShutdownTaint,
    /// It is not ready: ask the cloud.
    LookForMachine,
}

fn action(node: &Node) -> NodeAction {
    if is_deleting(&node.metadata) {
        // The holders of its finalizers have been notified by the deletion.
        NodeAction::Nothing
    } else if !node.is_ready() {
        NodeAction::LookForMachine
    } else if node.has_taint(names::TAINT_SHUTDOWN) {
        NodeAction::RemoveShutdownTaint
    } else {
        NodeAction::Nothing
    }
}

/// Whether this controller has to reconcile a node.
pub(crate) fn needs_work(node: &Node) -> bool {
    action(node) != NodeAction::Nothing
}

fn shutdown_taint() -> Taint {
    Taint {
        key: names::TAINT_SHUTDOWN.to_owned(),
        value: String::new(),
        effect: "NoSchedule".into(),
        time_added: None,
    }
}

/// The cloud-node-lifecycle controller.
pub(crate) struct NodeLifecycle {
    api: Api<Node>,
    machines: Arc<dyn Machines>,
    state: ClusterState,
    age_limits: Arc<AgeLimits>,
    /// The lookups of machines, by the node's name. Its state is the node's UID: another node of the same name starts
    /// again.
    schedule: Schedule<String, Option<String>>,
    /// When a node was ready whose machine had been shut down: what the cloud said of it before is over.
    ready_again: Mutex<HashMap<String, LogicalTime>>,
    recorder: Recorder,
    warnings: RepeatedWarnings,
}

impl NodeLifecycle {
    /// `first_pause` is the pause after the first lookup of a machine.
    pub fn new(
        client: Client,
        machines: Arc<dyn Machines>,
        state: ClusterState,
        age_limits: Arc<AgeLimits>,
        first_pause: Duration,
        recorder: Recorder,
    ) -> Self {
        let schedule = Schedule::in_step(Pauses { first: first_pause, longest: MAX_PAUSE });
        let warnings = RepeatedWarnings::default();
        let ready_again = Mutex::default();
        Self { api: Api::all(client), machines, state, age_limits, schedule, ready_again, recorder, warnings }
    }

    /// Reconciles one node.
    pub async fn reconcile(&self, name: &str) -> Next {
        let Some(node) = self.state.node(name) else {
            self.schedule.forget(name);
            self.ready_again.lock().remove(name);
            self.warnings.forget(name);
            return Next::Done;
        };
        match action(&node) {
            NodeAction::Nothing => {
                self.schedule.forget(name);
                Next::Done
            }
            NodeAction::RemoveShutdownTaint => {
                self.schedule.forget(name);
                self.ready_again.lock().insert(name.to_owned(), LogicalTime::now());
                self.edit_shutdown_taint(&node, false, "the node is ready").await
            }
            NodeAction::LookForMachine => self.look_for_machine(&node).await,
        }
    }

    async fn look_for_machine(&self, node: &Node) -> Next {
        if let Due::In(wait) = self.schedule.due(node.name(), &node.metadata.uid) {
            return Next::After(wait);
        }
        let shared = self.age_limits.within(MAX_ANSWER_AGE);
        let ready_again = self.ready_again.lock().get(node.name()).copied();
        let newer_than = ready_again.map_or(shared, |ready| ready.max(shared));
        let existence = self.machines.presence(node, newer_than).await;
        if !matches!(existence, Existence::Unknown(_)) {
            self.warnings.forget(node.name());
        }
        match existence {
            Existence::Absent(proof) => {
                let deleted = self.delete(node, &proof).await;
                if deleted != Next::Done {
                    return deleted;
                }
            }
            Existence::Present(Presence { shut_down }) => {
                // A running machine is not shut down, even if its kubelet is not ready yet.
                let why = if shut_down { "its machine is shut down" } else { "its machine runs" };
                let tainted = self.edit_shutdown_taint(node, shut_down, why).await;
                if tainted != Next::Done {
                    return tainted;
                }
            }
            Existence::Unknown(reason) => {
                let node = node.name();
                if self.warnings.is_due(node, &reason) {
                    tracing::warn!(node, reason, "machine existence unknown: node left as it is");
                } else {
                    tracing::debug!(node, reason, "machine existence unknown: node left as it is");
                }
            }
        }
        // A deleted node is dropped when its key is due again.
        Next::After(self.schedule.looked(node.name().to_owned(), node.metadata.uid.clone()))
    }

    async fn edit_shutdown_taint(&self, node: &Node, is_on: bool, why: &str) -> Next {
        let edit = |taints: &mut Vec<Taint>| match is_on {
            true => add(taints, shutdown_taint()),
            false => out_of_service::remove_shutdown(taints),
        };
        match edit_taints(&self.api, node, edit).await {
            Ok(true) => {
                tell(&self.recorder, node, names::TAINT_SHUTDOWN, is_on, why);
                Next::Done
            }
            Ok(false) => Next::Done,
            Err(error) if error.is_not_found() => Next::Done,
            Err(error) => {
                tracing::warn!(node = node.name(), %error, "failed to change the shutdown taint");
                Next::Retry
            }
        }
    }

    /// Deletes a node whose machine is proven absent, if the node is still the same: the answer may have taken a while.
    /// If the node has changed by now, or changes at this moment, it is reconciled again; the cloud's answer is reused
    /// then.
    async fn delete(&self, asked: &Node, proof: &Proof) -> Next {
        let name = asked.name();
        let Some(node) = self.state.node(name).filter(|node| is_still(node, asked)) else {
            return Next::Retry;
        };
        let Proof { machine, answer, .. } = proof;
        tracing::info!(node = name, machine, answer, "deleting the node: its machine does not exist");
        self.recorder.normal(
            &*node,
            "DeletingNode",
            format!("Deleting node {name} because it does not exist in the cloud provider: {answer}"),
        );
        // Another machine may have taken the name since the last watch event, or the node may be ready again.
        let preconditions = Preconditions {
            uid: node.metadata.uid.clone(),
            resource_version: node.metadata.resource_version.clone(),
        };
        let params = DeleteParams::default().preconditions(preconditions);
        match call(|| format!("delete node {name}"), self.api.delete(name, &params)).await {
            Ok(_) => Next::Done,
            Err(error) if error.is_not_found() => Next::Done,
            Err(error) if error.is_conflict() => {
                tracing::info!(node = name, %error, "node not deleted: it has changed since it was looked at");
                Next::Retry
            }
            Err(error) => {
                tracing::error!(node = name, %error, "failed to delete node");
                self.recorder.warning(
                    &*node,
                    "DeletingNodeFailed",
                    format!("Failed deleting node {name}: {error}"),
                );
                Next::Done
            }
        }
    }
}

/// Whether a node is still the one whose machine was looked up, and still not ready.
fn is_still(node: &Node, asked: &Node) -> bool {
    node.metadata.uid == asked.metadata.uid
        && node.spec.provider_id == asked.spec.provider_id
        && action(node) == NodeAction::LookForMachine
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
        assert_eq!(action(&node(ready("True"), json!([]))), NodeAction::Nothing);
        assert_eq!(action(&node(ready("True"), shutdown.clone())), NodeAction::RemoveShutdownTaint);
        assert_eq!(action(&node(ready("False"), json!([]))), NodeAction::LookForMachine);
        assert_eq!(action(&node(ready("Unknown"), shutdown)), NodeAction::LookForMachine);
        assert_eq!(action(&node(json!([]), json!([]))), NodeAction::LookForMachine);
    }

    /// NODE-242.
    #[test]
    fn node_242_a_node_that_is_not_the_one_that_was_looked_at_is_not_deleted() {
        let node = |uid: &str, id: &str, ready: &str| -> Node {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            serde_json::from_value(json!({
                "metadata": {"uid": uid}, "spec": {"providerID": id}, "status": {"conditions": conditions},
            }))
            .unwrap()
        };
        let asked = node("1", "azure:///a", "Unknown");
        assert!(is_still(&node("1", "azure:///a", "False"), &asked));
        assert!(!is_still(&node("2", "azure:///a", "Unknown"), &asked), "another node of its name");
        assert!(!is_still(&node("1", "azure:///b", "Unknown"), &asked), "another machine");
        assert!(!is_still(&node("1", "azure:///a", "True"), &asked), "ready again");
    }
}
