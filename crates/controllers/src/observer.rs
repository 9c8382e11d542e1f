//! Hooks for metrics.

use std::time::Duration;

use cloud::Looked;
use k8s::{ObjectKey, Service};
use tokio::time::Instant;

use crate::ipam::RangeTurnover;

/// Receives measurements. Every method does nothing by default; none may block.
///
/// The names follow the metrics that upstream exports.
pub trait Observer: Send + Sync + 'static {
    /// A key entered a queue (`workqueue_adds_total`); `depth` keys are ready now (`workqueue_depth`).
    fn queue_added(&self, _queue: &'static str, _depth: usize) {}
    /// A queue has at most so many workers (`controller_runtime_max_concurrent_reconciles`).
    fn queue_opened(&self, _queue: &'static str, _workers: usize) {}
    /// A worker took a key at this instant, which had been ready for this long (`workqueue_queue_duration_seconds`).
    fn queue_taken(&self, _queue: &'static str, _at: Instant, _waited: Duration, _depth: usize) {}
    /// A worker that took its key at this instant ended after this long (`workqueue_work_duration_seconds`).
    fn queue_worked(&self, _queue: &'static str, _taken: Instant, _worked: Duration) {}
    /// A key failed and waits for its backoff (`workqueue_retries_total`).
    fn queue_retried(&self, _queue: &'static str) {}
    /// The result of reconciling a key (`controller_runtime_reconcile_total`).
    fn reconciled(&self, _queue: &'static str, _result: Reconciled) {}
    /// An operation on a Service's load balancer ended (`provider_reconcile_*`, `cloudprovider_azure_op_*`).
    fn service_operated(
        &self,
        _service: &Service,
        _operation: ServiceOperation,
        _took: Duration,
        _succeeded: bool,
    ) {
    }
    /// A Service has no load balancer any more.
    fn service_forgotten(&self, _service: &ObjectKey) {}
    /// All load balancers were updated with a new set of nodes, or that failed
    /// (`service_controller_nodesync_latency_seconds`, `service_controller_nodesync_error_total`,
    /// `service_controller_loadbalancer_sync_total`).
    fn nodes_synced(&self, _took: Duration, _succeeded: bool) {}
    /// From now on the cloud is compared with what Services want at intervals, or no longer.
    fn looks_again(&self, _looks: bool) {}
    /// Everything that Services have in the cloud was compared with what they want (`provider_resync_*`).
    fn looked_again(&self, _took: Duration, _looked: &Looked) {}
    /// Load balancers were updated with draining nodes, or that failed.
    fn draining_updated(&self, _took: Duration, _succeeded: bool) {}
    /// The pools of Services with policy `Local` were updated with their endpoints, or that failed
    /// (`services_local/update_backend_pool`).
    fn local_pools_updated(&self, _took: Duration, _succeeded: bool) {}
    /// The routes to the pods of all nodes were compared (`route_controller_route_sync_total`).
    fn routes_synced(&self) {}
    /// Nodes got or released parts of a cluster range (`node_ipam_controller_cidrset_cidrs_allocations_total`,
    /// `node_ipam_controller_cidrset_cidrs_releases_total`, `node_ipam_controller_cidrset_usage_cidrs`,
    /// `node_ipam_controller_cidrset_allocation_tries_per_request`).
    fn ranges_changed(&self, _change: &RangeTurnover) {}
    /// A node lost its uninitialized taint at this age
    /// (`node_controller_cloud_provider_taint_removal_delay_seconds`).
    fn taint_removed(&self, _age: Duration) {}
    /// A node was first synced completely at this age (`node_controller_initial_node_sync_delay_seconds`).
    fn node_initialized(&self, _age: Duration) {}
    /// This process leads, or no longer does (`leader_election_master_status`).
    fn leading(&self, _lease: &str, _leads: bool) {}
    /// A renewal took the slow path, with a read before the write (`leader_election_slowpath_total`).
    fn leader_election_slow_path(&self, _lease: &str) {}
    /// A controller started or ended (`running_managed_controllers`).
    fn controller_running(&self, _controller: &'static str, _running: bool) {}
    /// An event was dropped, because the queue was full or by the limit per object.
    fn event_dropped(&self) {}
}

/// An operation on a Service's load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceOperation {
    /// Reading what is left of it.
    Get,
    /// Creating or changing it.
    Ensure,
    /// Deleting it.
    Delete,
}

/// The result of reconciling a key, in the terms of controller-runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reconciled {
    /// The desired state is reached, or another actor has to act.
    Success,
    /// It is reconciled again after a known time.
    RequeueAfter,
    /// It failed, and is retried after the backoff.
    Error,
}

impl Reconciled {
    /// The label value in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error => "error",
        }
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
