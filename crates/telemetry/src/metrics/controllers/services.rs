//! Load balancers of Services, under the names of the replaced program.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use prometheus_client::encoding::{EncodeLabel as _, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::metrics::registry::{Histograms, Metrics};

/// Upper bounds, in seconds, of `provider_reconcile_duration_seconds`, which dashboards rely on.
const RECONCILE_BUCKETS: [f64; 9] = [0.1, 0.2, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 600.0];

/// Upper bounds, in seconds, of `cloudprovider_azure_op_duration_seconds`, which dashboards rely on.
const OPERATION_BUCKETS: [f64; 17] =
    [0.1, 0.2, 0.5, 1.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 100.0, 200.0, 300.0, 600.0, 1200.0];

/// How many objects have series of their own at a time. Each takes 20 lines of a scrape for every kind of operation.
const MAX_SOURCES: usize = 100;

/// The source of operations on all objects beyond [`MAX_SOURCES`].
const OTHER_SOURCES: &str = "other";

/// The labels of what a Service uses.
pub const FEATURES: [&str; 8] = [
    "annotations_allowed_service_tags",
    "annotations_allowed_ip_ranges",
    "annotations_internal_load_balancer",
    "annotations_load_balancer_source_ranges",
    "annotations_additional_public_ips",
    "annotations_pip_name",
    "annotations_pip_prefix",
    "spec_load_balancer_source_ranges",
];

/// Which of [`FEATURES`] a Service uses, in that order.
pub type Features = [bool; 8];

/// The labels of an operation on a load balancer. Reads have no features.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reconcile {
    name: &'static str,
    features: Option<Features>,
}

