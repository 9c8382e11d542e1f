//! Work queues, under the names of client-go.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabel as _, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tokio::time::Instant;

use crate::metrics::computed::ComputedFamily;
use crate::metrics::registry::{Histograms, Metrics};

/// Upper bounds: from ten nanoseconds to a quarter of an hour.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 12))
}

/// The labels that name a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueNames {
    /// `name`, as client-go has it.
    Name,
    /// `name` and `controller`, as controller-runtime has it. A queue has the name of its controller; both labels hold
    /// it.
    NameAndController,
}

impl QueueNames {
    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Name => &["name"],
            Self::NameAndController => &["name", "controller"],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct QueueLabels {
    names: QueueNames,
    queue: &'static str,
}

impl EncodeLabelSet for QueueLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for label in self.names.labels() {
            (*label, self.queue).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

/// When workers took their keys, by queue.
type Running = Arc<Mutex<HashMap<&'static str, BTreeMap<Instant, u32>>>>;

/// The metrics of work queues. Cheap to clone.
#[derive(Clone)]
pub struct QueueMetrics {
    names: QueueNames,
    depth: Family<QueueLabels, Gauge>,
    added: Family<QueueLabels, Counter>,
    waited: Histograms<QueueLabels>,
    worked: Histograms<QueueLabels>,
    retried: Family<QueueLabels, Counter>,
    running: Running,
}

impl QueueMetrics {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics, names: QueueNames) -> Self {
        let registry = &metrics.registry;
        let running = Running::default();
        let now_running = Arc::clone(&running);
        registry.compute(move || under_way(names, &now_running));
        Self {
            names,
            depth: registry.add("workqueue_depth", "Keys that wait for a worker"),
            added: registry.add("workqueue_adds", "Keys that entered the queue"),
            waited: registry.add_histograms(
                "workqueue_queue_duration_seconds",
                "How long keys waited for a worker",
                histogram,
            ),
            worked: registry.add_histograms(
                "workqueue_work_duration_seconds",
                "How long workers had a key",
                histogram,
            ),
            retried: registry.add("workqueue_retries", "Keys that were retried"),
            running,
        }
    }

    fn of_queue(&self, queue: &'static str) -> QueueLabels {
        QueueLabels { names: self.names, queue }
    }

    /// The workers of a queue start. Those that had the queue before have ended, perhaps without being done.
    pub fn opened(&self, queue: &'static str) {
        let labels = self.of_queue(queue);
        self.running.lock().remove(queue);
        self.depth.get_or_create(&labels).set(0);
        drop(self.added.get_or_create(&labels));
        drop(self.retried.get_or_create(&labels));
    }

    /// A key entered the queue; `depth` keys wait now.
    pub fn added(&self, queue: &'static str, depth: usize) {
        self.added.get_or_create(&self.of_queue(queue)).inc();
        self.waiting(queue, depth);
    }

    /// A worker took a key at this instant, after the key had waited so long.
    pub fn taken(&self, queue: &'static str, at: Instant, waited: Duration, depth: usize) {
        self.waited.get_or_create(&self.of_queue(queue)).observe(waited.as_secs_f64());
        self.waiting(queue, depth);
        *self.running.lock().entry(queue).or_default().entry(at).or_default() += 1;
    }

    /// A worker that took its key at this instant is done.
    pub fn worked(&self, queue: &'static str, taken: Instant, worked: Duration) {
        self.worked.get_or_create(&self.of_queue(queue)).observe(worked.as_secs_f64());
        let mut running = self.running.lock();
        let Some(since) = running.get_mut(queue) else { return };
        match since.get_mut(&taken) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                since.remove(&taken);
            }
        }
    }

    /// A key is retried later.
    pub fn retried(&self, queue: &'static str) {
        self.retried.get_or_create(&self.of_queue(queue)).inc();
    }

    fn waiting(&self, queue: &'static str, depth: usize) {
        self.depth.get_or_create(&self.of_queue(queue)).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}

/// How long workers have had their keys. Ages grow while nothing happens.
fn under_way(names: QueueNames, running: &Running) -> Vec<ComputedFamily> {
    let (mut all, mut longest) = (Vec::new(), Vec::new());
    for (queue, since) in &*running.lock() {
        let labels: Vec<_> = names.labels().iter().map(|label| (*label, (*queue).to_owned())).collect();
        let ages = || since.iter().map(|(at, count)| (at.elapsed().as_secs_f64(), f64::from(*count)));
        all.push((labels.clone(), ages().map(|(age, count)| age * count).sum()));
        longest.push((labels, ages().next().map_or(0.0, |(age, _)| age)));
    }
    vec![
        ComputedFamily::gauge(
            "workqueue_unfinished_work_seconds",
            "How long workers have had their keys, together",
            all,
        ),
        ComputedFamily::gauge(
            "workqueue_longest_running_processor_seconds",
            "How long the slowest has had its key",
            longest,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn queues_carry_the_names_that_dashboards_know() {
        const QUEUE: &str = "service";
        for (names, labels) in [
            (QueueNames::Name, "{name=\"service\"}"),
            (QueueNames::NameAndController, "{name=\"service\",controller=\"service\"}"),
        ] {
            let metrics = Metrics::default();
            let queues = QueueMetrics::of(&metrics, names);
            queues.opened(QUEUE);
            let opened = metrics.encode();
            queues.added(QUEUE, 1);
            queues.added(QUEUE, 2);
            let first = Instant::now();
            queues.taken(QUEUE, first, Duration::from_secs(1), 1);
            tokio::time::sleep(Duration::from_secs(2)).await;
            queues.taken(QUEUE, Instant::now(), Duration::from_secs(3), 0);
            tokio::time::sleep(Duration::from_secs(4)).await;
            let running = metrics.encode();
            queues.worked(QUEUE, first, first.elapsed());
            queues.retried(QUEUE);
            let ended = metrics.encode();
            queues.opened(QUEUE);
            assert!(
                !metrics.encode().contains("workqueue_unfinished_work_seconds{"),
                "abandoned work is no work"
            );
            for (text, line) in [
                (&opened, format!("workqueue_depth{labels} 0")),
                (&opened, format!("workqueue_adds_total{labels} 0")),
                (&opened, format!("workqueue_retries_total{labels} 0")),
                (&running, format!("workqueue_depth{labels} 0")),
                (&running, format!("workqueue_adds_total{labels} 2")),
                (&running, format!("workqueue_queue_duration_seconds_sum{labels} 4.0")),
                (&running, format!("workqueue_unfinished_work_seconds{labels} 10.0")),
                (&running, format!("workqueue_longest_running_processor_seconds{labels} 6.0")),
                (&ended, format!("workqueue_work_duration_seconds_count{labels} 1")),
                (&ended, format!("workqueue_retries_total{labels} 1")),
                (&ended, format!("workqueue_unfinished_work_seconds{labels} 4.0")),
            ] {
                assert!(text.contains(&line), "{line} is missing in\n{text}");
            }
        }
    }
}
