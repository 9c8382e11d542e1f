//! Comparisons of everything that Services have in Azure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

use crate::metrics::computed::ComputedFamily;
use crate::metrics::registry::Metrics;

/// Upper bounds, in seconds, as those of `provider_reconcile_duration_seconds`.
const BUCKETS: [f64; 9] = [0.1, 0.2, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 600.0];

/// The kind of resource that differed.
type Kind = [(&'static str, &'static str); 1];

/// The metrics of comparisons with Azure. Cheap to clone.
#[derive(Clone)]
pub struct ResyncMetrics {
    last: Gauge<f64, AtomicU64>,
    duration: Histogram,
    failures: Counter,
    differences: Family<Kind, Counter>,
    looked: Arc<Mutex<Option<Instant>>>,
}

impl ResyncMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        let looked: Arc<Mutex<Option<Instant>>> = Arc::default();
        let last_look = Arc::clone(&looked);
        registry.compute(move || {
            let age = last_look.lock().map(|at| (Vec::new(), at.elapsed().as_secs_f64()));
            vec![ComputedFamily::gauge(
                "cerulean_azure_last_look_age_seconds",
                "Time since everything that Services have was last compared with Azure without a failure",
                age.into_iter().collect(),
            )]
        });
        Self {
            last: registry.add(
                "provider_resync_last_timestamp_seconds",
                "Time of the last comparison of everything that Services have in Azure, in seconds \
                 since 1970",
            ),
            duration: registry.register(
                "provider_resync_duration_seconds",
                "Duration of comparisons of everything that Services have in Azure, including repairs",
                Histogram::new(BUCKETS),
            ),
            failures: registry.add(
                "provider_resync_failures",
                "Comparisons with Azure in which something could not be read or repaired",
            ),
            differences: registry.add(
                "provider_resync_differences",
                "Differences between what Services have and what they want, by kind",
            ),
            looked,
        }
    }

    /// Comparisons follow: the age of the last look counts from now.
    pub fn started(&self) {
        *self.looked.lock() = Some(Instant::now());
    }

    /// No comparison follows.
    pub fn ended(&self) {
        *self.looked.lock() = None;
    }

    /// Records a comparison of everything that Services have in Azure: its duration, whether something failed, and the
    /// number of differences by kind. `now` is in seconds since 1970.
    pub fn resynced(
        &self,
        now: f64,
        duration: Duration,
        failed: bool,
        differences: &BTreeMap<&'static str, u64>,
    ) {
        self.last.set(now);
        self.duration.observe(duration.as_secs_f64());
        match failed {
            true => drop(self.failures.inc()),
            false => *self.looked.lock() = Some(Instant::now()),
        }
        for (kind, count) in differences {
            self.differences.get_or_create(&[("kind", *kind)]).inc_by(*count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_look_ages_until_one_succeeds() {
        let all = Metrics::default();
        let metrics = ResyncMetrics::of(&all);
        assert!(!all.encode().contains("cerulean_azure_last_look_age_seconds"));
        metrics.started();
        let differences = BTreeMap::from([("public_ip", 2)]);
        tokio::time::sleep(Duration::from_secs(300)).await;
        metrics.resynced(1_800_000_000.0, Duration::from_secs(2), true, &differences);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let text = all.encode();
        for line in [
            "provider_resync_last_timestamp_seconds 1800000000",
            "provider_resync_duration_seconds_count 1",
            "provider_resync_failures_total 1",
            "provider_resync_differences_total{kind=\"public_ip\"} 2",
            "cerulean_azure_last_look_age_seconds 305.0",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        metrics.resynced(1_800_000_300.0, Duration::from_secs(2), false, &BTreeMap::new());
        assert!(all.encode().contains("cerulean_azure_last_look_age_seconds 0.0"));
    }
}
