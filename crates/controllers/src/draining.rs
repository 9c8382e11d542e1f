//! Nodes that drain: load balancers send them no new connections, at once (10.6).
//!
//! Whether a node drains is what its taints say, so a program that starts anew knows it as well. One request to the
//! cloud is for all nodes of a moment.

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

/// The nodes that drain, by UID: another node under the same name is another node.
type Draining = BTreeMap<String, Arc<Node>>;

fn uid(node: &Node) -> String {
    node.metadata.uid.clone().unwrap_or_default()
}

/// Tells the cloud of nodes that begin and end to drain.
pub(crate) struct DrainingNodes {
    cloud: Arc<dyn LoadBalancers>,
    state: ClusterState,
    lease: Option<ResourceLease>,
    recorder: Recorder,
    observer: Arc<dyn Observer>,
    memory: Mutex<Memory>,
}

/// What the cloud was told.
struct Memory {
    /// The nodes that drained when it last succeeded.
    told: Draining,
    /// Whether it may be otherwise in the cloud: the program before may have left something behind, and what failed may
    /// have got half of the way.
    is_owed: bool,
}

impl DrainingNodes {
    pub fn new(
        cloud: Arc<dyn LoadBalancers>,
        state: ClusterState,
        lease: Option<ResourceLease>,
        recorder: Recorder,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let memory = Mutex::new(Memory { told: Draining::new(), is_owed: true });
        Self { cloud, state, lease, recorder, observer, memory }
    }

    /// Compares, and asks the cloud where there is a difference.
    pub async fn reconcile(&self) -> Next {
        let nodes = self.state.nodes();
        let draining: Draining = nodes
            .iter()
            .filter(|node| node.is_draining())
            .map(|node| (uid(node), Arc::clone(node)))
            .collect();
        let (before, is_owed) = {
            let memory = self.memory.lock();
            (memory.told.clone(), memory.is_owed)
        };
        let begun: Vec<&Arc<Node>> =
            draining.iter().filter(|(uid, _)| !before.contains_key(*uid)).map(|(_, node)| node).collect();
        let is_back = |node: &&Arc<Node>| {
            let uid = uid(node);
            before.contains_key(&uid) && !draining.contains_key(&uid)
        };
        let back: Vec<&Arc<Node>> = nodes.iter().filter(is_back).collect();
        if !is_owed && begun.is_empty() && back.is_empty() {
            // Who is gone is gone from the pools by other means.
            self.memory.lock().told = draining;
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
                *self.memory.lock() = Memory { told: draining, is_owed: false };
                Next::Done
            }
            Err(error) => {
                tracing::warn!(%error, nodes = begun.len() + back.len(),
                    "load balancers could not be told of nodes that drain");
                for node in begun.iter().chain(&back) {
                    let message =
                        format!("Load balancers could not be told whether the node drains: {error}");
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
        let _guard = match &self.lease {
            Some(lease) => Some(lease.hold("tell load balancers of nodes that drain").await?),
            None => None,
        };
        self.cloud.update_draining_nodes().await
    }
}
