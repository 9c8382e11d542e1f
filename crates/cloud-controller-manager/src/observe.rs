//! Connects internal observers to the served metrics.

use std::sync::Arc;
use std::time::Duration;

use arm::{Budgets, CallObserver, CallRecord};
use clock::Clock;
use cloud::Looked;
use cloud_config::CloudConfig;
use controllers::ServiceOperation;
use k8s::names::SERVICE_ANNOTATION_PREFIX;
use k8s::{ObjectKey, Service};
use manager::{Calls, show_budgets};
use parking_lot::Mutex;
use program::kubernetes::RequestObserver;
use telemetry::metrics::azure::{ConfigMetrics, ResyncMetrics};
use telemetry::metrics::controllers::{
    Cluster, EventMetrics, Features, LeadershipMetrics, NodeMetrics, QueueMetrics, QueueNames,
    RequestMetrics, ServiceMetrics,
};
use telemetry::metrics::{Build, Metrics};
use tokio::time::Instant;

/// The name of this manager in metrics, as upstream has it.
const MANAGER: &str = "cloud-controller-manager";

/// The annotations that `provider_reconcile_*` shows, in the order of its labels.
const SHOWN_ANNOTATIONS: [&str; 7] = [
    "azure-allowed-service-tags",
    "azure-allowed-ip-ranges",
    "azure-load-balancer-internal",
    "load-balancer-source-ranges",
    "azure-additional-public-ips",
    "azure-pip-name",
    "azure-pip-prefix-id",
];

/// Counts calls to Azure and the reports of the controllers.
pub struct Meter {
    /// All served metrics.
    pub metrics: Metrics,
    /// The cloud configuration in force.
    pub configuration: ConfigMetrics,
    budgets: Arc<Mutex<Option<Budgets>>>,
    calls: Calls,
    events: EventMetrics,
    leadership: LeadershipMetrics,
    nodes: NodeMetrics,
    queues: QueueMetrics,
    requests: RequestMetrics,
    resync: ResyncMetrics,
    services: ServiceMetrics,
    clock: Clock,
}

impl Default for Meter {
    fn default() -> Self {
        let (version, commit) = (version::RELEASE, version::COMMIT);
        let build = Build { program: "azure-cloud-controller-manager", version, commit };
        let metrics = Metrics::of_program(build);
        let budgets = Arc::<Mutex<Option<Budgets>>>::default();
        let shown = Arc::clone(&budgets);
        show_budgets(&metrics, move || shown.lock().clone());
        Self {
            configuration: ConfigMetrics::of(&metrics),
            budgets,
            calls: Calls::of(&metrics),
            events: EventMetrics::of(&metrics),
            leadership: LeadershipMetrics::of(&metrics),
            nodes: NodeMetrics::of(&metrics),
            queues: QueueMetrics::of(&metrics, QueueNames::Name),
            requests: RequestMetrics::of(&metrics),
            resync: ResyncMetrics::of(&metrics),
            services: ServiceMetrics::of(&metrics),
            clock: Clock::system(),
            metrics,
        }
    }
}

/// What a Service uses, as `provider_reconcile_*` shows it: a value that is not empty, whatever it means.
fn features(service: &Service) -> Features {
    let mut features = Features::default();
    for (used, key) in features.iter_mut().zip(SHOWN_ANNOTATIONS) {
        let value = service.annotation(&format!("{SERVICE_ANNOTATION_PREFIX}{key}"));
        *used = value.is_some_and(|value| !value.is_empty());
    }
    features[SHOWN_ANNOTATIONS.len()] = !service.spec.load_balancer_source_ranges.is_empty();
    features
}

impl Meter {
    /// Counts for this configuration from now on, with the budgets of its client.
    pub fn configured(&self, config: &CloudConfig, budgets: &Budgets) {
        self.services.serves(Cluster {
            resource_group: config.resource_group.to_lowercase(),
            subscription: config.network_subscription_id().to_owned(),
        });
        *self.budgets.lock() = Some(budgets.clone());
    }
}

