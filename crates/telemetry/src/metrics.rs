//! Metrics under the names that dashboards know.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds, in seconds, of `arm_request_duration_seconds`, which dashboards rely on.
const ARM_BUCKETS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0, 600.0];

/// Upper bounds, in seconds, of `provider_reconcile_duration_seconds`, which dashboards rely on.
const RECONCILE_BUCKETS: [f64; 9] = [0.1, 0.2, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 600.0];

/// Upper bounds of `node_ipam_controller_cidrset_allocation_tries_per_request`, which dashboards rely on.
const TRIES_BUCKETS: [f64; 5] = [1.0, 5.0, 25.0, 125.0, 625.0];

/// What a call to Resource Manager was made on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ArmRequest {
    /// The subscription that pays for the call.
    pub subscription_id: String,
    /// The resource group, in lower case.
    pub resource_group: String,
    /// The kind of resource, such as `LoadBalancer`.
    pub resource: String,
    /// `get`, `list`, `create_or_update` or `delete`.
    pub method: String,
}

/// A failed call to Resource Manager.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ArmFailure {
    subscription_id: String,
    resource_group: String,
    resource: String,
    method: String,
    status_code: String,
    error_code: String,
}

/// How a call to Resource Manager ended. The outcomes exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArmOutcome {
    /// As asked.
    Success,
    /// Azure said to come back later.
    Throttled,
    /// Anything else.
    Failed {
        /// The HTTP status; 0 where no answer came.
        status: u16,
        /// Azure's error code; empty where no answer came.
        code: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    name: String,
}

/// One of the cluster's ranges, under a name that no member of a struct can have.
type Range = [(&'static str, String); 1];

fn range(cluster: &str) -> Range {
    [("clusterCIDR", cluster.to_owned())]
}

/// The metrics of a process. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    arm_duration: Family<ArmRequest, Histogram, fn() -> Histogram>,
    arm_errors: Family<ArmFailure, Counter>,
    arm_throttled: Family<ArmRequest, Counter>,
    reconcile_duration: Family<Named, Histogram, fn() -> Histogram>,
    reconcile_errors: Family<Named, Counter>,
    leader: Family<Named, Gauge>,
    route_syncs: Counter,
    ranges_allocated: Family<Range, Counter>,
    ranges_released: Family<Range, Counter>,
    ranges_used: Family<Range, Gauge<f64, AtomicU64>>,
    ranges_tries: Family<Range, Histogram, fn() -> Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        let arm_duration =
            Family::new_with_constructor((|| Histogram::new(ARM_BUCKETS)) as fn() -> Histogram);
        let reconcile_duration =
            Family::new_with_constructor((|| Histogram::new(RECONCILE_BUCKETS)) as fn() -> Histogram);
        let ranges_tries =
            Family::new_with_constructor((|| Histogram::new(TRIES_BUCKETS)) as fn() -> Histogram);
        let metrics = Self {
            registry: Arc::default(),
            arm_duration,
            arm_errors: Family::default(),
            arm_throttled: Family::default(),
            reconcile_duration,
            reconcile_errors: Family::default(),
            leader: Family::default(),
            route_syncs: Counter::default(),
            ranges_allocated: Family::default(),
            ranges_released: Family::default(),
            ranges_used: Family::default(),
            ranges_tries,
        };
        let mut registry = metrics.registry.lock();
        let r = &mut *registry;
        r.register(
            "arm_request_duration_seconds",
            "Duration of operations on Resource Manager, with the polls that the write itself waits for",
            metrics.arm_duration.clone(),
        );
        r.register(
            "arm_request_errors_counter",
            "Operations on Resource Manager that failed",
            metrics.arm_errors.clone(),
        );
        r.register(
            "arm_request_throttle_counter",
            "Operations on Resource Manager that were throttled",
            metrics.arm_throttled.clone(),
        );
        r.register(
            "provider_reconcile_duration_seconds",
            "Duration of the operations on a Service's load balancer",
            metrics.reconcile_duration.clone(),
        );
        r.register(
            "provider_reconcile_errors_counter",
            "Operations on a Service's load balancer that failed",
            metrics.reconcile_errors.clone(),
        );
        r.register("leader_election_master_status", "Whether this replica leads", metrics.leader.clone());
        r.register(
            "route_controller_route_sync",
            "How often the routes to the pods of all nodes were looked at",
            metrics.route_syncs.clone(),
        );
        r.register(
            "node_ipam_controller_cidrset_cidrs_allocations",
            "Ranges that nodes got, or had already, and reserved ones",
            metrics.ranges_allocated.clone(),
        );
        r.register(
            "node_ipam_controller_cidrset_cidrs_releases",
            "Ranges that nodes gave back",
            metrics.ranges_released.clone(),
        );
        r.register(
            "node_ipam_controller_cidrset_usage_cidrs",
            "The share of the cluster's addresses that is held, from 0 to 1",
            metrics.ranges_used.clone(),
        );
        r.register(
            "node_ipam_controller_cidrset_allocation_tries_per_request",
            "How many held ranges a search for a free one met",
            metrics.ranges_tries.clone(),
        );
        drop(registry);
        metrics
    }
}

