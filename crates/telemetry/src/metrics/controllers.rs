//! Controllers and their work queues, under the names of controller-runtime and client-go.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tokio::time::Instant;

use super::registry::{Histograms, Metrics};

/// Upper bounds, in seconds, of `controller_runtime_reconcile_time_seconds`, which dashboards rely on.
const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// Upper bounds for queues: from ten nanoseconds to a quarter of an hour.
fn queue_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 12))
}

/// The labels of a work queue. A queue has the name of its controller; both labels hold it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: String,
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabel {
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: String,
    result: &'static str,
}

/// The metrics of controllers. Cheap to clone.
#[derive(Clone)]
pub struct ControllerMetrics {
    reconciled: Family<ResultLabels, Counter>,
    failed: Family<ControllerLabel, Counter>,
    took: Histograms<ControllerLabel>,
    active: Family<ControllerLabel, Gauge>,
    most: Family<ControllerLabel, Gauge>,
    depth: Family<QueueLabels, Gauge>,
    added: Family<QueueLabels, Counter>,
    waited: Histograms<QueueLabels>,
    worked: Histograms<QueueLabels>,
    retried: Family<QueueLabels, Counter>,
    running: Running,
}

impl ControllerMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        let this = Self {
            reconciled: registry.add("controller_runtime_reconcile", "Reconciles by result"),
            failed: registry.add("controller_runtime_reconcile_errors", "Reconciles that failed"),
            took: registry.add_histograms(
                "controller_runtime_reconcile_time_seconds",
                "Duration of reconciles",
                || Histogram::new(RECONCILE_BUCKETS),
            ),
            active: registry.add("controller_runtime_active_workers", "Running reconciles"),
            most: registry
                .add("controller_runtime_max_concurrent_reconciles", "Maximum number of parallel reconciles"),
            depth: registry.add("workqueue_depth", "Keys that wait for a worker"),
            added: registry.add("workqueue_adds", "Keys that entered the queue"),
            waited: registry.add_histograms(
                "workqueue_queue_duration_seconds",
                "How long keys waited for a worker",
                queue_histogram,
            ),
            worked: registry.add_histograms(
                "workqueue_work_duration_seconds",
                "How long workers had a key",
                queue_histogram,
            ),
            retried: registry.add("workqueue_retries", "Keys that were retried"),
            running: Running::default(),
        };
        registry.0.lock().register_collector(Box::new(this.running.clone()));
        this
    }

    /// A controller starts, with at most so many workers.
    pub fn opened(&self, queue: &str, workers: usize) {
        let workers = i64::try_from(workers).unwrap_or(i64::MAX);
        self.most.get_or_create(&controller(queue)).set(workers);
        self.active.get_or_create(&controller(queue)).set(0);
        self.depth.get_or_create(&of_queue(queue)).set(0);
    }

    /// A key entered the queue; `depth` keys wait now.
    pub fn added(&self, queue: &str, depth: usize) {
        self.added.get_or_create(&of_queue(queue)).inc();
        self.waiting(queue, depth);
    }

    /// A worker took a key at this instant, after the key had waited so long.
    pub fn taken(&self, queue: &'static str, at: Instant, waited: Duration, depth: usize) {
        self.waited.get_or_create(&of_queue(queue)).observe(waited.as_secs_f64());
        self.waiting(queue, depth);
        self.active.get_or_create(&controller(queue)).inc();
        *self.running.0.lock().entry(queue).or_default().entry(at).or_default() += 1;
    }

    /// A worker that took its key at this instant is done.
    pub fn worked(&self, queue: &'static str, taken: Instant, worked: Duration) {
        self.worked.get_or_create(&of_queue(queue)).observe(worked.as_secs_f64());
        self.took.get_or_create(&controller(queue)).observe(worked.as_secs_f64());
        self.active.get_or_create(&controller(queue)).dec();
        let mut running = self.running.0.lock();
        let Some(since) = running.get_mut(queue) else { return };
        match since.get_mut(&taken) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                since.remove(&taken);
            }
        }
    }

    /// A key is retried later.
    pub fn retried(&self, queue: &str) {
        self.retried.get_or_create(&of_queue(queue)).inc();
    }

    /// A reconcile ended: `success`, `requeue_after` or `error`.
    pub fn reconciled(&self, queue: &str, result: &'static str) {
        self.reconciled.get_or_create(&ResultLabels { controller: queue.to_owned(), result }).inc();
        if result == "error" {
            self.failed.get_or_create(&controller(queue)).inc();
        }
    }

    fn waiting(&self, queue: &str, depth: usize) {
        self.depth.get_or_create(&of_queue(queue)).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}

