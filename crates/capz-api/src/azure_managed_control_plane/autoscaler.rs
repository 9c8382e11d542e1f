//! Parameters of the cluster autoscaler. All values are texts.

use serde_json::{Value, json};

use crate::field_error::Field;
use crate::object::object;

object! {
    /// Parameters of the cluster autoscaler.
    AutoscalerProfile {
        /// Whether similar pools are kept at the same size.
        #[schemars(extend("default" = "false", "enum" = ["true", "false"]))]
        balance_similar_node_groups: String,
        /// How the pool that grows is chosen.
        #[schemars(extend("default" = "random", "enum" = ["least-waste", "most-pods", "priority", "random"]))]
        expander: String,
        /// The number of empty nodes that are deleted at the same time.
        #[schemars(extend("default" = "10"))]
        max_empty_bulk_delete: String,
        /// How many seconds pods get to end before their node is removed.
        #[schemars(extend("default" = "600", "pattern" = r"^(\d+)$"))]
        max_graceful_termination_sec: String,
        /// How long a machine may take to become a node, in minutes, such as 15m.
        #[schemars(extend("default" = "15m", "pattern" = r"^(\d+)m$"))]
        max_node_provision_time: String,
        /// The share of nodes, from 0 to 100, that may be unready before the autoscaler pauses.
        #[schemars(length(min = 1, max = 3), extend("default" = "45", "pattern" = r"^(\d+)$"))]
        max_total_unready_percentage: String,
        /// The age from which pods without a node are counted, such as 10s or 1m.
        #[schemars(extend("default" = "0s"))]
        new_pod_scale_up_delay: String,
        /// The number of nodes that may be unready whatever their share.
        #[schemars(extend("default" = "3", "pattern" = r"^(\d+)$"))]
        ok_total_unready_count: String,
        /// How long after growth nothing is removed, in minutes, such as 10m.
        #[schemars(extend("default" = "10m", "pattern" = r"^(\d+)m$"))]
        scale_down_delay_after_add: String,
        /// How long after the deletion of a node nothing is removed, in seconds, such as 10s.
        #[schemars(extend("default" = "10s", "pattern" = r"^(\d+)s$"))]
        scale_down_delay_after_delete: String,
        /// How long after a failed removal nothing is removed, in minutes, such as 3m.
        #[schemars(extend("default" = "3m", "pattern" = r"^(\d+)m$"))]
        scale_down_delay_after_failure: String,
        /// How long a node is unneeded before it is removed, in minutes, such as 10m.
        #[schemars(extend("default" = "10m", "pattern" = r"^(\d+)m$"))]
        scale_down_unneeded_time: String,
        /// How long an unready node is unneeded before it is removed, in minutes, such as 20m.
        #[schemars(extend("default" = "20m", "pattern" = r"^(\d+)m$"))]
        scale_down_unready_time: String,
        /// The share of a node's capacity, from 0 to 1, below which it is unneeded.
        #[schemars(extend("default" = "0.5"))]
        scale_down_utilization_threshold: String,
        /// How often the autoscaler looks, in seconds, such as 10s.
        #[schemars(extend("default" = "10s", "pattern" = r"^(\d+)s$"))]
        scan_interval: String,
        /// Whether nodes with pods that use local storage are kept.
        #[schemars(extend("default" = "false", "enum" = ["true", "false"]))]
        skip_nodes_with_local_storage: String,
        /// Whether nodes with pods of kube-system are kept.
        #[schemars(extend("default" = "true", "enum" = ["true", "false"]))]
        skip_nodes_with_system_pods: String,
    }
}

/// The form of a parameter.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// A whole number that is not negative.
    Count,
    /// A whole number of minutes, such as 10m.
    Minutes,
    /// A whole number of seconds, such as 10s.
    Seconds,
    /// A duration, such as 90s or 1m30s.
    Duration,
    /// A whole number from 0 to 100.
    Percentage,
    /// A number from 0 to 1.
    Share,
}