impl Metrics {
    /// Takes over one operation on Resource Manager.
    pub fn arm_request(&self, request: &ArmRequest, duration: Duration, outcome: &ArmOutcome) {
        self.arm_duration.get_or_create(request).observe(duration.as_secs_f64());
        match outcome {
            ArmOutcome::Success => {}
            ArmOutcome::Throttled => {
                self.arm_throttled.get_or_create(request).inc();
            }
            ArmOutcome::Failed { status, code } => {
                let ArmRequest { subscription_id, resource_group, resource, method } = request.clone();
                let (status_code, error_code) = (status.to_string(), code.clone());
                let failure =
                    ArmFailure { subscription_id, resource_group, resource, method, status_code, error_code };
                self.arm_errors.get_or_create(&failure).inc();
            }
        }
    }

    /// Takes over one operation on a Service's load balancer, such as `EnsureLoadBalancer`.
    pub fn reconcile(&self, name: &str, duration: Duration, failed: bool) {
        let label = Named { name: name.to_owned() };
        self.reconcile_duration.get_or_create(&label).observe(duration.as_secs_f64());
        if failed {
            self.reconcile_errors.get_or_create(&label).inc();
        }
    }

    /// Takes over whether this replica holds the named lease.
    pub fn leading(&self, lease: &str, leads: bool) {
        self.leader.get_or_create(&Named { name: lease.to_owned() }).set(i64::from(leads));
    }

    /// Takes over that the routes to the pods of all nodes were looked at.
    pub fn routes_synced(&self) {
        self.route_syncs.inc();
    }

    /// Takes over what has become of one of the cluster's ranges: how many parts were given and given back, how many held
    /// ones each search met, and which share of its addresses is held now.
    pub fn ranges(&self, cluster: &str, allocated: u64, released: u64, met: &[u64], used: f64) {
        let label = range(cluster);
        self.ranges_allocated.get_or_create(&label).inc_by(allocated);
        self.ranges_released.get_or_create(&label).inc_by(released);
        self.ranges_used.get_or_create(&label).set(used);
        let tries = self.ranges_tries.get_or_create(&label);
        met.iter().for_each(|met| tries.observe(*met as f64));
    }

    /// All metrics as text for Prometheus.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _infallible = text::encode(&mut out, &self.registry.lock());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_carry_the_names_that_dashboards_know() {
        let metrics = Metrics::default();
        let request = ArmRequest {
            subscription_id: "s".into(),
            resource_group: "rg".into(),
            resource: "LoadBalancer".into(),
            method: "create_or_update".into(),
        };
        metrics.arm_request(&request, Duration::from_secs(3), &ArmOutcome::Success);
        metrics.arm_request(&request, Duration::from_secs(1), &ArmOutcome::Throttled);
        let failed = ArmOutcome::Failed { status: 412, code: "PreconditionFailed".into() };
        metrics.arm_request(&request, Duration::from_secs(1), &failed);
        metrics.reconcile("EnsureLoadBalancer", Duration::from_secs(4), true);
        metrics.leading("cloud-controller-manager", true);
        metrics.routes_synced();
        metrics.ranges("10.244.0.0/16", 3, 1, &[0, 7], 0.25);
        let text = metrics.encode();
        for line in [
            "arm_request_duration_seconds_count{subscription_id=\"s\",resource_group=\"rg\",resource=\"LoadBalancer\",method=\"create_or_update\"} 3",
            "arm_request_throttle_counter_total{subscription_id=\"s\",resource_group=\"rg\",resource=\"LoadBalancer\",method=\"create_or_update\"} 1",
            "status_code=\"412\",error_code=\"PreconditionFailed\"} 1",
            "provider_reconcile_errors_counter_total{name=\"EnsureLoadBalancer\"} 1",
            "leader_election_master_status{name=\"cloud-controller-manager\"} 1",
            "route_controller_route_sync_total 1",
            "node_ipam_controller_cidrset_cidrs_allocations_total{clusterCIDR=\"10.244.0.0/16\"} 3",
            "node_ipam_controller_cidrset_cidrs_releases_total{clusterCIDR=\"10.244.0.0/16\"} 1",
            "node_ipam_controller_cidrset_usage_cidrs{clusterCIDR=\"10.244.0.0/16\"} 0.25",
            "node_ipam_controller_cidrset_allocation_tries_per_request_bucket{le=\"25.0\",clusterCIDR=\"10.244.0.0/16\"} 2",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
