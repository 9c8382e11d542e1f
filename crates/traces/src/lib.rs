//! Traces: spans on their way to a collector, over OTLP and gRPC.
//!
//! Programs make spans with `tracing`, under [`TARGET`], which no log takes: they cost nothing where nobody asks for
//! traces. [`Traces`] takes them, together with what is logged meanwhile, keeps them for some seconds, and sends them from a
//! thread of its own. What cannot be sent is dropped: nobody ever waits for a collector.
//!
//! The variables that OpenTelemetry defines count: the collector and what it is told (`OTEL_EXPORTER_OTLP_…`), names of the
//! service and its attributes, which spans are taken (`OTEL_TRACES_SAMPLER`, by default all of them), and how many are kept
//! (`OTEL_BSP_…`).

mod collector;
mod report;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::report::Reporting;

/// The beginning of the targets of spans that are traced. They are no target of a crate: the log's filter knows none of
/// them.
pub const TARGET: &str = "spans";

/// How long the end of a program may wait for a collector.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why no traces can be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The collector cannot be what the variables say.
    #[error("no traces can be sent to {collector}: {source} (see the variables OTEL_EXPORTER_OTLP_…)")]
    Collector {
        /// Where it is, without what stands before the host.
        collector: String,
        /// What is wrong.
        source: ExporterBuildError,
    },
    /// The certificate authority of the collector cannot be read.
    #[error("no traces can be sent: {variable} names {path}: {source}", path = path.display())]
    Authority {
        /// The variable that names the file.
        variable: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing runs that could send them.
    #[error("no traces can be sent: {0}")]
    Runtime(#[from] tokio::runtime::TryCurrentError),
}

/// What is traced, as a collector knows it.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    /// Its name (`service.name`), unless `OTEL_SERVICE_NAME` gives another.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The collector, where no variable names one.
    pub collector: &'static str,
}

/// The way of spans to a collector.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    service: &'static str,
}

impl Traces {
    /// Prepares the way; nobody is called before the first span has ended. The library that sends reads the variables of
    /// this process, `variable` those of them that decide where it sends to.
    ///
    /// # Errors
    /// The collector cannot be what the variables say, or no runtime of tokio runs here.
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
            .with_batch_exporter(Reporting::new(exporter, collector, runtime))
            .build();
        Ok(Self { provider, service: service.name })
    }

    /// Takes spans, and what is logged in them as their events.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        // Where in our sources a span was made, on which thread, and how long it was polled, nobody asks.
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(self.service))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_context_activation(false)
    }

    /// Sends what is kept, and waits for that a moment at most.
    pub async fn end(self) {
        let provider = self.provider;
        // It blocks its thread, and this one is needed to send.
        let ended = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(LAST_WORDS)).await;
        if let Ok(Err(error)) = ended {
            tracing::debug!(%error, "The last spans were not sent");
        }
    }
}
