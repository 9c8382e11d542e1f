//! What drivers for volumes do, under the names of the established drivers.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::registry::{Histograms, Metrics};

/// Upper bounds of the buckets in seconds, as the established drivers have them.
const BUCKETS: [f64; 15] =
    [0.1, 0.2, 0.5, 1.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 100.0, 200.0, 300.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
    success: &'static str,
}

/// Labels by their names.
type MoreLabels = Vec<(&'static str, String)>;

/// The metrics of a driver's operations. Cheap to clone.
#[derive(Clone)]
pub struct OperationMetrics {
    completed: Family<OperationLabels, Counter>,
    duration: Histograms<OperationLabels>,
    labeled: Histograms<MoreLabels>,
}

impl OperationMetrics {
    /// Registers the metrics of a driver; their names begin with `prefix`.
    pub fn of(metrics: &Metrics, prefix: &str) -> Self {
        let registry = &metrics.registry;
        let new = || Histogram::new(BUCKETS);
        Self {
            completed: registry.add(&format!("{prefix}_operations"), "Operations by success"),
            duration: registry.add_histograms(
                &format!("{prefix}_operation_duration_seconds"),
                "Durations of operations",
                new,
            ),
            labeled: registry.add_histograms(
                &format!("{prefix}_operation_duration_seconds_labeled"),
                "Durations of operations by what they were about",
                new,
            ),
        }
    }

    /// Records an operation that has ended. With labels beside its name and success it is also in the labeled series.
    pub fn completed(
        &self,
        operation: &'static str,
        succeeded: bool,
        duration: Duration,
        more: &[(&'static str, String)],
    ) {
        let success = if succeeded { "true" } else { "false" };
        let labels = OperationLabels { operation, success };
        self.completed.get_or_create(&labels).inc();
        self.duration.get_or_create(&labels).observe(duration.as_secs_f64());
        if !more.is_empty() {
            let mut labels = vec![("operation", operation.to_owned()), ("success", success.to_owned())];
            labels.extend_from_slice(more);
            self.labeled.get_or_create(&labels).observe(duration.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 2.6 of the specification of the drivers.
    #[test]
    fn operations_have_the_established_names_labels_and_buckets() {
        let metrics = Metrics::default();
        let operations = OperationMetrics::of(&metrics, "azuredisk_csi_driver");
        operations.completed("node_stage_volume", true, Duration::from_millis(150), &[]);
        let sku = [("storage_account_type", "Premium_LRS".to_owned())];
        operations.completed("controller_create_volume", false, Duration::from_secs(400), &sku);
        let text = metrics.encode();
        for line in [
            "azuredisk_csi_driver_operations_total{operation=\"node_stage_volume\",success=\"true\"} 1",
            "azuredisk_csi_driver_operations_total{operation=\"controller_create_volume\",success=\"false\"} 1",
            "azuredisk_csi_driver_operation_duration_seconds_sum{operation=\"node_stage_volume\",success=\"true\"} 0.15",
            "azuredisk_csi_driver_operation_duration_seconds_labeled_count{operation=\"controller_create_volume\",\
             success=\"false\",storage_account_type=\"Premium_LRS\"} 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("labeled_count{operation=\"node_stage_volume\""), "{text}");
        let bounds: Vec<&str> = text
            .lines()
            .filter(|line| {
                line.starts_with("azuredisk_csi_driver_operation_duration_seconds_bucket")
                    && line.contains("node_stage")
            })
            .filter_map(|line| line.split_once("le=\"")?.1.split('"').next())
            .collect();
        let established = [
            "0.1", "0.2", "0.5", "1.0", "5.0", "10.0", "15.0", "20.0", "30.0", "40.0", "50.0", "60.0",
            "100.0", "200.0", "300.0", "+Inf",
        ];
        assert_eq!(bounds, established);
    }
}
