//! What the service controller asks of a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s::{Notice, ObjectKey, Service};

use crate::{Drifted, Ensured, LogicalTime, Looked, ServiceError, UpdateError};

/// Whose labels decide on which load balancer a Service is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FollowedLabels {
    /// Those of the Service itself.
    pub of_services: bool,
    /// Those of its Namespace.
    pub of_namespaces: bool,
    /// Those of Nodes decide which load balancer their traffic comes from.
    pub of_nodes: bool,
}

/// Load balancers for Services. Services and Nodes are taken from the [`ClusterState`](crate::ClusterState)
/// that controllers and provider share.
///
/// Every call may run at the same time as any other; grouping writes to shared resources is the
/// implementation's business, and the reason why the controllers ask for many Services at once. Every call
/// may be dropped at any point: the next one takes up what is there.
#[async_trait]
pub trait LoadBalancers: Send + Sync + 'static {
    /// Makes everything that a Service wants, judged by what was read after `newer_than`, the event that
    /// asked for it. Idempotent.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Refused`] if only a change of the Service helps, [`ServiceError::Retry`] for
    /// everything that may pass.
    async fn ensure(&self, service: &Arc<Service>, newer_than: LogicalTime) -> Result<Ensured, ServiceError>;

    /// Whether anything is left of a Service, judged as in [`Self::ensure`].
    ///
    /// # Errors
    ///
    /// If the cloud could not say.
    async fn exists(&self, service: &Arc<Service>, newer_than: LogicalTime) -> Result<bool, ServiceError>;

    /// Removes everything that belongs to a Service alone, and nothing else, judged as in [`Self::ensure`]; succeeds
    /// if nothing is left. Gives what to tell the Service's owner.
    ///
    /// # Errors
    ///
    /// If something is still there.
    async fn delete(
        &self,
        service: &Arc<Service>,
        newer_than: LogicalTime,
    ) -> Result<Vec<Notice>, ServiceError>;

    /// Brings the members of every load balancer to the Nodes as they are now, judged by what was read after
    /// `newer_than`. Services that [follow Nodes](Self::follows_nodes) besides have to be ensured for that.
    ///
    /// # Errors
    ///
    /// If a machine or a load balancer could not be changed; the others are.
    async fn update_nodes(&self, newer_than: LogicalTime) -> Result<(), UpdateError>;

    /// The Services of which parts were seen on a load balancer when these were last read or written.
    fn seen_on_load_balancers(&self) -> BTreeSet<ObjectKey>;

    /// Looks again at what all Services have, and repairs what differs from what they want. Writes nothing where
    /// nothing differs.
    async fn look_again(&self) -> Looked;

    /// Waits until parts of Services were found to be other than they want them, and gives these Services. May be
    /// dropped without losing any.
    async fn drifted(&self) -> Vec<Drifted>;

    /// Whether what a Service has in the cloud names the Nodes' own addresses, so that it has to be ensured
    /// again if the Nodes change.
    fn follows_nodes(&self, service: &Service) -> bool;

    /// The labels that decide on which load balancer a Service is: those that change are a reason to ensure it again.
    fn follows_labels(&self) -> FollowedLabels {
        FollowedLabels::default()
    }

    /// Says why no Node can carry traffic: which are kept out by what, and the remedy. `None` where one can.
    fn why_no_nodes(&self) -> Option<String> {
        None
    }

    /// Whether machines should get traffic and could not yet, because they do not run.
    fn waits_for_machines(&self) -> bool;

    /// Brings the machines that are waited for behind the load balancers, as far as they run by now, judged by
    /// what was read after `newer_than`.
    ///
    /// # Errors
    ///
    /// As for [`Self::update_nodes`].
    async fn update_waiting_machines(&self, newer_than: LogicalTime) -> Result<(), ServiceError>;

    /// Whether nodes that drain are told to the load balancers at once ([`Self::update_draining_nodes`]).
    fn drains_nodes(&self) -> bool;

    /// Lets the Nodes that [drain](k8s::Node::is_draining) take no new connections, and those that do not any more
    /// take them again. Waits for nothing but what is being written. Gives the Nodes behind load balancers, and
    /// whether they take no new connections.
    ///
    /// # Errors
    ///
    /// If a load balancer could not be changed; the others are.
    async fn update_draining_nodes(&self) -> Result<BTreeMap<String, bool>, ServiceError>;

    /// Where Services with traffic policy `Local` have pools of their own, of the Nodes with their endpoints: how long
    /// changes of endpoints are gathered before [`Self::update_local_pools`]. Absent where they have none; then nobody
    /// has to know the endpoints.
    fn local_pool_interval(&self) -> Option<Duration>;

    /// Brings the pools of these Services to their endpoints as they are now. Gives what came of each Service that has
    /// a pool of its own there; the others are not worth a word.
    async fn update_local_pools(
        &self,
        services: &[ObjectKey],
    ) -> BTreeMap<ObjectKey, Result<(), ServiceError>>;

    /// Forgets what was observed of shared resources, because another program wrote them. What is read
    /// afterwards is fresh.
    fn forget_observed(&self);

    /// Ends all writing at once and for good, because the program ends. What is cut short is taken up by
    /// whoever comes next.
    fn stop(&self);
}
