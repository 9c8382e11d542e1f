//! Latencies. The named profiles with their figures are in `profiles.rs`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use faults::glob::matches;

/// Longest configurable duration, in milliseconds: a year. Sums of such times do not overflow the clock.
const MAX_MS: u64 = 365 * 24 * 3_600 * 1_000;

/// Largest jitter, as a part of the duration: ten times as long is more than any test of patience needs.
const MAX_JITTER: f64 = 10.0;

/// A duration in milliseconds, bounded so that no sum of times overflows.
pub fn bounded(ms: u64) -> Duration {
    Duration::from_millis(ms.min(MAX_MS))
}

/// Durations that Terraform printed for one resource in logs that people published; the median of so
/// many logs. They hold the client's own polling, so that Azure is a little faster.
pub const LOGS: &str = "median of public Terraform logs";

/// Where no source gives a figure.
pub const CHOICE: &str = "our choice";

/// How long something typically takes: verb, type, milliseconds and source, as in a [`LatencyRule`]. In the table of a
/// provider the type is below its namespace, as in `loadBalancers*`.
pub type TypicalLatency = (&'static str, &'static str, u64, &'static str);

/// The verb of a PUT that creates: rules for `PUT` match it, too.
pub const CREATE: &str = "CREATE";

/// Latencies of long-running operations and of answers, by method and resource type. The first matching rule decides.
/// Serialisable, so that a profile can be loaded from a file; members that are left out are empty or 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LatencyProfile {
    /// Rules for operations, tried in order.
    #[serde(default)]
    pub rules: Vec<LatencyRule>,
    /// Milliseconds of an operation if no rule matches.
    #[serde(default)]
    pub otherwise_ms: u64,
    /// Rules for the time from a request to its answer, tried in order.
    #[serde(default)]
    pub answers: Vec<LatencyRule>,
    /// Milliseconds to an answer if no rule matches.
    #[serde(default)]
    pub answer_otherwise_ms: u64,
    /// The maximum jitter as a share of the latency, drawn from the seed: 0.2 gives 100 to 120 %.
    #[serde(default)]
    pub jitter: f64,
}

/// One rule of a [`LatencyProfile`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LatencyRule {
    /// `PUT`, `PATCH`, `DELETE` or `POST`; `*` and `?` are wildcards. `CREATE` fits a PUT of a resource
    /// that was not there, and among the rules for answers `LIST` a GET of a collection and `GET` any
    /// other read.
    pub method: String,
    /// Resource type such as `Microsoft.Network/loadBalancers`, with wildcards, in any case. An action
    /// has the type of its resource, and that with its name behind, as in
    /// `Microsoft.Compute/virtualMachines/start`.
    pub resource_type: String,
    /// Milliseconds from the answer to the end of the operation, or from the request to its answer.
    pub ms: u64,
    /// The most milliseconds, if each operation takes another time: drawn from the seed, evenly between the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_ms: Option<u64>,
    /// Where the figure comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

impl LatencyRule {
    fn fits(&self, verb: &str, resource_type: &str) -> bool {
        let verb_fits = matches(&self.method, verb) || (verb == CREATE && matches(&self.method, "PUT"));
        verb_fits && matches(&self.resource_type, resource_type)
    }

    /// The milliseconds of one operation. The jitter of the profile uses other digits of the draw.
    fn drawn(&self, draw: u64) -> u64 {
        let ms = self.ms.min(MAX_MS);
        let span = self.up_to_ms.map_or(0, |most| most.min(MAX_MS).saturating_sub(ms));
        ms + (draw / 1_000) % (span + 1)
    }
}

impl LatencyProfile {
    /// Every operation ends at the next read.
    pub fn instant() -> Self {
        Self::default()
    }

    /// Adds a rule before all others.
    #[must_use]
    pub fn with(self, method: &str, resource_type: &str, latency: Duration) -> Self {
        let ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        self.before_others(method, resource_type, ms, None)
    }

    /// Adds a rule before all others: each operation takes another time, drawn from the seed, evenly between these two.
    #[must_use]
    pub fn between(self, method: &str, resource_type: &str, least: Duration, most: Duration) -> Self {
        let [ms, up_to] = [least, most].map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        self.before_others(method, resource_type, ms, Some(up_to))
    }