impl EncodeLabelSet for Reconcile {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        ("name", self.name).encode(encoder.encode_label())?;
        for (label, used) in FEATURES.iter().zip(self.features.iter().flatten()) {
            (*label, if *used { "true" } else { "false" }).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

/// The cluster whose Services these are.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// The cluster's resource group, in lower case.
    pub resource_group: String,
    /// The subscription of its network.
    pub subscription: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    request: &'static str,
    resource_group: String,
    subscription_id: String,
    source: String,
}

/// The operations that name their object.
const OPERATIONS: [&str; 2] = ["services_ensure_loadbalancer", "services_ensure_loadbalancer_deleted"];

/// The metrics of Services. Cheap to clone.
#[derive(Clone)]
pub struct ServiceMetrics {
    cluster: Arc<RwLock<Cluster>>,
    reconcile_duration: Histograms<Reconcile>,
    reconcile_errors: Family<Reconcile, Counter>,
    operation_duration: Histograms<Operation>,
    operation_failures: Family<Operation, Gauge>,
    sources: Arc<Mutex<HashSet<String>>>,
    syncs: Counter,
    node_sync_errors: Counter,
    node_sync_latency: Histogram,
    host_latency: Histogram,
}

impl ServiceMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        let scoped = registry.scoped();
        let latency = || Histogram::new(exponential_buckets(1.0, 2.0, 15));
        Self {
            cluster: Arc::default(),
            reconcile_duration: scoped.add_histograms(
                "provider_reconcile_duration_seconds",
                "Duration of the operations on a Service's load balancer",
                || Histogram::new(RECONCILE_BUCKETS),
            ),
            reconcile_errors: scoped.add(
                "provider_reconcile_errors_counter",
                "Operations on a Service's load balancer that failed",
            ),
            operation_duration: registry.add_histograms(
                "cloudprovider_azure_op_duration_seconds",
                "Duration of operations, by the object that they are for",
                || Histogram::new(OPERATION_BUCKETS),
            ),
            // A gauge, because OpenMetrics gives counters the suffix `_total`, which this name does not have.
            operation_failures: registry
                .add("cloudprovider_azure_op_failure_count", "Operations that failed, by their object"),
            sources: Arc::default(),
            syncs: registry.add(
                "service_controller_loadbalancer_sync",
                "Updates of all load balancers with a changed set of nodes",
            ),
            node_sync_errors: registry.add(
                "service_controller_nodesync_error",
                "Updates of all load balancers with a changed set of nodes that failed",
            ),
            node_sync_latency: registry.register(
                "service_controller_nodesync_latency_seconds",
                "Duration of updates of all load balancers with a changed set of nodes",
                latency(),
            ),
            host_latency: registry.register(
                "service_controller_update_loadbalancer_host_latency_seconds",
                "Duration of updates of load balancers with nodes",
                latency(),
            ),
        }
    }

    /// The series are of this cluster from now on.
    pub fn serves(&self, cluster: Cluster) {
        *self.cluster.write() = cluster;
    }

    /// Records an operation on a Service's load balancer, such as `EnsureLoadBalancer`.
    pub fn reconciled(&self, name: &'static str, features: Option<Features>, took: Duration, failed: bool) {
        let labels = Reconcile { name, features };
        self.reconcile_duration.get_or_create(&labels).observe(took.as_secs_f64());
        let errors = self.reconcile_errors.get_or_create(&labels);
        if failed {
            errors.inc();
        }
    }

    /// Records an operation for an object, such as `services_ensure_loadbalancer`.
    pub fn operated(&self, request: &'static str, source: &str, took: Duration, failed: bool) {
        let labels = self.operation(request, self.source(source));
        self.operation_duration.get_or_create(&labels).observe(took.as_secs_f64());
        let failures = self.operation_failures.get_or_create(&labels);
        if failed {
            failures.inc();
        }
    }

    fn source<'a>(&self, source: &'a str) -> &'a str {
        let mut sources = self.sources.lock();
        if sources.contains(source) {
            return source;
        }
        if sources.len() >= MAX_SOURCES {
            return OTHER_SOURCES;
        }
        sources.insert(source.to_owned());
        source
    }

    fn operation(&self, request: &'static str, source: &str) -> Operation {
        let cluster = self.cluster.read();
        Operation {
            request,
            resource_group: cluster.resource_group.clone(),
            subscription_id: cluster.subscription.clone(),
            source: source.to_owned(),
        }
    }

    /// The object is gone, and its series go with it.
    pub fn forget(&self, source: &str) {
        if !self.sources.lock().remove(source) {
            return;
        }
        for request in OPERATIONS {
            let labels = self.operation(request, source);
            self.operation_duration.remove(&labels);
            self.operation_failures.remove(&labels);
        }
    }

    /// Records an update of all load balancers with a changed set of nodes.
    pub fn nodes_synced(&self, took: Duration, failed: bool) {
        self.syncs.inc();
        self.node_sync_latency.observe(took.as_secs_f64());
        self.host_latency.observe(took.as_secs_f64());
        if failed {
            self.node_sync_errors.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(all: &Metrics) -> ServiceMetrics {
        let metrics = ServiceMetrics::of(all);
        metrics.serves(Cluster { resource_group: "rg".into(), subscription: "s".into() });
        metrics
    }

    #[test]
    fn families_carry_the_names_that_dashboards_know() {
        let all = Metrics::default();
        let metrics = metrics(&all);
        let mut features = Features::default();
        features[2] = true;
        metrics.reconciled("EnsureLoadBalancer", Some(features), Duration::from_secs(4), true);
        metrics.reconciled("GetLoadBalancer", None, Duration::from_secs(4), false);
        metrics.operated("services_ensure_loadbalancer", "default/web", Duration::from_secs(4), true);
        metrics.nodes_synced(Duration::from_secs(3), true);
        let text = all.encode();
        let of = "request=\"services_ensure_loadbalancer\",resource_group=\"rg\",subscription_id=\"s\",\
                  source=\"default/web\"";
        let scope = "otel_scope_name=\"cloud-provider-azure\"";
        for line in [
            format!(
                "provider_reconcile_errors_counter_total{{{scope},name=\"EnsureLoadBalancer\",\
                     annotations_allowed_service_tags=\"false\",annotations_allowed_ip_ranges=\"false\",\
                     annotations_internal_load_balancer=\"true\","
            ),
            format!("provider_reconcile_duration_seconds_count{{{scope},name=\"GetLoadBalancer\"}} 1"),
            format!("cloudprovider_azure_op_duration_seconds_bucket{{le=\"5.0\",{of}}} 1"),
            format!("cloudprovider_azure_op_failure_count{{{of}}} 1"),
            "service_controller_loadbalancer_sync_total 1".to_owned(),
            "service_controller_nodesync_error_total 1".to_owned(),
            "service_controller_nodesync_latency_seconds_bucket{le=\"4.0\"} 1".to_owned(),
            "service_controller_update_loadbalancer_host_latency_seconds_count 1".to_owned(),
        ] {
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn objects_have_series_up_to_a_limit_and_while_they_exist() {
        let all = Metrics::default();
        let metrics = metrics(&all);
        let ensure = |name: &str| metrics.operated(OPERATIONS[0], name, Duration::from_secs(1), false);
        (0..MAX_SOURCES + 20).for_each(|number| ensure(&format!("default/web-{number}")));
        let text = all.encode();
        let count = |text: &str| text.matches("op_duration_seconds_count{").count();
        assert_eq!(count(&text), MAX_SOURCES + 1);
        let line =
            text.lines().find(|line| line.contains("seconds_count{") && line.contains("source=\"other\""));
        assert!(line.is_some_and(|line| line.ends_with(" 20")), "{line:?}");
        metrics.forget("default/web-7");
        metrics.forget("default/web-119");
        assert_eq!(count(&all.encode()), MAX_SOURCES);
        ensure("default/new");
        assert!(all.encode().contains("source=\"default/new\""));
    }
}
