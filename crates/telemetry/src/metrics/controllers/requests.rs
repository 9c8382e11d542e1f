//! Requests to the Kubernetes API, under client-go's names.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::metrics::registry::{Histograms, Metrics};

/// Upper bounds, in seconds, of `rest_client_request_duration_seconds`, which dashboards rely on.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    code: String,
    host: String,
    method: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verb {
    host: String,
    verb: String,
}

/// The metrics of a client of the Kubernetes API. Cheap to clone.
#[derive(Clone)]
pub struct RequestMetrics {
    answered: Family<Request, Counter>,
    duration: Histograms<Verb>,
}

impl RequestMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        Self {
            answered: registry.add("rest_client_requests", "Requests to the Kubernetes API by their answer"),
            duration: registry.add_histograms(
                "rest_client_request_duration_seconds",
                "Time until the Kubernetes API began to answer",
                || Histogram::new(BUCKETS),
            ),
        }
    }

    /// Records the response of a host to a request with this method; `None` if there was no response. `took` is the
    /// time until the head of the response.
    pub fn answered(&self, method: &str, host: &str, status: Option<u16>, took: Duration) {
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        self.answered
            .get_or_create(&Request { code, host: host.to_owned(), method: method.to_owned() })
            .inc();
        let verb = Verb { host: host.to_owned(), verb: method.to_owned() };
        self.duration.get_or_create(&verb).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_carry_the_names_that_dashboards_know() {
        let all = Metrics::default();
        let metrics = RequestMetrics::of(&all);
        metrics.answered("GET", "api:6443", Some(200), Duration::from_millis(30));
        metrics.answered("GET", "api:6443", None, Duration::from_secs(20));
        let text = all.encode();
        for line in [
            "rest_client_requests_total{code=\"200\",host=\"api:6443\",method=\"GET\"} 1",
            "rest_client_requests_total{code=\"<error>\",host=\"api:6443\",method=\"GET\"} 1",
            "rest_client_request_duration_seconds_bucket{le=\"0.1\",host=\"api:6443\",verb=\"GET\"} 1",
            "rest_client_request_duration_seconds_count{host=\"api:6443\",verb=\"GET\"} 2",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
