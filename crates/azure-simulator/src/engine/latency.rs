//! How long operations take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::glob::matches;

/// Longest duration that can be asked for, in milliseconds: a year.
const LONGEST_MS: u64 = 365 * 24 * 3_600 * 1_000;

/// Largest jitter.
const MOST_JITTER: f64 = 10.0;

/// A duration in milliseconds, bounded so that no sum of times overflows.
pub(crate) fn bounded(ms: u64) -> Duration {
    Duration::from_millis(ms.min(LONGEST_MS))
}

/// Latency of long-running operations, chosen by method and resource type; the first rule that fits
/// decides. Serialisable, so that a profile can be loaded from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LatencyProfile {
    /// Rules, tried in order.
    #[serde(default)]
    pub rules: Vec<LatencyRule>,
    /// Milliseconds where no rule fits.
    #[serde(default)]
    pub otherwise_ms: u64,
    /// Up to which share of its latency an operation may take longer, drawn from the seed: 0.2 gives
    /// 100 to 120 %.
    #[serde(default)]
    pub jitter: f64,
}

/// One rule of a [`LatencyProfile`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LatencyRule {
    /// `PUT`, `PATCH`, `DELETE` or `POST`; `*` and `?` are wildcards.
    pub method: String,
    /// Resource type such as `Microsoft.Network/loadBalancers`, with wildcards, in any case.
    pub resource_type: String,
    /// Milliseconds from the answer to the end of the operation.
    pub ms: u64,
}

impl LatencyProfile {
    /// Every operation is over as soon as it is looked at.
    pub fn instant() -> Self {
        Self { rules: Vec::new(), otherwise_ms: 0, jitter: 0.0 }
    }

    /// Durations in the order of magnitude that users of Azure know. They are our choice, not
    /// measurements.
    pub fn typical() -> Self {
        let rule = |method: &str, resource_type: &str, ms| LatencyRule {
            method: method.into(),
            resource_type: resource_type.into(),
            ms,
        };
        Self {
            rules: vec![
                rule("PUT", "Microsoft.Network/publicIPAddresses", 3_000),
                rule("DELETE", "Microsoft.Network/publicIPAddresses", 10_000),
                rule("*", "Microsoft.Network/loadBalancers*", 10_000),
                rule("*", "Microsoft.Network/networkSecurityGroups*", 4_000),
                rule("*", "Microsoft.Network/*", 4_000),
                rule("PUT", "Microsoft.Compute/virtualMachineScaleSets", 15_000),
                rule("*", "Microsoft.Compute/*", 20_000),
                rule("DELETE", "Microsoft.Resources/resourceGroups", 30_000),
            ],
            otherwise_ms: 2_000,
            jitter: 0.2,
        }
    }

    /// Adds a rule before all others.
    #[must_use]
    pub fn with(mut self, method: &str, resource_type: &str, latency: Duration) -> Self {
        let ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        self.rules.insert(0, LatencyRule { method: method.into(), resource_type: resource_type.into(), ms });
        self
    }

    /// The latency of one operation; `draw` is a seeded number.
    pub(crate) fn of(&self, method: &str, resource_type: &str, draw: u64) -> Duration {
        let ms = self
            .rules
            .iter()
            .find(|rule| matches(&rule.method, method) && matches(&rule.resource_type, resource_type))
            .map_or(self.otherwise_ms, |rule| rule.ms);
        let share = (draw % 1_000) as f64 / 1_000.0;
        let jitter = if self.jitter.is_finite() { self.jitter.clamp(0.0, MOST_JITTER) } else { 0.0 };
        bounded(ms).mul_f64(1.0 + jitter * share)
    }
}

impl Default for LatencyProfile {
    fn default() -> Self {
        Self::instant()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::LatencyProfile;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let profile = LatencyProfile::instant()
            .with("*", "Microsoft.Network/*", Duration::from_secs(2))
            .with("PUT", "*/loadBalancers", Duration::from_secs(20));
        let of = |method, kind| profile.of(method, kind, 7).as_secs();
        assert_eq!(of("PUT", "Microsoft.Network/loadBalancers"), 20);
        assert_eq!(of("DELETE", "microsoft.network/loadbalancers"), 2);
        assert_eq!(of("PUT", "Microsoft.Compute/virtualMachineScaleSets"), 0);
    }

    #[test]
    fn absurd_profiles_are_bounded() {
        for jitter in [f64::INFINITY, f64::NAN, -1.0, 1e300] {
            let profile = LatencyProfile { otherwise_ms: u64::MAX, jitter, ..LatencyProfile::instant() };
            assert!(profile.of("PUT", "x", u64::MAX) <= Duration::from_secs(12 * 365 * 24 * 3_600));
        }
    }
}