/// Parameters with a form. The schema knows the words of the other ones.
const FORMS: [(&str, Form); 13] = [
    ("maxEmptyBulkDelete", Form::Count),
    ("maxGracefulTerminationSec", Form::Count),
    ("maxNodeProvisionTime", Form::Minutes),
    ("maxTotalUnreadyPercentage", Form::Percentage),
    ("newPodScaleUpDelay", Form::Duration),
    ("okTotalUnreadyCount", Form::Count),
    ("scanInterval", Form::Seconds),
    ("scaleDownDelayAfterAdd", Form::Minutes),
    ("scaleDownDelayAfterDelete", Form::Seconds),
    ("scaleDownDelayAfterFailure", Form::Minutes),
    ("scaleDownUnneededTime", Form::Minutes),
    ("scaleDownUnreadyTime", Form::Minutes),
    ("scaleDownUtilizationThreshold", Form::Share),
];

/// Units of durations, longer ones before those that they end with.
const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];

impl Form {
    fn fits(self, text: &str) -> bool {
        let count =
            |text: &str| text.chars().all(|c| c.is_ascii_digit()).then(|| text.parse::<i64>().ok())?;
        match self {
            Self::Count => count(text).is_some(),
            Self::Minutes => text.strip_suffix('m').and_then(count).is_some(),
            Self::Seconds => text.strip_suffix('s').and_then(count).is_some(),
            Self::Duration => is_duration(text),
            Self::Percentage => count(text).is_some_and(|count| count <= 100),
            Self::Share => text.parse::<f64>().is_ok_and(|share| (0.0..=1.0).contains(&share)),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Count => "it must be a whole number, such as 10",
            Self::Minutes => "it must be a whole number of minutes, such as 10m",
            Self::Seconds => "it must be a whole number of seconds, such as 10s",
            Self::Duration => "it must be a duration, such as 10s or 1m30s",
            Self::Percentage => "it must be a whole number from 0 to 100",
            Self::Share => "it must be a number from 0 to 1, such as 0.5",
        }
    }
}

/// Whether it is 0, or numbers with units.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() && rest != "0" {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = rest.strip_suffix(unit).unwrap_or_default();
        let after = UNITS.iter().find_map(|word| unit.strip_prefix(word));
        match after.filter(|_| number.parse::<f64>().is_ok()) {
            Some(after) if after != "0" => rest = after,
            _ => return false,
        }
    }
    !text.is_empty()
}

/// Validates the parameters. An empty duration counts as absent.
pub(super) fn check(profile: Option<&AutoscalerProfile>, field: &Field<'_>) {
    let Some(profile) = profile else { return };
    let profile = json!(profile);
    for (member, form) in FORMS {
        let Some(text) = profile.get(member).and_then(Value::as_str) else { continue };
        let is_absent = text.is_empty() && matches!(form, Form::Minutes | Form::Seconds | Form::Duration);
        field.child(member).invalid_if(!is_absent && !form.fits(text), text, form.words());
    }
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn each_form_takes_what_the_autoscaler_reads() {
        for (form, right, wrong) in [
            (Form::Count, &["0", "10", "600"][..], &["", "-1", "1.5", "ten", "10s"][..]),
            (Form::Minutes, &["0m", "15m"], &["", "15", "m", "1.5m", "10s", "-1m", "10mm", "1h"]),
            (Form::Seconds, &["0s", "10s"], &["", "10", "s", "10m", "10ms"]),
            (
                Form::Duration,
                &["0", "0s", "1m30s", "1.5h", "100ms", "5us", "5µs", "7ns"],
                &["", "10", "s", "1m0", "1d", "-5s", "m1", "1..5s"],
            ),
            (Form::Percentage, &["0", "45", "100"], &["", "101", "120", "4.5", "-1"]),
            (Form::Share, &["0", "0.5", "1", "1.0"], &["", "1.5", "-0.1", "half", "NaN"]),
        ] {
            for text in right {
                assert!(form.fits(text), "{form:?} {text:?}");
            }
            for text in wrong {
                assert!(!form.fits(text), "{form:?} {text:?}");
            }
        }
    }
}
