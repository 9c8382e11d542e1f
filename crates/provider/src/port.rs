//! The provider as the controllers see it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloud::{
    Ensured, Existence, Instance, LoadBalancers, LogicalTime, Machines, Notice, Presence, ServiceError,
};
use k8s::{Node, Service};

use crate::Provider;

#[async_trait]
impl LoadBalancers for Provider {
    async fn ensure(&self, service: &Arc<Service>, newer_than: LogicalTime) -> Result<Ensured, ServiceError> {
        Self::ensure(self, service, newer_than).await
    }

    async fn exists(&self, service: &Arc<Service>, newer_than: LogicalTime) -> Result<bool, ServiceError> {
        Self::exists(self, service, newer_than).await
    }

    async fn delete(
        &self,
        service: &Arc<Service>,
        newer_than: LogicalTime,
    ) -> Result<Vec<Notice>, ServiceError> {
        Self::delete(self, service, newer_than).await
    }

    async fn update_nodes(&self) -> Result<(), ServiceError> {
        Self::update_nodes(self).await
    }

    fn look_at_nodes_after(&self) -> Option<Duration> {
        self.0.membership.look_again_after()
    }

    fn forget_observed(&self) {
        Self::forget_observed(self);
    }

    fn stop(&self) {
        self.0.stop.cancel();
    }
}

#[async_trait]
impl Machines for Provider {
    async fn presence(&self, node: &Node, newer_than: LogicalTime) -> Existence<Presence> {
        self.0.presence(node, newer_than).await
    }

    async fn describe(&self, node: &Node, newer_than: LogicalTime) -> Existence<Instance> {
        self.0.describe(node, newer_than).await
    }
}
