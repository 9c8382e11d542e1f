//! Logs whether spans arrive: once when sending fails, and once when it works again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::runtime::Handle;

/// How long an export may take, retries included: OpenTelemetry's default (`OTEL_BSP_EXPORT_TIMEOUT`). Without the
/// limit an export to a host that does not answer lasts as long as the system tries.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// An exporter that logs its failures.
#[derive(Debug)]
pub struct ReportingExporter<E> {
    exporter: E,
    collector: String,
    /// The runtime whose clock limits the time; spans are sent from a thread outside of it.
    runtime: Handle,
    fails: AtomicBool,
}

impl<E> ReportingExporter<E> {
    /// `collector` is its address for the log.
    pub fn new(exporter: E, collector: String, runtime: Handle) -> Self {
        Self { exporter, collector, runtime, fails: AtomicBool::new(false) }
    }

    fn log_change(&self, outcome: &OTelSdkResult) {
        let failed = self.fails.swap(outcome.is_err(), Ordering::Relaxed);
        let collector = &self.collector;
        match outcome {
            Err(error) if !failed => tracing::warn!(
                %collector,
                %error,
                "Traces cannot be sent, and are dropped until the collector takes them"
            ),
            Ok(()) if failed => tracing::info!(%collector, "Traces are sent again"),
            _ => {}
        }
    }
}

impl<E: SpanExporter> SpanExporter for ReportingExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let timeout = {
            let _runtime = self.runtime.enter();
            tokio::time::sleep(EXPORT_TIMEOUT)
        };
        let outcome = tokio::select! {
            outcome = self.exporter.export(batch) => outcome,
            () = timeout => Err(OTelSdkError::Timeout(EXPORT_TIMEOUT)),
        };
        self.log_change(&outcome);
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
