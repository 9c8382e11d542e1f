//! Metrics of a cloud's controllers: load balancers of Services, routes, pod ranges.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::registry::{Histograms, Metrics, Named};

/// Upper bounds, in seconds, of `provider_reconcile_duration_seconds`, which dashboards rely on.
const RECONCILE_BUCKETS: [f64; 9] = [0.1, 0.2, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 600.0];

/// Upper bounds of `node_ipam_controller_cidrset_allocation_tries_per_request`, which dashboards rely on.
const TRIES_BUCKETS: [f64; 5] = [1.0, 5.0, 25.0, 125.0, 625.0];

/// A cluster range, as a label whose name cannot be a field of a struct.
type Range = [(&'static str, String); 1];

/// The kind of resource that differed.
type Kind = [(&'static str, String); 1];

fn range(cluster: &str) -> Range {
    [("clusterCIDR", cluster.to_owned())]
}

/// The metrics of a cloud's controllers. Cheap to clone.
#[derive(Clone)]
pub struct CloudMetrics {
    reconcile_duration: Histograms<Named>,
    reconcile_errors: Family<Named, Counter>,
    route_syncs: Counter,
    resync_last: Gauge<f64, AtomicU64>,
    resync_duration: Histogram,
    resync_failures: Counter,
    resync_differences: Family<Kind, Counter>,
    ranges_allocated: Family<Range, Counter>,
    ranges_released: Family<Range, Counter>,
    ranges_used: Family<Range, Gauge<f64, AtomicU64>>,
    ranges_tries: Histograms<Range>,
}

impl CloudMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        Self {
            reconcile_duration: registry.add_histograms(
                "provider_reconcile_duration_seconds",
                "Duration of the operations on a Service's load balancer",
                || Histogram::new(RECONCILE_BUCKETS),
            ),
            reconcile_errors: registry.add(
                "provider_reconcile_errors_counter",
                "Operations on a Service's load balancer that failed",
            ),
            route_syncs: registry
                .add("route_controller_route_sync", "Comparisons of the routes to the pods of all nodes"),
            resync_last: registry.add(
                "provider_resync_last_timestamp_seconds",
                "Time of the last comparison of everything that Services have in Azure, in seconds \
                 since 1970",
            ),
            resync_duration: registry.register(
                "provider_resync_duration_seconds",
                "Duration of comparisons of everything that Services have in Azure, including repairs",
                Histogram::new(RECONCILE_BUCKETS),
            ),
            resync_failures: registry.add(
                "provider_resync_failures",
                "Comparisons with Azure in which something could not be read or repaired",
            ),
            resync_differences: registry.add(
                "provider_resync_differences",
                "Differences between what Services have and what they want, by kind",
            ),
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

    /// Records an operation on a Service's load balancer, such as `EnsureLoadBalancer`.
    pub fn reconcile(&self, name: &str, duration: Duration, failed: bool) {
        let label = Named { name: name.to_owned() };
        self.reconcile_duration.get_or_create(&label).observe(duration.as_secs_f64());
        if failed {
            self.reconcile_errors.get_or_create(&label).inc();
        }
    }

    /// Records a comparison of the routes to the pods of all nodes.
    pub fn routes_synced(&self) {
        self.route_syncs.inc();
    }

    /// Records a comparison of everything that Services have in Azure: its duration, whether something failed, and the
    /// number of differences by kind. `now` is in seconds since 1970.
    pub fn resynced(
        &self,
        now: f64,
        duration: Duration,
        failed: bool,
        differences: &BTreeMap<&'static str, u64>,
    ) {
        self.resync_last.set(now);
        self.resync_duration.observe(duration.as_secs_f64());
        if failed {
            self.resync_failures.inc();
        }
        for (kind, count) in differences {
            self.resync_differences.get_or_create(&[("kind", (*kind).to_owned())]).inc_by(*count);
        }
    }

    /// Records changes of a cluster range: how many subranges were allocated and released, how many held ones each
    /// search met, and the share of its addresses that is held now.
    pub fn ranges(&self, cluster: &str, allocated: u64, released: u64, met: &[u64], used: f64) {
        let label = range(cluster);
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
        let metrics = CloudMetrics::of(&all);
        metrics.reconcile("EnsureLoadBalancer", Duration::from_secs(4), true);
        metrics.routes_synced();
        let differences = BTreeMap::from([("public_ip", 2)]);
        metrics.resynced(1_800_000_000.0, Duration::from_secs(2), true, &differences);
        metrics.ranges("10.244.0.0/16", 3, 1, &[0, 7], 0.25);
        let text = all.encode();
        for line in [
            "provider_reconcile_errors_counter_total{name=\"EnsureLoadBalancer\"} 1",
            "route_controller_route_sync_total 1",
            "provider_resync_last_timestamp_seconds 1800000000",
            "provider_resync_duration_seconds_count 1",
            "provider_resync_failures_total 1",
            "provider_resync_differences_total{kind=\"public_ip\"} 2",
            "node_ipam_controller_cidrset_cidrs_allocations_total{clusterCIDR=\"10.244.0.0/16\"} 3",
            "node_ipam_controller_cidrset_cidrs_releases_total{clusterCIDR=\"10.244.0.0/16\"} 1",
            "node_ipam_controller_cidrset_usage_cidrs{clusterCIDR=\"10.244.0.0/16\"} 0.25",
            "node_ipam_controller_cidrset_allocation_tries_per_request_bucket{le=\"25.0\",clusterCIDR=\"10.244.0.0/16\"} 2",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