impl CallObserver for Meter {
    fn on_call(&self, call: &CallRecord<'_>) {
        self.calls.on_call(call);
    }

    fn on_limited(&self, call: &CallRecord<'_>) {
        self.calls.on_limited(call);
    }
}

impl RequestObserver for Meter {
    fn answered(&self, method: &str, host: &str, status: Option<u16>, took: Duration) {
        self.requests.answered(method, host, status, took);
    }
}

impl controllers::Observer for Meter {
    fn queue_opened(&self, queue: &'static str, _workers: usize) {
        self.queues.opened(queue);
    }

    fn queue_added(&self, queue: &'static str, depth: usize) {
        self.queues.added(queue, depth);
    }

    fn queue_taken(&self, queue: &'static str, at: Instant, waited: Duration, depth: usize) {
        self.queues.taken(queue, at, waited, depth);
    }

    fn queue_worked(&self, queue: &'static str, taken: Instant, worked: Duration) {
        self.queues.worked(queue, taken, worked);
    }

    fn queue_retried(&self, queue: &'static str) {
        self.queues.retried(queue);
    }

    fn service_operated(
        &self,
        service: &Service,
        operation: ServiceOperation,
        took: Duration,
        succeeded: bool,
    ) {
        let (name, request) = match operation {
            ServiceOperation::Get => ("GetLoadBalancer", None),
            ServiceOperation::Ensure => ("EnsureLoadBalancer", Some("services_ensure_loadbalancer")),
            ServiceOperation::Delete => {
                ("EnsureLoadBalancerDeleted", Some("services_ensure_loadbalancer_deleted"))
            }
        };
        let features = request.map(|_| features(service));
        self.services.reconciled(name, features, took, !succeeded);
        if let Some(request) = request {
            self.services.operated(request, &service.key().to_string(), took, !succeeded);
        }
    }

    fn service_forgotten(&self, service: &ObjectKey) {
        self.services.forget(&service.to_string());
    }

    fn nodes_synced(&self, took: Duration, succeeded: bool) {
        // One update of all Services: it has neither features nor an object.
        self.services.reconciled("UpdateLoadBalancer", Some(Features::default()), took, !succeeded);
        self.services.operated("services_update_loadbalancer", "all", took, !succeeded);
        self.services.nodes_synced(took, !succeeded);
    }

    fn looks_again(&self, looks: bool) {
        match looks {
            true => self.resync.started(),
            false => self.resync.ended(),
        }
    }

    fn looked_again(&self, took: Duration, looked: &Looked) {
        let now = self.clock.now().as_millisecond() as f64 / 1000.0;
        self.resync.resynced(now, took, looked.failure.is_some(), &looked.differences);
    }

    fn draining_updated(&self, took: Duration, succeeded: bool) {
        let features = Some(Features::default());
        self.services.reconciled("UpdateLoadBalancerAdminState", features, took, !succeeded);
    }

    fn local_pools_updated(&self, took: Duration, succeeded: bool) {
        let source = "local_service_backend_pool_updater";
        self.services.operated("services_local_update_backend_pool", source, took, !succeeded);
    }

    fn routes_synced(&self) {
        self.nodes.routes_synced();
    }

    fn ranges_changed(&self, change: &controllers::RangeTurnover) {
        let controllers::RangeTurnover { cluster, allocated, released, skipped, used } = change;
        self.nodes.ranges(&cluster.to_string(), *allocated, *released, skipped, *used);
    }

    fn taint_removed(&self, age: Duration) {
        self.nodes.taint_removed(age);
    }

    fn node_initialized(&self, age: Duration) {
        self.nodes.initialised(age);
    }

    fn leading(&self, lease: &str, leads: bool) {
        self.leadership.leading(lease, leads);
    }

    fn leader_election_slow_path(&self, lease: &str) {
        self.leadership.slow_path(lease);
    }

    fn controller_running(&self, controller: &'static str, running: bool) {
        self.leadership.running(MANAGER, controller, running);
    }

