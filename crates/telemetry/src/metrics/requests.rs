//! Requests to the Kubernetes API, under client-go's name.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::registry::Metrics;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    code: String,
    host: String,
    method: String,
}

/// The metrics of a client of the Kubernetes API. Cheap to clone.
#[derive(Clone)]
pub struct RequestMetrics(Family<Request, Counter>);

impl RequestMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        Self(metrics.registry.add("rest_client_requests", "Requests to the Kubernetes API by their answer"))
    }

    /// Records the response of a host to a request with this method; `None` if there was no response.
    pub fn answered(&self, method: &str, host: &str, status: Option<u16>) {
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        self.0.get_or_create(&Request { code, host: host.to_owned(), method: method.to_owned() }).inc();
    }
}
