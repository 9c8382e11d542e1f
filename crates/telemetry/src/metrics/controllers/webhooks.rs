//! Metrics of webhooks, under controller-runtime's names.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::metrics::registry::{Histograms, Metrics};

/// Upper bounds, in seconds: API servers wait 10 s by default.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 2.5, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabel {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    webhook: String,
    code: u16,
}

/// The metrics of webhooks. Cheap to clone.
#[derive(Clone)]
pub struct WebhookMetrics {
    answered: Family<AnswerLabels, Counter>,
    latency: Histograms<WebhookLabel>,
    in_flight: Family<WebhookLabel, Gauge>,
}

impl WebhookMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        Self {
            answered: registry.add(
                "controller_runtime_webhook_requests",
                "Admission requests by the HTTP status of the answer",
            ),
            latency: registry.add_histograms(
                "controller_runtime_webhook_latency_seconds",
                "How long admission requests took",
                || Histogram::new(BUCKETS),
            ),
            in_flight: registry.add(
                "controller_runtime_webhook_requests_in_flight",
                "Admission requests that are not answered yet",
            ),
        }
    }

    /// The webhook at this path got a request.
    pub fn received(&self, webhook: &str) {
        self.in_flight.get_or_create(&WebhookLabel { webhook: webhook.to_owned() }).inc();
    }

    /// The webhook answered with this HTTP status.
    pub fn answered(&self, webhook: &str, code: u16, took: Duration) {
        self.in_flight.get_or_create(&WebhookLabel { webhook: webhook.to_owned() }).dec();
        self.latency.get_or_create(&WebhookLabel { webhook: webhook.to_owned() }).observe(took.as_secs_f64());
        self.answered.get_or_create(&AnswerLabels { webhook: webhook.to_owned(), code }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_carry_the_names_that_dashboards_know() {
        let all = Metrics::default();
        let metrics = WebhookMetrics::of(&all);
        metrics.received("/mutate");
        metrics.received("/mutate");
        metrics.answered("/mutate", 200, Duration::from_millis(3));
        let text = all.encode();
        for line in [
            "controller_runtime_webhook_requests_total{webhook=\"/mutate\",code=\"200\"} 1",
            "controller_runtime_webhook_latency_seconds_count{webhook=\"/mutate\"} 1",
            "controller_runtime_webhook_requests_in_flight{webhook=\"/mutate\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