    fn event_dropped(&self) {
        self.events.dropped();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arm::{Class, Purpose};
    use controllers::{Observer as _, RangeTurnover};
    use telemetry::metrics::azure::{Budget, Closed, register_budgets};
    use telemetry::metrics::catalogue::assert_documented;
    use telemetry::metrics::{HealthMetrics, ScrapeMetrics};

    use super::*;

    fn service() -> Service {
        serde_json::from_value(serde_json::json!({
            "metadata": {
                "name": "web",
                "namespace": "default",
                "annotations": {
                    "service.beta.kubernetes.io/azure-load-balancer-internal": "false",
                    "service.beta.kubernetes.io/azure-pip-name": "",
                },
            },
            "spec": { "loadBalancerSourceRanges": ["10.0.0.0/8"] },
        }))
        .unwrap()
    }

    #[test]
    fn a_feature_is_a_value_that_is_not_empty() {
        let expected = [false, false, true, false, false, false, false, true];
        assert_eq!(features(&service()), expected);
    }

    /// Uses every metric of the program once, and compares what a scrape shows with `docs/metrics.md`.
    #[tokio::test]
    async fn the_page_lists_the_metrics_that_the_program_serves() {
        let mut config = CloudConfig::default();
        config.resource_group = "RG".to_owned();
        let meter = Meter::default();
        meter.configured(&config, &Budgets::default());
        let (now, took) = (Instant::now(), Duration::from_millis(1));
        meter.queue_opened("service", 3);
        meter.queue_added("service", 1);
        meter.queue_taken("service", now, took, 0);
        meter.queue_worked("service", now, took);
        meter.queue_retried("service");
        for operation in [ServiceOperation::Get, ServiceOperation::Ensure, ServiceOperation::Delete] {
            meter.service_operated(&service(), operation, took, false);
        }
        meter.nodes_synced(took, false);
        let differences = BTreeMap::from([("public_ip", 1)]);
        meter.controller_running("service", true);
        meter.looks_again(true);
        meter.looked_again(took, &Looked { differences, ..Looked::default() });
        meter.draining_updated(took, true);
        meter.local_pools_updated(took, true);
        meter.routes_synced();
        meter.ranges_changed(&RangeTurnover {
            cluster: "10.0.0.0/8".parse().unwrap(),
            allocated: 1,
            released: 1,
            skipped: vec![3],
            used: 0.5,
        });
        meter.taint_removed(took);
        meter.node_initialized(took);
        meter.leading("lease", true);
        meter.leader_election_slow_path("lease");
        meter.event_dropped();
        meter.answered("GET", "api", Some(200), took);
        HealthMetrics::of(&meter.metrics).checked("healthz", "leaderElection", true);
        let scrapes = ScrapeMetrics::of(&meter.metrics);
        scrapes.received();
        scrapes.answered(200);
        let call = CallRecord {
            method: "PUT",
            resource_type: "Microsoft.Network/loadBalancers",
            resource_name: "a",
            subscription: "s",
            resource_group: Some("rg"),
            purpose: Purpose::Write,
            class: Class::Create,
            status: Some(201),
            duration: took,
            waited: took,
            attempt: 1,
            reason: None,
            request_id: None,
            throttled: false,
        };
        meter.on_call(&call);
        meter.on_call(&CallRecord { reason: Some("Conflict"), status: Some(409), ..call.clone() });
        meter.on_call(&CallRecord { throttled: true, status: Some(429), ..call.clone() });
        meter.on_limited(&call);
        register_budgets(&meter.metrics, || {
            let closed = vec![Closed { namespace: String::new(), remaining: Duration::ZERO }];
            let (remaining, waiting) = (Some(17.0), vec![("create", 1)]);
            vec![Budget {
                subscription: "s".into(),
                group: "writes",
                remaining,
                capacity: 200.0,
                closed,
                waiting,
            }]
        });
        assert_documented(&meter.metrics, "ccm");
        meter.service_forgotten(&service().key());
        assert!(!meter.metrics.encode().contains("source=\"default/web\""));
    }
}
