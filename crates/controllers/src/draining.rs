//! Draining nodes: load balancers send them no new connections, at once (10.6).
//!
//! The taints of a node say whether it drains, so that a restarted program knows it as well. One call to the cloud
//! covers all nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloud::{ClusterState, LoadBalancers, ServiceError};
use k8s::Node;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::events::Recorder;
use crate::observer::Observer;
use crate::queue::Next;
use crate::resource_lease::ResourceLease;

/// The draining nodes, by UID: another node of the same name is a different node.
type Draining = BTreeMap<String, Arc<Node>>;

fn uid(node: &Node) -> String {
    node.metadata.uid.clone().unwrap_or_default()
}

/// Reports to the cloud which nodes start and stop draining.
pub(crate) struct DrainingNodes {
    pub cloud: Arc<dyn LoadBalancers>,
    pub state: ClusterState,
    pub lease: Option<ResourceLease>,
    pub recorder: Recorder,
    pub observer: Arc<dyn Observer>,
    pub memory: Mutex<Memory>,
}

/// The state reported to the cloud.
pub(crate) struct Memory {
    /// The draining nodes at the last successful call.
    reported: Draining,
    /// Whether the cloud's state may differ: an earlier process may have left something behind, and a failed call may
    /// have succeeded in part.
    is_owed: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self { reported: Draining::new(), is_owed: true }
    }
}

impl DrainingNodes {
    /// Compares the states, and calls the cloud if they differ.
    pub async fn reconcile(&self) -> Next {
        let nodes = self.state.nodes();
        let draining: Draining = nodes
            .iter()
            .filter(|node| node.is_draining())
            .map(|node| (uid(node), Arc::clone(node)))
            .collect();
        let (before, is_owed) = {
            let memory = self.memory.lock();
            (memory.reported.clone(), memory.is_owed)
        };
        let begun: Vec<&Arc<Node>> =
            draining.iter().filter(|(uid, _)| !before.contains_key(*uid)).map(|(_, node)| node).collect();
        let is_back = |node: &&Arc<Node>| {
            let uid = uid(node);
            before.contains_key(&uid) && !draining.contains_key(&uid)
        };
        let back: Vec<&Arc<Node>> = nodes.iter().filter(is_back).collect();
        if !is_owed && begun.is_empty() && back.is_empty() {
            // A deleted node is removed from the pools elsewhere.
            self.memory.lock().reported = draining;
            return Next::Done;
        }
        self.memory.lock().is_owed = true;
        let start = Instant::now();
        let outcome = self.update().await;
        self.observer.draining_updated(start.elapsed(), outcome.is_ok());
        match outcome {
            Ok(in_pools) => {
                for node in &begun {
                    if in_pools.get(node.name()) == Some(&true) {
                        let message = "Load balancers send the node no new connections: it drains";
                        self.recorder.normal(node.as_ref(), "LoadBalancerAdminStateDown", message);
                    }
                }
                for node in &back {
                    if in_pools.get(node.name()) == Some(&false) {
                        let message = "Load balancers send the node new connections again";
                        self.recorder.normal(node.as_ref(), "LoadBalancerAdminStateNone", message);
                    }
                }
                *self.memory.lock() = Memory { reported: draining, is_owed: false };
                Next::Done
            }
            Err(error) => {
                tracing::warn!(%error, nodes = begun.len() + back.len(),
                    "failed to update load balancers with draining nodes");
                for node in begun.iter().chain(&back) {
                    let message = format!(
                        "Failed to update load balancers with the draining state of the node: {error}"
                    );
                    self.recorder.warning(node.as_ref(), "LoadBalancerAdminStateUpdateFailed", message);
                }
                match error {
                    ServiceError::Retry { after: Some(wait), .. } if !wait.is_zero() => Next::After(wait),
                    ServiceError::Retry { .. } | ServiceError::Refused { .. } => Next::Retry,
                }
            }
        }
    }

    async fn update(&self) -> Result<BTreeMap<String, bool>, ServiceError> {
        let operation = "update load balancers with draining nodes";
        let _guard = ResourceLease::hold_any(self.lease.as_ref(), operation).await?;
        self.cloud.update_draining_nodes().await
    }
}
