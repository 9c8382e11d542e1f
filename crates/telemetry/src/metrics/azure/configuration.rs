//! The cloud configuration that is in force, and the attempts to replace it while the program runs.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::metrics::registry::Metrics;

/// The result of reading a changed configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// It is in force.
    Applied,
    /// It has changed where only a restart helps; the former one stays in force.
    NeedsRestart,
    /// It is invalid; the former one stays in force.
    Refused,
    /// It could not be read; the former one stays in force.
    Unreadable,
}

impl Reload {
    /// All results.
    pub const ALL: [Self; 4] = [Self::Applied, Self::NeedsRestart, Self::Refused, Self::Unreadable];

    /// The label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::NeedsRestart => "needs_restart",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// The metrics of the cloud configuration. Cheap to clone.
#[derive(Clone)]
pub struct ConfigMetrics {
    generation: Gauge,
    reloads: Family<ResultLabel, Counter>,
}

impl ConfigMetrics {
    /// Registers the metrics. The generation is 1: the configuration of the start.
    pub fn of(metrics: &Metrics) -> Self {
        let registry = &metrics.registry;
        let this = Self {
            generation: registry.add(
                "cerulean_cloud_config_generation",
                "The number of the configuration in force: 1 at the start, and one more for each change",
            ),
            reloads: registry.add(
                "cerulean_cloud_config_reloads",
                "Attempts to put a changed cloud configuration into force, by result",
            ),
        };
        this.generation.set(1);
        // Alerts on the first failure need a zero before it.
        Reload::ALL.iter().for_each(|result| drop(this.reloads.get_or_create(&Self::label(*result))));
        this
    }

    fn label(result: Reload) -> ResultLabel {
        ResultLabel { result: result.as_str() }
    }

    /// Records that a changed configuration was read; an applied one is a new generation.
    pub fn reloaded(&self, result: Reload) {
        if result == Reload::Applied {
            self.generation.inc();
        }
        self.reloads.get_or_create(&Self::label(result)).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_applied_configuration_is_a_new_generation() {
        let metrics = Metrics::default();
        let config = ConfigMetrics::of(&metrics);
        config.reloaded(Reload::Applied);
        config.reloaded(Reload::Refused);
        let text = metrics.encode();
        for line in [
            "cerulean_cloud_config_generation 2",
            "cerulean_cloud_config_reloads_total{result=\"applied\"} 1",
            "cerulean_cloud_config_reloads_total{result=\"refused\"} 1",
            "cerulean_cloud_config_reloads_total{result=\"unreadable\"} 0",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
