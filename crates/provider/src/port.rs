//! The provider's implementation of the controllers' interface.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloud::{
    Deletion, Drifted, Ensured, Existence, FollowedLabels, Instance, LoadBalancers, LogicalTime, Looked,
    Machines, Presence, ServiceError, UpdateError,
};
use k8s::{Node, ObjectKey, Service};

use crate::failure::service_error;
use crate::provider::Provider;

#[async_trait]
impl LoadBalancers for Provider {
    async fn ensure(&self, service: &Arc<Service>, newer_than: LogicalTime) -> Result<Ensured, ServiceError> {
        self.0.ensure(service, newer_than).await
    }

    async fn prepare_deletion(
        &self,
        service: &Arc<Service>,
        newer_than: LogicalTime,
    ) -> Result<Option<Box<dyn Deletion>>, ServiceError> {
        let deletion = self.0.prepare_deletion(service, newer_than).await?;
        Ok(deletion.map(|deletion| Box::new(deletion) as Box<dyn Deletion>))
    }

    async fn update_nodes(&self, newer_than: LogicalTime) -> Result<(), UpdateError> {
        self.0.update_nodes(newer_than).await.map_err(|unfinished| self.0.update_error(unfinished))
    }

    fn seen_on_load_balancers(&self) -> BTreeSet<ObjectKey> {
        self.0.seen_on_load_balancers()
    }

    async fn look_again(&self) -> Looked {
        self.0.look_again().await
    }

    async fn drifted(&self) -> Vec<Drifted> {
        self.0.drift.next().await
    }

    fn follows_nodes(&self, service: &Arc<Service>) -> bool {
        let intent = || self.0.parsed.lock().intent(&self.0.cluster, service);
        service.is_to_be_served() && intent().is_ok_and(|intent| intent.arrives_at_nodes())
    }

    fn follows_labels(&self) -> FollowedLabels {
        let config = &self.0.cluster.config;
        if !config.uses_multiple_standard_load_balancers() {
            return FollowedLabels::default();
        }
        let entries = &config.multiple_standard_load_balancer_configurations;
        FollowedLabels {
            of_services: entries.iter().any(|entry| entry.service_label_selector.is_some()),
            of_namespaces: config.follows_namespace_labels(),
            of_nodes: entries.iter().any(|entry| entry.node_selector.is_some()),
        }
    }

    fn why_no_nodes(&self) -> Option<String> {
        planner::exclusion::why_no_nodes(&self.0.cluster, &self.0.state.nodes())
    }

    fn waits_for_machines(&self) -> bool {
        self.0.membership.is_waiting() || self.0.member_writes.is_waiting() || self.0.waits_for_sets()
    }

    async fn update_waiting_machines(&self, newer_than: LogicalTime) -> Result<(), ServiceError> {
        self.0.membership.join_waiting(newer_than).await.map_err(service_error)?;
        if self.0.member_writes.is_waiting() {
            self.0
                .share_all_nodes(newer_than)
                .await
                .map_err(|unfinished| service_error(unfinished.failure))?;
        }
        if self.0.waits_for_sets() {
            self.0.update_nodes(newer_than).await.map_err(|unfinished| service_error(unfinished.failure))?;
        }
        Ok(())
    }

    fn drains_nodes(&self) -> bool {
        self.0.cluster.config.enable_load_balancer_admin_state
    }

    async fn update_draining_nodes(&self) -> Result<BTreeMap<String, bool>, ServiceError> {
        self.0.update_draining(self.0.observed.started).await.map_err(service_error)
    }

    fn local_pool_interval(&self) -> Option<Duration> {
        let cluster = &self.0.cluster;
        cluster.has_local_pools().then_some(cluster.config.load_balancer_backend_pool_update_interval)
    }

    async fn update_local_pools(
        &self,
        services: &[ObjectKey],
    ) -> BTreeMap<ObjectKey, Result<(), ServiceError>> {
        let answers = self.0.update_local_pools(services).await.into_iter();
        answers.map(|(key, answer)| (key, answer.map_err(service_error))).collect()
    }

    fn forget_observed(&self) {
        self.0.forget_observed();
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
