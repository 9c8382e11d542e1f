//! Brings all load balancers to a changed set of nodes: one request to the cloud for each real change,
//! however many Services and node events there are (NODE-087).

use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, LoadBalancers, ServiceError};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::node_set::NodeSet;
use crate::observer::Observer;
use crate::queue::Next;
use crate::service::ServiceController;

/// Node names that an event lists at most: an event's message holds 1,024 bytes, of which 20 usual names fill half.
const MAX_NAMES_IN_EVENT: usize = 20;

/// How often this asks whether machines wait for a place, while none does. Asking costs no call.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest time between two looks at machines that wait.
const MIN_INTERVAL: Duration = Duration::from_secs(5);

/// Brings load balancers to the set of nodes.
pub(crate) struct NodeSync {
    cloud: Arc<dyn LoadBalancers>,
    state: ClusterState,
    services: Arc<ServiceController>,
    observer: Arc<dyn Observer>,
    /// The set that all load balancers have. Taken over only after success, so that a failed change is
    /// not mistaken for a finished one.
    synced: Mutex<Option<NodeSet>>,
}

impl NodeSync {
    pub fn new(
        cloud: Arc<dyn LoadBalancers>,
        state: ClusterState,
        services: Arc<ServiceController>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self { cloud, state, services, observer, synced: Mutex::new(None) }
    }

    /// Takes the nodes of this moment as known: every Service is ensured with them when this program
    /// starts, and no load balancer has to be told of them once more.
    pub fn start_with_current(&self) {
        *self.synced.lock() = Some(NodeSet::of(&self.state.nodes()));
    }

    /// Compares, and asks the cloud where there is a difference.
    pub async fn reconcile(&self) -> Next {
        let nodes = NodeSet::of(&self.state.nodes());
        if self.synced.lock().as_ref() == Some(&nodes) {
            return self.look_at_waiting_nodes().await;
        }
        let served = self.services.served();
        if !self.services.serves_any() {
            *self.synced.lock() = Some(nodes);
            return Next::After(IDLE_INTERVAL);
        }
        let start = Instant::now();
        let outcome = self.update().await;
        self.observer.nodes_synced(start.elapsed(), outcome.is_ok());
        let recorder = self.services.recorder();
        match outcome {
            Ok(()) => {
                for service in &served {
                    if nodes.is_empty() {
                        let message = "There are no available nodes for LoadBalancer";
                        recorder.warning(service.as_ref(), "UnAvailableLoadBalancer", message);
                    } else {
                        let message = "Updated load balancer with new hosts";
                        recorder.normal(service.as_ref(), "UpdatedLoadBalancer", message);
                    }
                }
                *self.synced.lock() = Some(nodes);
                Next::After(MIN_INTERVAL)
            }
            Err(error) => {
                tracing::warn!(%error, nodes = nodes.len(), "failed to update load balancers with new nodes");
                let message =
                    format!("Error updating load balancer with new hosts {}, error: {error}", named(&nodes));
                for service in &served {
                    recorder.warning(service.as_ref(), "UpdateLoadBalancerFailed", message.clone());
                }
                match error {
                    ServiceError::Retry { after: Some(wait), .. } if !wait.is_zero() => Next::After(wait),
                    ServiceError::Retry { .. } | ServiceError::Refused { .. } => Next::Retry,
                }
            }
        }
    }

    /// The nodes are the same; machines among them that did not run may have started.
    async fn look_at_waiting_nodes(&self) -> Next {
        if self.cloud.look_at_nodes_after().is_some_and(|wait| wait.is_zero())
            && let Err(error) = self.update().await
        {
            tracing::warn!(%error, "failed to update load balancers with machines that did not run before");
        }
        Next::After(self.cloud.look_at_nodes_after().unwrap_or(IDLE_INTERVAL).max(MIN_INTERVAL))
    }

    async fn update(&self) -> Result<(), ServiceError> {
        let _guard = match self.services.lease() {
            Some(lease) => Some(lease.hold("update load balancer nodes").await?),
            None => None,
        };
        self.cloud.update_nodes().await
    }
}

fn named(nodes: &NodeSet) -> String {
    let names: Vec<_> = nodes.names().take(MAX_NAMES_IN_EVENT).collect();
    let list = format!("[{}]", names.join(" "));
    if nodes.len() > MAX_NAMES_IN_EVENT {
        format!("{list} [node names limited, total number of nodes: {}]", nodes.len())
    } else {
        list
    }
}
