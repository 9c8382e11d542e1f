//! Traces: exports spans to a collector, over OTLP and gRPC.
//!
//! Programs create spans with `tracing` under [`TARGET`], which the log ignores; without a collector they cost nothing.
//! [`Traces`] receives them together with the log events inside them, buffers them for some seconds, and sends them
//! from a thread of its own. Spans that cannot be sent are dropped: the program never waits for a collector.
//!
//! OpenTelemetry's environment variables apply: the collector and its settings (`OTEL_EXPORTER_OTLP_…`), the service's
//! name and attributes, sampling (`OTEL_TRACES_SAMPLER`, by default all spans), and the size of the buffer
//! (`OTEL_BSP_…`).

mod collector;
mod error;
mod report;

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

pub use crate::error::Error;
use crate::report::ReportingExporter;

/// Whether variables ask for traces: one names a collector, and none turns traces off.
pub fn are_requested(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, value: &str| variable(name).is_some_and(|it| it.eq_ignore_ascii_case(value));
    collector::is_named(&variable) && !is("OTEL_SDK_DISABLED", "true") && !is("OTEL_TRACES_EXPORTER", "none")
}

/// The prefix of the targets of traced spans. It is not the name of a crate, so that the log's filter ignores them.
pub const TARGET: &str = "spans";

/// How long the program waits for a collector when it ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The traced service, as the collector sees it.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    /// Its name (`service.name`), unless `OTEL_SERVICE_NAME` gives another.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The collector if no variable names one.
    pub collector: &'static str,
}

/// The export of spans to a collector.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    service: &'static str,
}

impl Traces {
    /// Prepares the export; no connection is made before the first span has ended. The exporter reads the variables of
    /// this process; `variable` provides those that decide where it sends to.
    ///
    /// # Errors
    /// The variables describe an invalid collector, or there is no tokio runtime.
    pub fn prepare(service: Service, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let runtime = Handle::try_current()?;
        let (exporter, collector) = collector::exporter(service.collector, &variable)?;
        let mut resource = Resource::builder_empty()
            .with_detector(Box::new(TelemetryResourceDetector))
            .with_service_name(service.name)
            .with_attributes([KeyValue::new("exporter", "otlp"), KeyValue::new("version", service.version)])
            .with_detector(Box::new(EnvResourceDetector::new()));
        if let Some(name) = variable("OTEL_SERVICE_NAME") {
            resource = resource.with_service_name(name);
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(ReportingExporter::new(exporter, collector, runtime))
            .build();
        Ok(Self { provider, service: service.name })
    }

    /// A layer that receives spans, and log events as events of their spans.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        // Source locations, threads and poll times of spans are left out: they are of no use to operators.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(self.service))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_context_activation(false)
    }

    /// Sends the buffered spans, and waits for that at most five seconds.
    pub async fn end(self) {
        let provider = self.provider;
        // Shutdown blocks its thread, and this thread is needed for sending.
        let ended =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT)).await;
        if let Ok(Err(error)) = ended {
            tracing::debug!(%error, "The last spans were not sent");
        }
    }
}
