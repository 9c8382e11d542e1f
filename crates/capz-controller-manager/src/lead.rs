//! The part of the leading replica: it runs the controllers.

use std::sync::Arc;
use std::time::Duration;

use capz::{Azure, Settings, Workloads};
use controllers::{Clock, Reconciled};
use kube::Client;
use manager::{Calls, show_budgets};
use program::environment::ProcessEnvironment;
use program::kubernetes::{self, RequestObserver};
use telemetry::metrics::Metrics;
use telemetry::metrics::controllers::{
    ControllerMetrics, EventMetrics, LeadershipMetrics, QueueMetrics, QueueNames, RequestMetrics,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The user agent for the Kubernetes API, which audit logs and priority rules of clusters may match.
pub(crate) const USER_AGENT: &str = "cluster-api-provider-azure-manager";

/// The name of this manager in metrics.
const MANAGER: &str = "capz-controller-manager";

/// The observers of the controllers, and of their requests to the Kubernetes API.
#[derive(Clone)]
pub(crate) struct Meter {
    controllers: ControllerMetrics,
    queues: QueueMetrics,
    leadership: LeadershipMetrics,
    events: EventMetrics,
    requests: RequestMetrics,
}

impl Meter {
    /// Counts in the metrics of the process.
    pub(crate) fn of(metrics: &Metrics) -> Self {
        Self {
            controllers: ControllerMetrics::of(metrics),
            queues: QueueMetrics::of(metrics, QueueNames::NameAndController),
            leadership: LeadershipMetrics::of(metrics),
            events: EventMetrics::of(metrics),
            requests: RequestMetrics::of(metrics),
        }
    }
}

impl controllers::Observer for Meter {
    fn queue_opened(&self, queue: &'static str, workers: usize) {
        self.queues.opened(queue);
        // A queue has the name of its controller, which runs until the process ends.
        self.leadership.running(MANAGER, queue, true);
        self.controllers.opened(queue, workers);
    }

    fn queue_added(&self, queue: &'static str, depth: usize) {
        self.queues.added(queue, depth);
    }

    fn queue_taken(&self, queue: &'static str, at: Instant, waited: Duration, depth: usize) {
        self.queues.taken(queue, at, waited, depth);
        self.controllers.taken(queue);
    }

    fn queue_worked(&self, queue: &'static str, taken: Instant, worked: Duration) {
        self.queues.worked(queue, taken, worked);
        self.controllers.worked(queue, worked);
    }

    fn queue_retried(&self, queue: &'static str) {
        self.queues.retried(queue);
    }

    fn reconciled(&self, queue: &'static str, result: Reconciled) {
        self.controllers.reconciled(queue, result.as_str());
    }

    fn leading(&self, lease: &str, leads: bool) {
        self.leadership.leading(lease, leads);
    }

    fn leader_election_slow_path(&self, lease: &str) {
        self.leadership.slow_path(lease);
    }

    fn event_dropped(&self) {
        self.events.dropped();
    }
}

impl RequestObserver for Meter {
    fn answered(&self, method: &str, host: &str, status: Option<u16>, took: Duration) {
        self.requests.answered(method, host, status, took);
    }
}

/// The access to Azure, without an identity: each cluster names its own.
///
/// # Errors
/// No certificate authorities, or an invalid proxy.
pub(crate) fn azure(
    settings: &Settings,
    environment: &ProcessEnvironment,
    metrics: &Metrics,
) -> anyhow::Result<Azure> {
    let transport = environment.azure_transport()?;
    let azure = Azure::new(transport, Clock::system(), settings.clone());
    let budgets = azure.budgets().clone();
    show_budgets(metrics, move || Some(budgets.clone()));
    Ok(azure.with_observer(Arc::new(Calls::of(metrics))))
}

/// Runs the controllers until `stop`.
///
/// # Errors
/// Cluster API's core is not installed, or discovery fails.
pub(crate) async fn lead(
    client: Client,
    azure: Azure,
    settings: Settings,
    workloads: Workloads,
    meter: Meter,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    tracing::debug!(?settings, "Leading");
    // Boxed: it holds all controllers, and would be copied on the stack of each caller.
    let running = capz::run(client, azure, settings, Clock::system(), workloads, Some(Arc::new(meter)), stop);
    Box::pin(running).await?;
    Ok(())
}

/// Connections to the API servers of clusters, through the environment's proxy.
///
/// # Errors
/// An invalid proxy.
pub(crate) fn workloads(environment: &ProcessEnvironment) -> anyhow::Result<Workloads> {
    let proxy = environment.proxy()?;
    Ok(Workloads::new(move |kubeconfig| {
        let proxy = proxy.clone();
        Box::pin(async move {
            let client = kubernetes::client_of(&kubeconfig, USER_AGENT, &proxy).await;
            client.map_err(|error| format!("{error:#}"))
        })
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use arm::{CallObserver as _, CallRecord, Class, Purpose};
    use controllers::Observer as _;
    use telemetry::metrics::azure::{Budget, Closed, register_budgets};
    use telemetry::metrics::catalogue::assert_documented;
    use telemetry::metrics::controllers::WebhookMetrics;
    use telemetry::metrics::{HealthMetrics, ScrapeMetrics};

    use super::*;

    /// Uses every metric of the program once, and compares what a scrape shows with `docs/metrics.md`.
    #[tokio::test]
    async fn the_page_lists_the_metrics_that_the_program_serves() {
        let metrics = crate::run::metrics();
        let meter = Meter::of(&metrics);
        let now = Instant::now();
        meter.queue_opened("azurecluster", 3);
        meter.queue_added("azurecluster", 1);
        meter.queue_taken("azurecluster", now, Duration::ZERO, 0);
        meter.queue_worked("azurecluster", now, Duration::ZERO);
        meter.queue_retried("azurecluster");
        meter.reconciled("azurecluster", Reconciled::Error);
        meter.leading("lease", true);
        meter.leader_election_slow_path("lease");
        meter.event_dropped();
        meter.answered("GET", "api", Some(200), Duration::ZERO);
        let webhooks = WebhookMetrics::of(&metrics);
        webhooks.received("/mutate");
        webhooks.answered("/mutate", 200, Duration::ZERO);
        HealthMetrics::of(&metrics).checked("healthz", "webhook", true);
        let scrapes = ScrapeMetrics::of(&metrics);
        scrapes.received();
        scrapes.answered(200);
        use_calls(&metrics);
        assert_documented(&metrics, "capz");
    }

    /// Every kind of call, and a budget.
    fn use_calls(metrics: &Metrics) {
        let calls = Calls::of(metrics);
        let call = CallRecord {
            method: "PUT",
            resource_type: "Microsoft.Network/loadBalancers",
            resource_name: "a",
            subscription: "s",
            resource_group: Some("rg"),
            purpose: Purpose::Write,
            class: Class::Create,
            status: Some(201),
            duration: Duration::ZERO,
            waited: Duration::ZERO,
            attempt: 1,
            reason: None,
            request_id: None,
            throttled: false,
        };
        calls.on_call(&call);
        calls.on_call(&CallRecord { reason: Some("Conflict"), status: Some(409), ..call.clone() });
        calls.on_call(&CallRecord { throttled: true, status: Some(429), ..call.clone() });
        calls.on_limited(&call);
        register_budgets(metrics, || {
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
    }
}
