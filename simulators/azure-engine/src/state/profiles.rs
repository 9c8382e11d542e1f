//! The named latency profiles: the part common to all types; latencies of operations are in the tables of the
//! providers.

use crate::provider::Provider;
use crate::settings::latency::{CHOICE, LatencyProfile, LatencyRule, TypicalLatency};

/// (verb, resource type, milliseconds to an answer, source), the special before the general.
const ANSWERS: [TypicalLatency; 5] = [
    ("GET", "*/locations/operations", 40, CHOICE),
    ("LIST", "Microsoft.Compute/*", 200, CHOICE),
    ("LIST", "*", 120, CHOICE),
    ("GET", "*", 60, CHOICE),
    ("*", "*", 350, CHOICE),
];

fn rule(resource_type: String, (method, _, ms, source): &TypicalLatency) -> LatencyRule {
    LatencyRule { method: (*method).into(), resource_type, ms: *ms, up_to_ms: None, source: (*source).into() }
}

/// The rules of all providers. Rules for a whole namespace come last, because several providers may share it.
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
    /// Realistic durations: measured ones if there are any, each with its source.
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
