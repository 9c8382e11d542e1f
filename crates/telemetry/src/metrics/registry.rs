//! The registry of all metrics of a process.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use super::computed::{Computed, ComputedFamily};

/// The meter whose series bear its name as a label, because the replaced program exports them through OpenTelemetry.
const SCOPE: (&str, &str) = ("otel_scope_name", "cloud-provider-azure");

/// A name as the only label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Named {
    pub(super) name: String,
}

/// The metrics of a process: what the parts of the program register. Cheap to clone.
#[derive(Clone, Default)]
pub struct Metrics {
    pub(super) registry: SharedRegistry,
}

/// Histograms created with the first use of their labels.
pub(super) type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The registry of all metrics of a process.
#[derive(Clone, Default)]
pub(super) struct SharedRegistry {
    registry: Arc<Mutex<Registry>>,
    scoped: bool,
    #[cfg(feature = "test-util")]
    names: Arc<Mutex<Vec<String>>>,
}

impl SharedRegistry {
    /// The same registry for series that OpenTelemetry exports in the replaced program.
    pub(super) fn scoped(&self) -> Self {
        Self { scoped: true, ..self.clone() }
    }

    /// Registers a metric.
    pub(super) fn register<M: Metric + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        #[cfg(feature = "test-util")]
        self.names.lock().push(name.to_owned());
        let mut registry = self.registry.lock();
        match self.scoped {
            false => registry.register(name, help, metric.clone()),
            true => {
                let label = (SCOPE.0.into(), SCOPE.1.into());
                registry.sub_registry_with_label(label).register(name, help, metric.clone());
            }
        }
        metric
    }

    /// Creates and registers a metric.
    pub(super) fn add<M: Metric + Clone + Default>(&self, name: &str, help: &str) -> M {
        self.register(name, help, M::default())
    }

    /// Creates and registers histograms.
    pub(super) fn add_histograms<L>(&self, name: &str, help: &str, new: fn() -> Histogram) -> Histograms<L>
    where
        Histograms<L>: Metric + Clone,
        L: Clone + Eq + std::hash::Hash,
    {
        self.register(name, help, Family::new_with_constructor(new))
    }

    /// Registers families whose values `compute` returns for each scrape.
    pub(super) fn compute(&self, compute: impl Fn() -> Vec<ComputedFamily> + Send + Sync + 'static) {
        self.registry.lock().register_collector(Box::new(Computed(Box::new(compute))));
    }
}

impl Metrics {
    /// All metrics as text for Prometheus.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _infallible = text::encode(&mut out, &self.registry.registry.lock());
        out
    }

    /// The names under which metrics were registered, without those that are computed.
    #[cfg(feature = "test-util")]
    pub fn registered(&self) -> Vec<String> {
        self.registry.names.lock().clone()
    }
}
