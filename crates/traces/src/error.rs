//! Why traces cannot be sent.

use std::io;
use std::path::PathBuf;

use opentelemetry_otlp::ExporterBuildError;

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The variables describe an invalid collector.
    #[error("no traces can be sent to {collector}: {source} (see the variables OTEL_EXPORTER_OTLP_…)")]
    Collector {
        /// Its address, without user name and password.
        collector: String,
        /// What is wrong.
        source: ExporterBuildError,
    },
    /// The collector's certificate authority cannot be read.
    #[error("no traces can be sent: {variable} names {path}: {source}", path = path.display())]
    Authority {
        /// The variable that names the file.
        variable: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no runtime to send from.
    #[error("no traces can be sent: {0}")]
    Runtime(#[from] tokio::runtime::TryCurrentError),
}
