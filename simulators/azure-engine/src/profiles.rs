//! The named latency profiles: what is the same for every type; how long operations take is in the tables of the
//! providers.

use super::latency::{CHOICE, LatencyProfile, LatencyRule, TypicalLatency};
use super::provider::Provider;

/// (verb, resource type, milliseconds to an answer, source), the special before the general.
const ANSWERS: [TypicalLatency; 5] = [
    ("GET", "*/locations/operations", 40, CHOICE),
    ("LIST", "Microsoft.Compute/*", 200, CHOICE),
    ("LIST", "*", 120, CHOICE),
    ("GET", "*", 60, CHOICE),
    ("*", "*", 350, CHOICE),
];

fn rule(resource_type: String, (method, _, ms, source): &TypicalLatency) -> LatencyRule {
    LatencyRule { method: (*method).into(), resource_type, ms: *ms, source: (*source).into() }
}

/// The rules of all providers. What holds for whatever a namespace has comes last, for the namespace may be several
/// providers'.
fn operations(providers: &[Provider]) -> Vec<LatencyRule> {
    let all = providers
        .iter()
        .flat_map(|provider| provider.latencies.iter().map(|latency| (provider.namespace, latency)));
    let (general, special): (Vec<_>, Vec<_>) = all.partition(|(_, latency)| latency.1 == "*");
    special
        .into_iter()
        .chain(general)
        .map(|(namespace, latency)| rule(format!("{namespace}/{}", latency.1), latency))
        .collect()
}

impl LatencyProfile {
    /// Durations that users of Azure know: measured ones where we found any, each with its source.
    pub fn typical(providers: &[Provider]) -> Self {
        Self {
            rules: operations(providers),
            otherwise_ms: 2_000,
            answers: ANSWERS.iter().map(|answer| rule(answer.1.into(), answer)).collect(),
            answer_otherwise_ms: 100,
            jitter: 0.2,
        }
    }
}