    fn before_others(mut self, method: &str, resource_type: &str, ms: u64, up_to_ms: Option<u64>) -> Self {
        let (method, resource_type) = (method.into(), resource_type.into());
        self.rules.insert(0, LatencyRule { method, resource_type, ms, up_to_ms, source: String::new() });
        self
    }

    /// The latency of one operation; `draw` is a seeded number. An action's type is tried with its
    /// name, then without.
    pub fn of(&self, verb: &str, resource_type: &str, action: Option<&str>, draw: u64) -> Duration {
        let full = action.map(|action| format!("{resource_type}/{action}"));
        let fits = |rule: &&LatencyRule| {
            rule.fits(verb, resource_type) || full.as_ref().is_some_and(|full| rule.fits(verb, full))
        };
        let ms = self.rules.iter().find(fits).map_or(self.otherwise_ms, |rule| rule.drawn(draw));
        self.drawn(ms, draw)
    }

    /// The time from a request to its answer.
    pub fn answer(&self, verb: &str, resource_type: &str, draw: u64) -> Duration {
        let rule = self.answers.iter().find(|rule| rule.fits(verb, resource_type));
        self.drawn(rule.map_or(self.answer_otherwise_ms, |rule| rule.drawn(draw)), draw)
    }

    fn drawn(&self, ms: u64, draw: u64) -> Duration {
        let share = (draw % 1_000) as f64 / 1_000.0;
        let jitter = if self.jitter.is_finite() { self.jitter.clamp(0.0, MAX_JITTER) } else { 0.0 };
        bounded(ms).mul_f64(1.0 + jitter * share)
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
        let of = |method, kind| profile.of(method, kind, None, 7).as_secs();
        assert_eq!(of("PUT", "Microsoft.Network/loadBalancers"), 20);
        assert_eq!(of("CREATE", "Microsoft.Network/loadBalancers"), 20);
        assert_eq!(of("DELETE", "microsoft.network/loadbalancers"), 2);
        assert_eq!(of("PUT", "Microsoft.Compute/virtualMachineScaleSets"), 0);
        let profile = profile.with("CREATE", "N/*", Duration::from_secs(5)).with(
            "POST",
            "N/t/a",
            Duration::from_secs(7),
        );
        let of = |method, action| profile.of(method, "N/t", action, 7).as_secs();
        assert_eq!(
            [of("CREATE", None), of("PUT", None), of("POST", Some("a")), of("POST", Some("b"))],
            [5, 0, 7, 0]
        );
    }

    #[test]
    fn a_rule_with_two_bounds_draws_between_them() {
        let (least, most) = (Duration::from_secs(5), Duration::from_secs(90));
        let profile = LatencyProfile::instant().between("PUT", "*/virtualMachines", least, most);
        let of = |draw| profile.of("PUT", "Microsoft.Compute/virtualMachines", None, draw);
        let all: Vec<Duration> = (0..1_000).map(|number: u64| of(number * 7_919_317)).collect();
        assert!(all.iter().all(|it| (least..=most).contains(it)));
        let below = |limit: u64| all.iter().filter(|it| **it < Duration::from_secs(limit)).count();
        assert!(
            (200..300).contains(&below(26)) && (700..800).contains(&below(69)),
            "{} {}",
            below(26),
            below(69)
        );
        let text = r#"{ "rules": [{ "method": "PUT", "resourceType": "*", "ms": 90, "upToMs": 5 }] }"#;
        let reversed: LatencyProfile = serde_json::from_str(text).unwrap();
        assert_eq!(reversed.of("PUT", "x", None, u64::MAX).as_millis(), 90);
    }

    #[test]
    fn absurd_profiles_are_bounded() {
        for jitter in [f64::INFINITY, f64::NAN, -1.0, 1e300] {
            let profile = LatencyProfile { otherwise_ms: u64::MAX, jitter, ..LatencyProfile::instant() };
            assert!(profile.of("PUT", "x", None, u64::MAX) <= Duration::from_secs(12 * 365 * 24 * 3_600));
        }
    }
}
