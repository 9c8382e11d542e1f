//! The service controller's interface to a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s::{Notice, ObjectKey, Service};
use logical_time::LogicalTime;

use crate::{Drifted, Ensured, Looked, ServiceError, UpdateError};

/// The kinds of objects whose labels decide on which load balancer a Service is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FollowedLabels {
    /// The labels of the Service itself.
    pub of_services: bool,
    /// The labels of its Namespace.
    pub of_namespaces: bool,
    /// The labels of Nodes, which decide from which load balancer a Node gets traffic.
    pub of_nodes: bool,
}

/// The deletion of what a cloud holds of one Service.
#[async_trait]
pub trait Deletion: Send {
    /// Deletes everything that belongs to the Service alone (LB-045). Uses what was read when the deletion was prepared,
    /// unless [`LoadBalancers::forget_observed`] was called since. Returns notices for the Service's owner.
    ///
    /// # Guarantees
    ///
    /// * Nothing else is removed: what another Service uses or claims stays, and a public IP is deleted only in the
    ///   version that was proven to have no other owner.
    /// * Idempotent, and may be dropped at any point, as [`LoadBalancers::ensure`].
    /// * A public IP is kept if the cloud says that something else refers to it; a notice reports it.
    ///
    /// # Errors
    ///
    /// If something is still there.
    async fn run(self: Box<Self>) -> Result<Vec<Notice>, ServiceError>;
}

/// Load balancers for Services. Services and Nodes come from the [`ClusterState`](crate::ClusterState) that controllers
/// and provider share.
///
/// Any calls may run concurrently. The implementation groups writes to shared resources, which is why the controllers
/// request many Services at once. A call may be dropped at any point; the next one continues from the observed state.
#[async_trait]
pub trait LoadBalancers: Send + Sync + 'static {
    /// Creates or updates everything that a Service needs, based on data read after `newer_than`, the event that caused
    /// the call.
    ///
    /// # Guarantees
    ///
    /// * Uses data read after this moment if the event was answered before.
    /// * Idempotent: nothing is written without a difference.
    /// * May be dropped, and the process killed, at any point: the next call continues from the observed state.
    /// * Resources of other owners are not changed, and no address is bought unless a load balancer has room for it.
    ///
    /// # Assumes
    ///
    /// * The [`ClusterState`](crate::ClusterState) holds all Services and Nodes. Until it reports so, absence proves
    ///   nothing.
    /// * No other call for this Service runs at the same time.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Refused`] if only a change of the Service helps, [`ServiceError::Retry`] for every error that
    /// may pass.
    async fn ensure(&self, service: &Arc<Service>, newer_than: LogicalTime) -> Result<Ensured, ServiceError>;

    /// Reads what is left of a Service, as in [`Self::ensure`]. Returns its deletion; `None` if nothing is left.
    ///
    /// # Errors
    ///
    /// If the cloud could not answer.
    async fn prepare_deletion(
        &self,
        service: &Arc<Service>,
        newer_than: LogicalTime,
    ) -> Result<Option<Box<dyn Deletion>>, ServiceError>;

    /// Brings the members of every load balancer in line with the current Nodes, based on data read after `newer_than`.
    /// Services that also [follow Nodes](Self::follows_nodes) have to be ensured as well.
    ///
    /// # Errors
    ///
    /// If a machine or a load balancer could not be changed; the others are.
    async fn update_nodes(&self, newer_than: LogicalTime) -> Result<(), UpdateError>;

    /// The Services that had parts on a load balancer when the load balancers were last read or written.
    fn seen_on_load_balancers(&self) -> BTreeSet<ObjectKey>;

    /// Compares everything that Services have with what they want, and repairs the differences. Writes nothing if there
    /// are none.
    async fn look_again(&self) -> Looked;

    /// Waits until parts of Services differ from what the Services want, and returns these Services. May be dropped
    /// without losing any of them.
    async fn drifted(&self) -> Vec<Drifted>;

    /// Whether a Service's resources contain the Nodes' own addresses, so that it has to be ensured again when the
    /// Nodes change.
    fn follows_nodes(&self, service: &Arc<Service>) -> bool;

    /// The labels that decide on which load balancer a Service is. When they change, the Service is ensured again.
    fn follows_labels(&self) -> FollowedLabels {
        FollowedLabels::default()
    }

    /// Explains why no Node can carry traffic: which Nodes are excluded, why, and the remedy. `None` if at least one
    /// Node can.
    fn why_no_nodes(&self) -> Option<String> {
        None
    }

    /// Whether machines wait for traffic because they do not run yet.
    fn waits_for_machines(&self) -> bool;

    /// Adds the waiting machines that run by now to the load balancers, based on data read after `newer_than`.
    ///
    /// # Errors
    ///
    /// As for [`Self::update_nodes`].
    async fn update_waiting_machines(&self, newer_than: LogicalTime) -> Result<(), ServiceError>;

    /// Whether draining nodes are reported to the load balancers at once ([`Self::update_draining_nodes`]).
    fn drains_nodes(&self) -> bool;

    /// Stops new connections to the Nodes that [drain](k8s::Node::is_draining), and allows them again on Nodes that no
    /// longer drain. Waits only for writes in flight. Returns the Nodes behind load balancers, each with whether it
    /// takes no new connections.
    ///
    /// # Errors
    ///
    /// If a load balancer could not be changed; the others are.
    async fn update_draining_nodes(&self) -> Result<BTreeMap<String, bool>, ServiceError>;

    /// If Services with traffic policy `Local` have pools of their own, with the Nodes of their endpoints: how long
    /// changes of endpoints are collected before [`Self::update_local_pools`]. `None` if there are no such pools;
    /// endpoints need not be watched then.
    fn local_pool_interval(&self) -> Option<Duration>;

    /// Brings the pools of these Services in line with their current endpoints. Returns the outcome for each Service
    /// that has a pool of its own; the others are left out.
    async fn update_local_pools(
        &self,
        services: &[ObjectKey],
    ) -> BTreeMap<ObjectKey, Result<(), ServiceError>>;

    /// Drops the observed state of shared resources because another program wrote them. Later reads are fresh.
    fn forget_observed(&self);

    /// Stops all writing at once and for good, because the program ends. The next leader continues what is cut short.
    fn stop(&self);
}
