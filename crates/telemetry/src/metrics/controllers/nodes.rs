//! Nodes, their ranges and their routes, under the names of Kubernetes' controllers.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::metrics::registry::{Histograms, Metrics};

/// Upper bounds of `node_ipam_controller_cidrset_allocation_tries_per_request`, which dashboards rely on.
const TRIES_BUCKETS: [f64; 5] = [1.0, 5.0, 25.0, 125.0, 625.0];

/// A cluster range, as a label whose name cannot be a field of a struct.
type Range = [(&'static str, String); 1];

/// The metrics of nodes. Cheap to clone.
#[derive(Clone)]
pub struct NodeMetrics {
    taint_removal: Histogram,
    initial_sync: Histogram,
    route_syncs: Counter,
    ranges_allocated: Family<Range, Counter>,
    ranges_released: Family<Range, Counter>,
    ranges_used: Family<Range, Gauge<f64, AtomicU64>>,
    ranges_tries: Histograms<Range>,
}

impl NodeMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        // One second, four, … 1024.
        let delay = || Histogram::new(exponential_buckets(1.0, 4.0, 6));
        Self {
            taint_removal: registry.register(
                "node_controller_cloud_provider_taint_removal_delay_seconds",
                "Age of nodes when they lost the taint of uninitialised ones",
                delay(),
            ),
            initial_sync: registry.register(
                "node_controller_initial_node_sync_delay_seconds",
                "Age of nodes when they were complete",
                delay(),
            ),
            route_syncs: registry
                .add("route_controller_route_sync", "Comparisons of the routes to the pods of all nodes"),
            ranges_allocated: registry.add(
                "node_ipam_controller_cidrset_cidrs_allocations",
                "Ranges that nodes got, or had already, and reserved ones",
            ),
            ranges_released: registry
                .add("node_ipam_controller_cidrset_cidrs_releases", "Ranges that nodes gave back"),
            ranges_used: registry.add(
                "node_ipam_controller_cidrset_usage_cidrs",
                "The share of the cluster's addresses that is held, from 0 to 1",
            ),
            ranges_tries: registry.add_histograms(
                "node_ipam_controller_cidrset_allocation_tries_per_request",
                "How many held ranges a search for a free one met",
                || Histogram::new(TRIES_BUCKETS),
            ),
        }
    }

    /// A node lost the taint of uninitialised ones at this age.
    pub fn taint_removed(&self, age: Duration) {
        self.taint_removal.observe(age.as_secs_f64());
    }

    /// A node was complete at this age.
    pub fn initialised(&self, age: Duration) {
        self.initial_sync.observe(age.as_secs_f64());
    }

    /// Records a comparison of the routes to the pods of all nodes.
    pub fn routes_synced(&self) {
        self.route_syncs.inc();
    }

    /// Records changes of a cluster range: how many subranges were allocated and released, how many held ones each
    /// search met, and the share of its addresses that is held now.
    pub fn ranges(&self, cluster: &str, allocated: u64, released: u64, met: &[u64], used: f64) {
        let label = [("clusterCIDR", cluster.to_owned())];
        self.ranges_allocated.get_or_create(&label).inc_by(allocated);
        self.ranges_released.get_or_create(&label).inc_by(released);
        self.ranges_used.get_or_create(&label).set(used);
        let tries = self.ranges_tries.get_or_create(&label);
        met.iter().for_each(|met| tries.observe(*met as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_carry_the_names_that_dashboards_know() {
        let all = Metrics::default();
        let metrics = NodeMetrics::of(&all);
        metrics.routes_synced();
        metrics.taint_removed(Duration::from_secs(3));
        metrics.initialised(Duration::from_secs(300));
        metrics.ranges("10.244.0.0/16", 3, 1, &[0, 7], 0.25);
        let text = all.encode();
        for line in [
            "route_controller_route_sync_total 1",
            "node_controller_cloud_provider_taint_removal_delay_seconds_bucket{le=\"4.0\"} 1",
            "node_controller_initial_node_sync_delay_seconds_bucket{le=\"256.0\"} 0",
            "node_controller_initial_node_sync_delay_seconds_bucket{le=\"1024.0\"} 1",
            "node_ipam_controller_cidrset_cidrs_allocations_total{clusterCIDR=\"10.244.0.0/16\"} 3",
            "node_ipam_controller_cidrset_cidrs_releases_total{clusterCIDR=\"10.244.0.0/16\"} 1",
            "node_ipam_controller_cidrset_usage_cidrs{clusterCIDR=\"10.244.0.0/16\"} 0.25",
            "node_ipam_controller_cidrset_allocation_tries_per_request_bucket{le=\"25.0\",clusterCIDR=\"10.244.0.0/16\"} 2",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
