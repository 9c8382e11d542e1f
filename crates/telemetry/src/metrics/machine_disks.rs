//! What the writers of machines' lists of disks do.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::registry::{Histograms, Metrics};

/// Upper bounds for disks in one write: a machine has 64 LUNs.
const SIZES: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
/// Upper bounds for the duration of a write, in seconds.
const SECONDS: [f64; 10] = [1.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// The metrics of attaches and detaches. Cheap to clone.
#[derive(Clone)]
pub struct MachineDiskMetrics {
    waiting: Gauge,
    full: Counter,
    disks: Histograms<ResultLabel>,
    seconds: Histograms<ResultLabel>,
}

impl MachineDiskMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        Self {
            waiting: registry
                .add("cerulean_volume_requests_waiting", "Attaches and detaches that are not answered yet"),
            full: registry.add(
                "cerulean_volume_machine_full",
                "Attaches that were refused because a machine has no free LUN",
            ),
            disks: registry.add_histograms(
                "cerulean_volume_write_disks",
                "Disks that one write of a machine's list attaches and detaches",
                || Histogram::new(SIZES),
            ),
            seconds: registry.add_histograms(
                "cerulean_volume_write_duration_seconds",
                "Durations of writes of machines' lists, until Azure has applied them",
                || Histogram::new(SECONDS),
            ),
        }
    }

    /// An attach or a detach waits, until the result is dropped.
    #[must_use]
    pub fn waits(&self) -> Waiting {
        self.waiting.inc();
        Waiting(self.waiting.clone())
    }

    /// An attach was refused because a machine has no free LUN.
    pub fn refused_as_full(&self) {
        self.full.inc();
    }

    /// A list with so many disks that come or go was written, or could not be.
    pub fn written(&self, disks: usize, took: Duration, succeeded: bool) {
        let label = ResultLabel { result: if succeeded { "success" } else { "error" } };
        self.disks.get_or_create(&label).observe(disks as f64);
        self.seconds.get_or_create(&label).observe(took.as_secs_f64());
    }
}

/// A request that waits.
#[derive(Debug)]
pub struct Waiting(Gauge);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_counted_until_it_is_answered() {
        let metrics = Metrics::default();
        let disks = MachineDiskMetrics::of(&metrics);
        let waiting = disks.waits();
        assert!(metrics.encode().contains("cerulean_volume_requests_waiting 1"));
        drop(waiting);
        disks.refused_as_full();
        disks.written(3, Duration::from_secs(16), true);
        let text = metrics.encode();
        for line in [
            "cerulean_volume_requests_waiting 0",
            "cerulean_volume_machine_full_total 1",
            "cerulean_volume_write_disks_sum{result=\"success\"} 3.0",
            "cerulean_volume_write_duration_seconds_bucket{le=\"20.0\",result=\"success\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
