//! The port through which controllers ask for things in the cloud.

use std::sync::Arc;

use async_trait::async_trait;
use k8s::{Node, Service};
use provider::{ClusterState, Ensured, Existence, Instance, Notice, Provider, ServiceError};

/// What the controllers need of a cloud: intents go in, plain answers come out.
///
/// Every call may run at the same time as any other; grouping writes to shared resources is the
/// implementation's business, and the reason why the controllers ask for many Services at once.
#[async_trait]
pub trait Cloud: Send + Sync + 'static {
    /// Makes everything that a Service wants, with the nodes that are in [`Self::state`].
    async fn ensure(&self, service: &Arc<Service>) -> Result<Ensured, ServiceError>;

    /// Whether anything is left of a Service (`spec/load-balancer.md` 2.2).
    async fn exists(&self, service: &Arc<Service>) -> Result<bool, ServiceError>;

    /// Removes everything that belongs to a Service alone; succeeds where nothing is left.
    async fn delete(&self, service: &Arc<Service>) -> Result<Vec<Notice>, ServiceError>;

    /// Brings every load balancer to the nodes that are in [`Self::state`].
    async fn update_nodes(&self) -> Result<(), ServiceError>;

    /// The machine of a node, as it is no earlier than now.
    async fn instance(&self, node: &Node) -> Existence<Instance>;

    /// Forgets what was observed of shared resources, because another program wrote them
    /// (`spec/load-balancer.md` 2.1, LB-041). What is read afterwards is fresh.
    fn forget_observed(&self);

    /// Where the controllers put the Services and Nodes that they see.
    fn state(&self) -> &ClusterState;
}

#[async_trait]
impl Cloud for Provider {
    async fn ensure(&self, service: &Arc<Service>) -> Result<Ensured, ServiceError> {
        Self::ensure(self, service).await
    }

    async fn exists(&self, service: &Arc<Service>) -> Result<bool, ServiceError> {
        Self::exists(self, service).await
    }

    async fn delete(&self, service: &Arc<Service>) -> Result<Vec<Notice>, ServiceError> {
        Self::delete(self, service).await
    }

    async fn update_nodes(&self) -> Result<(), ServiceError> {
        Self::update_nodes(self).await
    }

    async fn instance(&self, node: &Node) -> Existence<Instance> {
        Self::instance(self, node).await
    }

    fn forget_observed(&self) {
        Self::forget_observed(self);
    }

    fn state(&self) -> &ClusterState {
        Self::state(self)
    }
}