fn controller(queue: &str) -> ControllerLabel {
    ControllerLabel { controller: queue.to_owned() }
}

fn of_queue(queue: &str) -> QueueLabels {
    QueueLabels { name: queue.to_owned(), controller: queue.to_owned() }
}

/// When workers took their keys, by queue. Ages are computed on each scrape because they grow while nothing happens.
#[derive(Debug, Clone, Default)]
struct Running(Arc<Mutex<HashMap<&'static str, BTreeMap<Instant, u32>>>>);

impl Collector for Running {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let all: Family<QueueLabels, Gauge<f64, AtomicU64>> = Family::default();
        let longest: Family<QueueLabels, Gauge<f64, AtomicU64>> = Family::default();
        for (queue, since) in &*self.0.lock() {
            let ages = || since.iter().map(|(at, count)| (at.elapsed().as_secs_f64(), f64::from(*count)));
            all.get_or_create(&of_queue(queue)).set(ages().map(|(age, count)| age * count).sum());
            let oldest = ages().next().map_or(0.0, |(age, _)| age);
            longest.get_or_create(&of_queue(queue)).set(oldest);
        }
        for (name, help, family) in [
            ("workqueue_unfinished_work_seconds", "How long workers have had their keys, together.", &all),
            (
                "workqueue_longest_running_processor_seconds",
                "How long the slowest has had its key.",
                &longest,
            ),
        ] {
            let kind = prometheus_client::metrics::MetricType::Gauge;
            family.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn controllers_and_queues_carry_the_names_that_dashboards_know() {
        let metrics = Metrics::default();
        let controllers = ControllerMetrics::of(&metrics);
        const QUEUE: &str = "azurecluster";
        controllers.opened(QUEUE, 10);
        controllers.added(QUEUE, 1);
        controllers.added(QUEUE, 2);
        let first = Instant::now();
        controllers.taken(QUEUE, first, Duration::from_secs(1), 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        controllers.taken(QUEUE, Instant::now(), Duration::from_secs(3), 0);
        tokio::time::sleep(Duration::from_secs(4)).await;
        let running = metrics.encode();
        controllers.worked(QUEUE, first, first.elapsed());
        controllers.retried(QUEUE);
        controllers.reconciled(QUEUE, "error");
        controllers.reconciled(QUEUE, "success");
        let ended = metrics.encode();
        let (of, queue) =
            ("{controller=\"azurecluster\"}", "{name=\"azurecluster\",controller=\"azurecluster\"}");
        for (text, line) in [
            (&running, format!("controller_runtime_max_concurrent_reconciles{of} 10")),
            (&running, format!("controller_runtime_active_workers{of} 2")),
            (&running, format!("workqueue_depth{queue} 0")),
            (&running, format!("workqueue_adds_total{queue} 2")),
            (&running, format!("workqueue_queue_duration_seconds_sum{queue} 4.0")),
            (&running, format!("workqueue_unfinished_work_seconds{queue} 10.0")),
            (&running, format!("workqueue_longest_running_processor_seconds{queue} 6.0")),
            (&ended, format!("controller_runtime_active_workers{of} 1")),
            (&ended, format!("controller_runtime_reconcile_time_seconds_sum{of} 6.0")),
            (&ended, format!("controller_runtime_reconcile_errors_total{of} 1")),
            (
                &ended,
                "controller_runtime_reconcile_total{controller=\"azurecluster\",result=\"success\"} 1".into(),
            ),
            (&ended, format!("workqueue_work_duration_seconds_count{queue} 1")),
            (&ended, format!("workqueue_retries_total{queue} 1")),
            (&ended, format!("workqueue_unfinished_work_seconds{queue} 4.0")),
        ] {
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
    }
}
