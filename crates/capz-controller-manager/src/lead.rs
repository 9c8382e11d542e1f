//! The part of the leading replica: it runs the controllers.

use std::sync::Arc;
use std::time::Duration;

use capz::{Azure, Settings};
use controllers::{Clock, Reconciled};
use kube::Client;
use manager::Calls;
use program::environment::ProcessEnvironment;
use program::kubernetes::RequestObserver;
use telemetry::metrics::{ControllerMetrics, Metrics, RequestMetrics};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The observers of the controllers, and of their requests to the Kubernetes API.
#[derive(Clone)]
pub(crate) struct Meter {
    metrics: Metrics,
    controllers: ControllerMetrics,
    requests: RequestMetrics,
}

impl Meter {
    /// Counts in the metrics of the process.
    pub(crate) fn of(metrics: &Metrics) -> Self {
        Self {
            controllers: ControllerMetrics::of(metrics),
            requests: RequestMetrics::of(metrics),
            metrics: metrics.clone(),
        }
    }
}

impl controllers::Observer for Meter {
    fn queue_opened(&self, queue: &'static str, workers: usize) {
        self.controllers.opened(queue, workers);
    }

    fn queue_added(&self, queue: &'static str, depth: usize) {
        self.controllers.added(queue, depth);
    }

    fn queue_taken(&self, queue: &'static str, at: Instant, waited: Duration, depth: usize) {
        self.controllers.taken(queue, at, waited, depth);
    }

    fn queue_worked(&self, queue: &'static str, taken: Instant, worked: Duration) {
        self.controllers.worked(queue, taken, worked);
    }

    fn queue_retried(&self, queue: &'static str) {
        self.controllers.retried(queue);
    }

    fn reconciled(&self, queue: &'static str, result: Reconciled) {
        self.controllers.reconciled(queue, result.as_str());
    }

    fn leading(&self, lease: &str, leads: bool) {
        self.metrics.leading(lease, leads);
    }
}

impl RequestObserver for Meter {
    fn answered(&self, method: &str, host: &str, status: Option<u16>) {
        self.requests.answered(method, host, status);
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
    Ok(azure.with_observer(Arc::new(Calls(metrics.clone()))))
}

/// Runs the controllers until `stop`.
///
/// # Errors
/// Cluster API's core is not installed, or discovery fails.
pub(crate) async fn lead(
    client: Client,
    azure: Azure,
    settings: Settings,
    meter: Meter,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    tracing::debug!(?settings, "Leading");
    capz::run(client, azure, settings, Clock::system(), Some(Arc::new(meter)), stop).await?;
    Ok(())
}
